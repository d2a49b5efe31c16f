#include "daemon/training/llama_kernels.h"

#include <cmath>
#include <cstring>

// Compiled for several instruction sets, chosen when the program starts. The thread sanitizer cannot see
// through that choice.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ISTHMUS_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ISTHMUS_CLONES
#endif

namespace isthmus {
namespace {

constexpr float kRmsEpsilon = 1e-5f;

// exp by range reduction to ±ln2/2 and a polynomial (the coefficients of the Cephes library's expf); relative
// error below 3e-7 and, unlike the library's, something the compiler can turn into vector code.
inline float Exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float scaled = x * 1.44269504f;
  // By conversion and not by adding a large number: the compiler may reorder sums here.
  const int32_t n_integer = static_cast<int32_t>(scaled + (scaled < 0 ? -0.5f : 0.5f));
  const float n = static_cast<float>(n_integer);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float y = p * r * r + r + 1.0f;
  uint32_t bits;
  std::memcpy(&bits, &y, sizeof bits);
  bits += static_cast<uint32_t>(n_integer) << 23;
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

}  // namespace

ISTHMUS_CLONES
void RmsNorm(const float* x, const float* weight, int64_t rows, int64_t width, float* __restrict out,
             float* __restrict inverse_rms) {
  for (int64_t n = 0; n < rows; ++n, x += width, out += width) {
    float squares = 0;
    for (int64_t j = 0; j < width; ++j) squares += x[j] * x[j];
    const float r = 1.0f / std::sqrt(squares / width + kRmsEpsilon);
    for (int64_t j = 0; j < width; ++j) out[j] = x[j] * r * weight[j];
    inverse_rms[n] = r;
  }
}

ISTHMUS_CLONES
void RmsNormBackward(const float* dout, const float* x, const float* weight, const float* inverse_rms,
                     int64_t rows, int64_t width, float* __restrict dx, float* __restrict dweight) {
  for (int64_t n = 0; n < rows; ++n, x += width, dout += width, dx += width) {
    const float r = inverse_rms[n];
    float dot = 0;
    for (int64_t j = 0; j < width; ++j) dot += dout[j] * weight[j] * x[j];
    const float c = dot * r * r * r / width;
    for (int64_t j = 0; j < width; ++j) {
      dx[j] += dout[j] * weight[j] * r - x[j] * c;
      dweight[j] += dout[j] * x[j] * r;
    }
  }
}

ISTHMUS_CLONES
void Rotate(float* rows_data, int64_t rows, int64_t row_stride, int64_t heads, int64_t head_width,
            int64_t positions, const float* cosines, const float* sines, bool is_backward) {
  const int64_t half = head_width / 2;
  const float sign = is_backward ? -1.0f : 1.0f;
  for (int64_t n = 0; n < rows; ++n) {
    const float* c = cosines + n % positions * half;
    const float* s = sines + n % positions * half;
    for (int64_t h = 0; h < heads; ++h) {
      float* __restrict a = rows_data + n * row_stride + h * head_width;
      float* __restrict b = a + half;
      for (int64_t i = 0; i < half; ++i) {
        const float sine = sign * s[i];
        const float x = a[i], y = b[i];
        a[i] = x * c[i] - y * sine;
        b[i] = y * c[i] + x * sine;
      }
    }
  }
}

ISTHMUS_CLONES
void SwiGlu(const float* gate_up, int64_t rows, int64_t width, float* __restrict out) {
  for (int64_t n = 0; n < rows; ++n, gate_up += 2 * width, out += width) {
    const float* up = gate_up + width;
    for (int64_t j = 0; j < width; ++j) out[j] = gate_up[j] / (1.0f + Exp(-gate_up[j])) * up[j];
  }
}

ISTHMUS_CLONES
void SwiGluBackward(const float* gate_up, const float* dout, int64_t rows, int64_t width,
                    float* __restrict dgate_up) {
  for (int64_t n = 0; n < rows; ++n, gate_up += 2 * width, dgate_up += 2 * width, dout += width) {
    const float* up = gate_up + width;
    float* __restrict dup = dgate_up + width;
    for (int64_t j = 0; j < width; ++j) {
      const float g = gate_up[j];
      const float sigmoid = 1.0f / (1.0f + Exp(-g));
      dgate_up[j] = dout[j] * up[j] * sigmoid * (1.0f + g * (1.0f - sigmoid));
      dup[j] = dout[j] * g * sigmoid;
    }
  }
}

ISTHMUS_CLONES
void CausalSoftmax(float* scores, int64_t length, float scale) {
  for (int64_t i = 0; i < length; ++i) {
    float* row = scores + i * length;
    float most = row[0];
    for (int64_t j = 1; j <= i; ++j) most = row[j] > most ? row[j] : most;
    float sum = 0;
    for (int64_t j = 0; j <= i; ++j) {
      row[j] = Exp(scale * (row[j] - most));
      sum += row[j];
    }
    const float inverse = 1.0f / sum;
    for (int64_t j = 0; j <= i; ++j) row[j] *= inverse;
    std::memset(row + i + 1, 0, (length - i - 1) * sizeof(float));
  }
}

ISTHMUS_CLONES
void CausalSoftmaxBackward(const float* probabilities, float* __restrict gradient, int64_t length,
                           float scale) {
  for (int64_t i = 0; i < length; ++i) {
    const float* p = probabilities + i * length;
    float* __restrict g = gradient + i * length;
    float dot = 0;
    for (int64_t j = 0; j <= i; ++j) dot += p[j] * g[j];
    for (int64_t j = 0; j <= i; ++j) g[j] = p[j] * (g[j] - dot) * scale;
    std::memset(g + i + 1, 0, (length - i - 1) * sizeof(float));
  }
}

ISTHMUS_CLONES
double CrossEntropy(float* logits, const int32_t* targets, int64_t rows, int64_t vocabulary,
                    float gradient_scale) {
  double loss = 0;
  for (int64_t n = 0; n < rows; ++n) {
    float* row = logits + n * vocabulary;
    float most = row[0];
    for (int64_t j = 1; j < vocabulary; ++j) most = row[j] > most ? row[j] : most;
    const float at_target = row[targets[n]];
    float sum = 0;
    for (int64_t j = 0; j < vocabulary; ++j) {
      row[j] = Exp(row[j] - most);
      sum += row[j];
    }
    loss += std::log(static_cast<double>(sum)) + most - at_target;
    const float factor = gradient_scale / sum;
    for (int64_t j = 0; j < vocabulary; ++j) row[j] *= factor;
    row[targets[n]] -= gradient_scale;
  }
  return loss;
}

ISTHMUS_CLONES
double SquaredNorm(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

ISTHMUS_CLONES
void AdamWStep(const AdamWStepNumbers& numbers, const float* gradient, int64_t count,
               float* __restrict values, float* __restrict first, float* __restrict second) {
  const float scale = numbers.gradient_scale, b1 = numbers.beta1, b2 = numbers.beta2;
  const float keep = 1.0f - numbers.rate * numbers.decay;
  const float step = numbers.rate / numbers.correction1;
  const float inverse2 = 1.0f / numbers.correction2;
  const float epsilon = numbers.epsilon;
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * scale;
    const float m = first[i] + (1.0f - b1) * (g - first[i]);
    const float v = second[i] * b2 + (1.0f - b2) * g * g;
    first[i] = m;
    second[i] = v;
    values[i] = values[i] * keep - step * m / (std::sqrt(v * inverse2) + epsilon);
  }
}

}  // namespace isthmus
