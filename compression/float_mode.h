// Puts the processor's floating point into plain IEEE mode for a scope.
//
// A library can have switched on flush-to-zero or denormals-are-zero, or another rounding; bits that all
// sites must agree on are computed inside such a scope. Per thread, as the mode itself is.
#ifndef ISTHMUS_COMPRESSION_FLOAT_MODE_H_
#define ISTHMUS_COMPRESSION_FLOAT_MODE_H_

#include <cfenv>
#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace isthmus {

// Round to nearest even, no flushing; restores what it found.
class PlainFloatScope {
 public:
  PlainFloatScope() {
    std::fegetenv(&saved_);
    std::fesetround(FE_TONEAREST);
#if defined(__SSE2__)
    // Bit 15 flushes results, bit 6 takes denormal operands as zero.
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#elif defined(__aarch64__)
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    // FZ is bit 24, FZ16 bit 19; on newer cores FIZ (bit 0) flushes inputs.
    asm volatile("msr fpcr, %0"
                 :
                 : "r"(control & ~((uint64_t{1} << 24) | (uint64_t{1} << 19) | uint64_t{1})));
#endif
  }
  ~PlainFloatScope() { std::fesetenv(&saved_); }
  PlainFloatScope(const PlainFloatScope&) = delete;
  PlainFloatScope& operator=(const PlainFloatScope&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_FLOAT_MODE_H_
