#include <cuda_runtime.h>

#include "gpu/apply_cuda.h"

namespace isthmus {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 1 << 20;

// Positions are distinct, so no two threads meet.
__global__ void ApplyTensorKernel(ApplyTensorArgs args) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += stride) {
    ApplyValue(args, i);
  }
}

// One array on the device, gone with the scope. A null host array stays null.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(T)) {}
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  // Copies `host` in; *device is then where it lies. Does nothing once *error is set.
  void In(const T* host, const T** device, cudaError_t* error) {
    if (host == nullptr || *error != cudaSuccess) return;
    *error = cudaMalloc(&data_, bytes_ == 0 ? 1 : bytes_);
    if (*error == cudaSuccess) *error = cudaMemcpy(data_, host, bytes_, cudaMemcpyHostToDevice);
    *device = data_;
  }
  void Out(T* host, cudaError_t* error) const {
    if (host == nullptr || *error != cudaSuccess) return;
    *error = cudaMemcpy(host, data_, bytes_, cudaMemcpyDeviceToHost);
  }

 private:
  const size_t bytes_;
  T* data_ = nullptr;
};

void InOut(DeviceArray<float>* array, float* host, float** device, cudaError_t* error) {
  const float* at = nullptr;
  array->In(host, &at, error);
  *device = const_cast<float*>(at);
}

}  // namespace

int CudaDevices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

const char* ApplyTensorOnDevice(const ApplyTensorArgs& args, int64_t values) {
  cudaError_t error = cudaSuccess;
  ApplyTensorArgs on_device = args;
  DeviceArray<uint32_t> positions(args.count);
  DeviceArray<int64_t> sums(args.count);
  DeviceArray<int32_t> weights(args.count), own(args.count);
  DeviceArray<float> anchor(values), momentum(values), parameters(values);
  positions.In(args.positions, &on_device.positions, &error);
  sums.In(args.sums, &on_device.sums, &error);
  weights.In(args.weights, &on_device.weights, &error);
  own.In(args.own, &on_device.own, &error);
  InOut(&anchor, args.anchor, &on_device.anchor, &error);
  InOut(&momentum, args.momentum, &on_device.momentum, &error);
  InOut(&parameters, args.parameters, &on_device.parameters, &error);
  if (error == cudaSuccess && args.count > 0) {
    const int64_t wanted = (args.count + kThreads - 1) / kThreads;
    const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
    ApplyTensorKernel<<<blocks, kThreads>>>(on_device);
    error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
  }
  anchor.Out(args.anchor, &error);
  momentum.Out(args.momentum, &error);
  parameters.Out(args.parameters, &error);
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace isthmus
