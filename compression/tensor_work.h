// Shares out work on a layout's tensors. Header-only.
#ifndef ISTHMUS_COMPRESSION_TENSOR_WORK_H_
#define ISTHMUS_COMPRESSION_TENSOR_WORK_H_

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace isthmus {

// Calls make_worker() once on each thread, and what that gives with every tensor once, by one thread or
// another. `threads` with the caller's; no more than there are tensors are started.
template <typename MakeWorker>
void ForEachTensor(int tensors, int threads, MakeWorker make_worker) {
  std::atomic<int> next{0};
  const auto work = [&] {
    auto worker = make_worker();
    for (int t = next.fetch_add(1); t < tensors; t = next.fetch_add(1)) worker(t);
  };
  std::vector<std::thread> others;
  for (int i = 1; i < std::min(threads, tensors); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_TENSOR_WORK_H_
