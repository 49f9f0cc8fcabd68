// libcuda.so.1 without a GPU, as far as device/cuda asks it.
//
// A stream is a thread. What it calls device memory ends whoever touches it: the data lie
// elsewhere, and only copies and kernels find them. Kernels are the real ones: the source that nvcc
// compiles for the GPU, compiled for the host, thread by thread. Rules of CUDA that are easily
// broken are held: events and kernels belong to the device of their stream, a capture must be
// joined and wait for nothing outside of it, memory is opened by other processes alone. Whoever
// frees memory or loads kernels waits for every stream, and most calls of other threads wait as
// long.
//
// FEIGNED_CUDA says what it is like, in words: "devices=4 memory=1000000 version=11040 peers=0";
// "pairs=1": even devices have fast links among each other, and odd ones.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct FeignedIndex {
  unsigned x = 0;
};
static thread_local FeignedIndex threadIdx, blockIdx, blockDim, gridDim;
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(threads)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "device/cuda/reduce.cu"
#pragma GCC diagnostic pop

#include "fakes/cuda_state.hpp"

namespace feigned {

int setting(const char* name, int usual) {
  const char* words = std::getenv("FEIGNED_CUDA");
  const std::string key = std::string(name) + '=';
  const char* found = words ? std::strstr(words, key.c_str()) : nullptr;
  return found ? std::atoi(found + key.size()) : usual;
}

World& world() {
  static World* const one = new World;
  return *one;
}

thread_local Context* current = nullptr;

Block* block_of(std::uintptr_t address) {
  for (auto& [shown, block] : world().blocks)
    if (address - shown < block.bytes) return &block;
  return nullptr;
}

// Where the data really lie.
char* data_at(std::uintptr_t address) {
  const std::lock_guard lock(world().mutex);
  const Block* block = block_of(address);
  return block ? block->data + (address - block->shown) : reinterpret_cast<char*>(address);
}

Stream::Stream(Context* where) : context(where), worker([this] { serve(); }) {
  const std::lock_guard lock(world().mutex);
  world().streams.insert(this);
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex);
    ended = true;
  }
  changed.notify_all();
  worker.join();
  const std::lock_guard lock(world().mutex);
  world().streams.erase(this);
}

void Stream::serve() {
  for (;;) {
    std::function<void()> next;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return ended || !tasks.empty(); });
      if (tasks.empty()) return;
      next = std::move(tasks.front());
      tasks.pop_front();
      busy = true;
    }
    next();
    {
      const std::lock_guard lock(mutex);
      busy = false;
    }
    changed.notify_all();
  }
}

void Stream::push(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
  }
  changed.notify_all();
}

void Stream::drain() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return tasks.empty() && !busy; });
}

// The capture that the calling thread has begun.
thread_local std::unique_ptr<Capture> capture;

// Enqueues what a stream is to do, or keeps it where the stream is captured.
void enqueue(Stream* stream, const std::function<void()>& start) {
  if (!capture || !capture->clocks.contains(stream)) return start();
  ++capture->clocks[stream][stream];
  capture->graph.steps.push_back(start);
}

// What may be made meanwhile: looks at events and streams, waits for them, words.
void when_nobody_frees() { const std::lock_guard no_sooner(world().calls); }

std::unique_lock<std::mutex> when_idle() {
  std::unique_lock calls(world().calls);
  const auto is_idle = [](Stream* stream) {
    const std::lock_guard lock(stream->mutex);
    return stream->tasks.empty() && !stream->busy;
  };
  for (bool idle = false; !idle; std::this_thread::sleep_for(std::chrono::microseconds(20))) {
    const std::lock_guard lock(world().mutex);
    idle = std::ranges::all_of(world().streams, is_idle);
  }
  return calls;
}

Stream* stream_of(Stream* given) {
  if (reinterpret_cast<std::uintptr_t>(given) > 2) return given;   // 0 to 2: default streams
  if (!current) return nullptr;
  static std::mutex making;
  const std::lock_guard lock(making);
  if (!current->usual) current->usual = std::make_unique<Stream>(current);
  return current->usual.get();
}

int trouble(const Stream* stream) {
  if (!stream || !current) return kInvalidContext;
  if (stream->context != current) return kInvalidHandle;
  return stream->context->is_lost ? kLaunchFailed : kSuccess;
}

// Until a word that another process may write has the value.
void wait_for_word(const std::atomic<std::uint32_t>* word, std::uint32_t value) {
  while (static_cast<std::int32_t>(word->load(std::memory_order_acquire) - value) < 0)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

void run_kernel(void (*kernel)(paceline::device::ReduceJob), paceline::device::ReduceJob job,
                unsigned blocks, unsigned threads) {
  for (int k = 0; k < job.source_count; ++k)
    job.sources[k] = data_at(reinterpret_cast<std::uintptr_t>(job.sources[k]));
  for (int k = 0; k < job.target_count; ++k)
    job.targets[k] = data_at(reinterpret_cast<std::uintptr_t>(job.targets[k]));
  gridDim.x = blocks, blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) kernel(job);
}

}  // namespace feigned
