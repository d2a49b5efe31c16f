// The loops of a Llama-form transformer that are not matrix products, forward and backward, on plain
// row-major fp32 arrays. No engine, no allocation, one thread; the same input gives the same bits on the same
// machine, not on every machine (only inner training may differ by device).
//
// "adds": the result is added to what is there; everything else is overwritten.
#ifndef ISTHMUS_DAEMON_TRAINING_LLAMA_KERNELS_H_
#define ISTHMUS_DAEMON_TRAINING_LLAMA_KERNELS_H_

#include <cstdint>

namespace isthmus {

// out = x / rms(x) · weight per row; inverse_rms (one per row) is kept for the way back.
void RmsNorm(const float* x, const float* weight, int64_t rows, int64_t width, float* out,
             float* inverse_rms);
// Adds to dx (rows · width) and dweight (width).
void RmsNormBackward(const float* dout, const float* x, const float* weight, const float* inverse_rms,
                     int64_t rows, int64_t width, float* dx, float* dweight);

// Rotary positions in the half-split form: value i of a head pairs with i + head_width/2. `cosines` and
// `sines` are positions · head_width/2; row n has position n mod positions. Rotates `heads` heads at the
// start of each row of `row_stride` values in place; backwards when `is_backward`.
void Rotate(float* rows_data, int64_t rows, int64_t row_stride, int64_t heads, int64_t head_width,
            int64_t positions, const float* cosines, const float* sines, bool is_backward);

// gate_up: rows · 2·width, gate first. out = silu(gate) · up, rows · width.
void SwiGlu(const float* gate_up, int64_t rows, int64_t width, float* out);
void SwiGluBackward(const float* gate_up, const float* dout, int64_t rows, int64_t width, float* dgate_up);

// In place on a square of scores: row i becomes softmax(scale · scores[i][0 … i]), zeros after it.
void CausalSoftmax(float* scores, int64_t length, float scale);
// In place: gradient of the probabilities in, gradient of the raw scores out (zeros above the diagonal).
void CausalSoftmaxBackward(const float* probabilities, float* gradient, int64_t length, float scale);

// Sum over the rows of −log softmax(logits)[target]. With `gradient_scale` not 0, logits become
// gradient_scale · (softmax − one at the target).
double CrossEntropy(float* logits, const int32_t* targets, int64_t rows, int64_t vocabulary,
                    float gradient_scale);

// Sum of squares, in double.
double SquaredNorm(const float* values, int64_t count);

// One AdamW update of `count` values. Gradients are scaled by gradient_scale first. Corrections are
// 1 − beta^step. Decay: values −= rate · decay · values before the step.
struct AdamWStepNumbers {
  float gradient_scale = 1, rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, decay = 0;
  float correction1 = 1, correction2 = 1;
};
void AdamWStep(const AdamWStepNumbers& numbers, const float* gradient, int64_t count, float* values,
               float* first, float* second);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_LLAMA_KERNELS_H_
