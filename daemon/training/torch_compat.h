// What differs between the libtorch versions we build against (the distribution's 1.13, the 2.11 wheel) and
// between the matrix libraries below them. Included only by .cc files that use libtorch.
#ifndef ISTHMUS_DAEMON_TRAINING_TORCH_COMPAT_H_
#define ISTHMUS_DAEMON_TRAINING_TORCH_COMPAT_H_

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>

namespace isthmus {

// Threads of this process's matrix products. libtorch's own setting does not reach an OpenBLAS that was built
// with its own threads (the distribution's), so that one is told by name where it is loaded.
inline void SetTorchThreads(int threads) {
  at::set_num_threads(threads);
  if (void* f = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(f)(threads);
  }
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_TORCH_COMPAT_H_
