// Tells the thread sanitiser about absl's mutexes. Linked only with --config=tsan.
//
// The distribution's absl is not built for the sanitiser, which therefore takes everything a mutex guards for
// a race. These definitions stand in front of the library's own, call them, and report what each orders: an
// unlock releases, a lock acquires. Conditions are evaluated by whoever unlocks, after the release has been
// reported, so reads are not looked at inside the calls.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

#define ISTHMUS_TEXT_INNER(x) #x
#define ISTHMUS_TEXT(x) ISTHMUS_TEXT_INNER(x)

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

// The library's own function, by the end of its mangled name.
void* Real(const char* prefix, const char* name) {
  std::string space;
#ifdef ABSL_OPTION_INLINE_NAMESPACE_NAME
  space = ISTHMUS_TEXT(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  space = std::to_string(space.size()) + space;
#endif
  const std::string mangled = std::string(prefix) + "4absl" + space + name;
  void* const real = dlsym(RTLD_NEXT, mangled.c_str());
  if (real == nullptr) {
    std::fprintf(stderr, "absl_tsan: the library has no %s\n", mangled.c_str());
    std::abort();
  }
  return real;
}

// Calls a member function of the library that releases the mutex, acquires it, or both.
template <bool kReleases, bool kAcquires, typename R, typename... Args>
R Call(void* real, void* mutex, Args... args) {
  struct Scope {
    explicit Scope(void* m) : mutex(m) {
      if (kReleases) __tsan_release(mutex);
      AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    }
    ~Scope() {
      AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
      if (kAcquires) __tsan_acquire(mutex);
    }
    void* mutex;
  } scope(mutex);
  return reinterpret_cast<R (*)(void*, Args...)>(real)(mutex, args...);
}

}  // namespace

#define ISTHMUS_REAL(name) static void* const real = Real("_ZN", name)
#define ISTHMUS_REAL_CONST(name) static void* const real = Real("_ZNK", name)

void Mutex::Lock() {
  ISTHMUS_REAL("5Mutex4LockEv");
  Call<false, true, void>(real, this);
}
void Mutex::Unlock() {
  ISTHMUS_REAL("5Mutex6UnlockEv");
  Call<true, false, void>(real, this);
}
bool Mutex::TryLock() {
  ISTHMUS_REAL("5Mutex7TryLockEv");
  return Call<false, true, bool>(real, this);
}
void Mutex::ReaderLock() {
  ISTHMUS_REAL("5Mutex10ReaderLockEv");
  Call<false, true, void>(real, this);
}
void Mutex::ReaderUnlock() {
  ISTHMUS_REAL("5Mutex12ReaderUnlockEv");
  Call<true, false, void>(real, this);
}
void Mutex::LockWhen(const Condition& c) {
  ISTHMUS_REAL("5Mutex8LockWhenERKNS0_9ConditionE");
  Call<false, true, void, const Condition&>(real, this, c);
}
void Mutex::Await(const Condition& c) {
  ISTHMUS_REAL("5Mutex5AwaitERKNS0_9ConditionE");
  Call<true, true, void, const Condition&>(real, this, c);
}
bool Mutex::AwaitWithTimeout(const Condition& c, Duration timeout) {
  ISTHMUS_REAL("5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return Call<true, true, bool, const Condition&, Duration>(real, this, c, timeout);
}
bool Mutex::AwaitWithDeadline(const Condition& c, Time deadline) {
  ISTHMUS_REAL("5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return Call<true, true, bool, const Condition&, Time>(real, this, c, deadline);
}

void CondVar::Wait(Mutex* mutex) {
  ISTHMUS_REAL("7CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  Call<false, true, void, Mutex*>(real, this, mutex);
  __tsan_acquire(mutex);
}
bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  ISTHMUS_REAL("7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  __tsan_release(mutex);
  const bool is_late = Call<false, true, bool, Mutex*, Duration>(real, this, mutex, timeout);
  __tsan_acquire(mutex);
  return is_late;
}
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  ISTHMUS_REAL("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool is_late = Call<false, true, bool, Mutex*, Time>(real, this, mutex, deadline);
  __tsan_acquire(mutex);
  return is_late;
}

void Notification::Notify() {
  ISTHMUS_REAL("12Notification6NotifyEv");
  Call<true, false, void>(real, this);
}
void Notification::WaitForNotification() const {
  ISTHMUS_REAL_CONST("12Notification19WaitForNotificationEv");
  Call<false, true, void>(real, const_cast<Notification*>(this));
}
bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  ISTHMUS_REAL_CONST("12Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  return Call<false, true, bool, Duration>(real, const_cast<Notification*>(this), timeout);
}

ABSL_NAMESPACE_END
}  // namespace absl
