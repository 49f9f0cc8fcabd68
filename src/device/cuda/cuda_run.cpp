// Enqueueing by the CUDA driver.
#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "device/cuda/current.hpp"
#include "device/cuda/image.hpp"
#include "device/cuda/job.hpp"

namespace paceline::device {

using cuda::Address;
using cuda::Result;

namespace {

constexpr int kCaptureThisThread = 1;   // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr unsigned kThreads = 512;      // of a block, the same as in reduce.cu
constexpr unsigned kBlocksPerProcessor = 4;
constexpr std::size_t kPackBytes = 16;

Address address(const std::byte* memory) { return reinterpret_cast<Address>(memory); }

ReduceJob job_of(const Combine& combine) {
  ReduceJob job{};
  job.count = combine.count;
  job.divisor = combine.divisor;
  Address all = address(combine.target.data);
  job.targets[job.target_count++] = combine.target.data;
  for (const Memory& copy : combine.copies) {
    job.targets[job.target_count++] = copy.data;
    all |= address(copy.data);
  }
  for (const Memory& source : combine.sources) {
    job.sources[job.source_count++] = source.data;
    all |= address(source.data);
  }
  job.is_aligned = all % kPackBytes == 0;
  return job;
}

}  // namespace

// Copies between different devices, too: addresses are unique in the process, so the driver finds
// their devices.
void Cuda::copy(Stream stream, const Copy& copy) {
  if (copy.bytes == 0) return;
  const OnStream where = on(stream);
  const Current current(*this, where.device);
  check(api_.copy(address(copy.to.data), address(copy.from.data), copy.bytes, where.handle),
        "a copy", where.device);
}

void Cuda::combine(Stream stream, const Combine& combine) {
  require(!combine.sources.empty(), "device: a combination without sources");
  if (!is_defined(combine.op, combine.type))
    fail(Fault::refusal, "device: ", name_of(combine.op), " is not defined for ",
         name_of(combine.type), ".");
  if (combine.sources.size() > kMostSources || combine.copies.size() >= kMostTargets)
    fail(Fault::refusal, "device: ", combine.sources.size(), " sources and ",
         combine.copies.size() + 1, " targets of one kernel, which takes at most ", kMostSources,
         " and ", kMostTargets, "; name an algorithm with a smaller radix.");
  if (combine.count == 0) return;
  const OnStream where = on(stream);
  const Current current(*this, where.device);
  if (combine.sources.size() > 1 || combine.divisor > 1) return run_kernel(where, combine);
  const std::size_t bytes = combine.count * size_of(combine.type);
  const std::byte* from = combine.sources.front().data;
  if (from != combine.target.data)
    check(api_.copy(address(combine.target.data), address(from), bytes, where.handle), "a copy",
          where.device);
  for (const Memory& each : combine.copies)
    check(api_.copy(address(each.data), address(from), bytes, where.handle), "a copy",
          where.device);
}

cuda::Function Cuda::kernel(int device, Type type, Op op) {
  if (op == Op::average) op = Op::sum;
  Place& where = place(device, "a kernel");
  const std::lock_guard lock(kernels_);
  cuda::Function& found = where.kernels[{type, op}];
  if (found) return found;
  if (!where.module) {
    if (!kernel_image())
      fail(Fault::refusal, "device: this build has no reduce kernels, since no nvcc was found; put "
           "it on the PATH (pip install nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm "
           "nvidia-cuda-runtime nvidia-cuda-cccl) and build again.");
    if (where.loaded == cuda::kNoKernelImage || where.loaded == cuda::kInvalidPtx ||
        where.loaded == cuda::kUnsupportedPtx)
      fail(Fault::refusal, "device: the reduce kernels are not built for device ", device, " (",
           cuda::describe(api_, where.loaded), "); build with -DPACELINE_CUDA_ARCHS=native, or "
           "update the driver.");
    check(where.loaded, "the reduce kernels", device);
  }
  const std::string name = str("paceline_", name_of(type), '_', name_of(op));
  check(api_.get_function(&found, where.module, name.c_str()), name.c_str(), device);
  return found;
}

void Cuda::run_kernel(const OnStream& where, const Combine& combine) {
  const cuda::Function function = kernel(where.device, combine.type, combine.op);
  ReduceJob job = job_of(combine);
  const std::size_t lanes = job.is_aligned ? kPackBytes / size_of(combine.type) : 1;
  const std::size_t wanted = (combine.count + lanes * kThreads - 1) / (lanes * kThreads);
  const auto most = static_cast<std::size_t>(place(where.device, "a kernel").processors) *
                    kBlocksPerProcessor;
  void* parameters[] = {&job};
  check(api_.launch_kernel(function, static_cast<unsigned>(std::min(wanted, most)), 1, 1, kThreads,
                           1, 1, 0, where.handle, parameters, nullptr),
        "a reduce kernel", where.device);
}

void Cuda::record(Event event, Stream stream) {
  const OnStream where = on(stream);
  const OnEvent mine = on(event);
  if (mine.device != where.device)
    fail(Fault::usage, "device: an event of device ", mine.device, " on a stream of device ",
         where.device, "; an event is recorded on streams of its own device.");
  const Current current(*this, where.device);
  check(api_.record(mine.handle, where.handle), "an event", where.device);
}

void Cuda::wait(Stream stream, Event event) {
  const OnStream where = on(stream);
  const Current current(*this, where.device);
  check(api_.wait_event(where.handle, on(event).handle, 0), "a wait", where.device);
}

cuda::Address Cuda::address_of(Word* word, int device) const {
  Address found = 0;
  check(api_.host_address(&found, word, 0), "a word that is not pinned", device);
  return found;
}

void Cuda::wait(Stream stream, Word* word, std::uint32_t value) {
  const OnStream where = on(stream);
  const Current current(*this, where.device);
  check(api_.wait_word(where.handle, address_of(word, where.device), value, 0), "a wait",
        where.device);
}

void Cuda::write(Stream stream, Word* word, std::uint32_t value) {
  const OnStream where = on(stream);
  const Current current(*this, where.device);
  check(api_.write_word(where.handle, address_of(word, where.device), value, 0), "a word",
        where.device);
}

bool Cuda::is_done(Event event) {
  const OnEvent mine = on(event);
  const Current current(*this, mine.device);
  const Result result = api_.query_event(mine.handle);
  if (result == cuda::kNotReady) return false;
  check(result, "an event", mine.device);
  return true;
}

void Cuda::synchronize(Event event) {
  const OnEvent mine = on(event);
  const Current current(*this, mine.device);
  check(api_.synchronize_event(mine.handle), "an event", mine.device);
}

Graph Cuda::capture(Stream origin, const std::function<void()>& enqueue) {
  const OnStream where = on(origin);
  const Current current(*this, where.device);
  check(api_.begin_capture(where.handle, kCaptureThisThread), "a graph", where.device);
  cuda::GraphHandle graph = nullptr;
  try {
    enqueue();
  } catch (...) {   // the stream must not stay in capture
    api_.end_capture(where.handle, &graph);
    if (graph) api_.release_graph(graph);
    throw;
  }
  check(api_.end_capture(where.handle, &graph), "a graph", where.device);
  cuda::GraphExec exec = nullptr;
  const Result result = api_.instantiate(&exec, graph, 0);
  api_.release_graph(graph);
  check(result, "a graph", where.device);
  const std::lock_guard lock(mutex_);
  graphs_[next_] = {where.device, exec};
  return Graph{next_++};
}

void Cuda::launch(Graph graph, Stream origin) {
  const OnStream where = on(origin);
  const Current current(*this, where.device);
  cuda::GraphExec exec = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(static_cast<int>(graph));
    if (found == graphs_.end())
      fail(Fault::usage, "device: there is no graph ", static_cast<int>(graph), ".");
    exec = found->second.second;
  }
  check(api_.launch_graph(exec, where.handle), "a graph", where.device);
}

void Cuda::release(Graph graph) {
  std::pair<int, cuda::GraphExec> mine;
  {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(static_cast<int>(graph));
    if (found == graphs_.end()) return;
    mine = found->second;
    graphs_.erase(found);
  }
  const Current current(*this, mine.first);
  api_.release_exec(mine.second);
}

}  // namespace paceline::device
