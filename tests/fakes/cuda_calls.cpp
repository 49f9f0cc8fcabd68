// The functions of the feigned CUDA driver, as cuda.h declares them.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "fakes/cuda_state.hpp"

using namespace feigned;

namespace {

Context* context_of(int device) {
  World& w = world();
  const std::lock_guard lock(w.mutex);
  const int count = setting("devices", 2);
  while (static_cast<int>(w.contexts.size()) < count) {
    w.contexts.push_back(std::make_unique<Context>());
    w.contexts.back()->device = static_cast<int>(w.contexts.size()) - 1;
  }
  return device >= 0 && device < count ? w.contexts[static_cast<std::size_t>(device)].get()
                                       : nullptr;
}

}  // namespace

extern "C" {

// For tests: what has happened so far, and a device that goes.
int feigned_kernels() { return world().kernels; }
int feigned_copies() { return world().copies; }
int feigned_graphs() { return world().graphs; }
void feigned_lose(int device) { context_of(device)->is_lost = true; }
void feigned_write(std::uintptr_t to, const void* from, std::size_t bytes) {
  std::memcpy(data_at(to), from, bytes);
}
void feigned_read(void* to, std::uintptr_t from, std::size_t bytes) {
  std::memcpy(to, data_at(from), bytes);
}

int cuInit(unsigned) { return setting("devices", 2) > 0 ? kSuccess : kNoDevice; }
int cuDriverGetVersion(int* version) {
  *version = setting("version", 13000);
  return kSuccess;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR";
  return kSuccess;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == kLaunchFailed ? "unspecified launch failure" : "feigned";
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = setting("devices", 2);
  return kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return context_of(ordinal) ? kSuccess : kInvalidValue;
}
int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "Feigned GPU");
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const std::map<int, int> known = {{16, 2}, {33, 0x10 + device}, {34, 0}, {50, 0}, {75, 9},
                                    {76, 0}};
  const auto found = known.find(attribute);
  *value = found == known.end() ? 0 : found->second;
  return kSuccess;
}
int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = setting("peers", 1);
  return kSuccess;
}
int cuDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  if (device == peer) return kInvalidValue;
  *value = attribute == 1 && setting("pairs", 0) ? (device ^ peer) & 1 : 0;
  return kSuccess;
}
int cuDevicePrimaryCtxRetain(Context** context, int device) {
  *context = context_of(device);
  return *context ? kSuccess : kInvalidValue;
}
int cuCtxSetCurrent(Context* context) {
  current = context;
  return kSuccess;
}
int cuCtxGetCurrent(Context** context) {
  *context = current;
  return kSuccess;
}
int cuCtxEnablePeerAccess(Context* peer, unsigned) {
  return peer && current ? kSuccess : kInvalidContext;
}
int cuStreamCreate(Stream** stream, unsigned) {
  if (!current) return kInvalidContext;
  *stream = new Stream(current);
  return kSuccess;
}
int cuStreamDestroy_v2(Stream* stream) {
  delete stream;
  return kSuccess;
}
int cuStreamSynchronize(Stream* given) {
  Stream* stream = stream_of(given);
  if (!stream) return kInvalidContext;
  stream->drain();
  return stream->context->is_lost ? kLaunchFailed : kSuccess;
}
int cuStreamGetCtx(Stream* stream, Context** context) {
  *context = stream->context;
  return kSuccess;
}

int cuEventCreate(Event** event, unsigned) {
  when_nobody_frees();
  if (!current) return kInvalidContext;
  *event = new Event;
  (*event)->context = current;
  return kSuccess;
}
int cuEventDestroy_v2(Event* event) {
  delete event;
  return kSuccess;
}
int cuEventRecord(Event* event, Stream* given) {
  when_nobody_frees();
  Stream* stream = stream_of(given);
  if (const int error = trouble(stream)) return error;
  if (event->context != stream->context) return kInvalidHandle;
  const bool is_captured = capture && capture->clocks.contains(stream);
  event->captured_in = is_captured ? capture.get() : nullptr;
  if (is_captured) event->clock = capture->clocks[stream];
  enqueue(stream, [event, stream] {
    const auto record = std::make_shared<Record>();
    {
      const std::lock_guard lock(event->mutex);
      event->record = record;
    }
    stream->push([record] { record->done = true; });
  });
  if (is_captured) event->clock[stream] = capture->clocks[stream][stream];
  return kSuccess;
}
int cuEventQuery(Event* event) {
  if (event->context->is_lost) return kLaunchFailed;
  const std::lock_guard lock(event->mutex);
  return !event->record || event->record->done ? kSuccess : kNotReady;
}
int cuEventSynchronize(Event* event) {
  int status = 0;
  while ((status = cuEventQuery(event)) == kNotReady)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  return status;
}
int cuStreamWaitEvent(Stream* given, Event* event, unsigned) {
  Stream* stream = stream_of(given);
  if (const int error = trouble(stream)) return error;
  if (capture) {
    const bool joined = capture->clocks.contains(stream);
    if (event->captured_in == capture.get()) {
      Clock& clock = capture->clocks[stream];
      for (const auto& [other, steps] : event->clock)
        if (other != stream) clock[other] = std::max(clock[other], steps);
    } else if (joined) {
      return capture->error = kIsolation;
    }
  }
  enqueue(stream, [stream, event] {
    std::shared_ptr<Record> record;
    {
      const std::lock_guard lock(event->mutex);
      record = event->record;
    }
    if (!record) return;
    stream->push([record] {
      while (!record->done) std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
  });
  return kSuccess;
}
int cuStreamWriteValue32_v2(Stream* given, std::uintptr_t word, std::uint32_t value, unsigned) {
  Stream* stream = stream_of(given);
  if (!stream) return kInvalidContext;
  enqueue(stream, [=] {
    stream->push([=] {
      reinterpret_cast<std::atomic<std::uint32_t>*>(word)->store(value, std::memory_order_release);
    });
  });
  return kSuccess;
}
int cuStreamWaitValue32_v2(Stream* given, std::uintptr_t word, std::uint32_t value, unsigned) {
  Stream* stream = stream_of(given);
  if (!stream) return kInvalidContext;
  enqueue(stream, [=] {
    stream->push([=] {
      wait_for_word(reinterpret_cast<const std::atomic<std::uint32_t>*>(word), value);
    });
  });
  return kSuccess;
}

int cuMemcpyAsync(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, Stream* given) {
  when_nobody_frees();
  Stream* stream = stream_of(given);
  if (const int error = trouble(stream)) return error;
  enqueue(stream, [=] {
    stream->push([=] { std::memcpy(data_at(to), data_at(from), bytes); });
    ++world().copies;
  });
  return kSuccess;
}
int cuMemcpyPeerAsync(std::uintptr_t to, Context*, std::uintptr_t from, Context*,
                      std::size_t bytes, Stream* given) {
  return cuMemcpyAsync(to, from, bytes, given);
}

int cuModuleLoadData(void** module, const void* image) {
  const auto idle = when_idle();
  *module = const_cast<void*>(image);
  return image ? kSuccess : kInvalidValue;
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&cuInit), &self);
  void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = library ? dlsym(library, name) : nullptr;
  return *function ? kSuccess : kNotFound;
}
int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                   unsigned, unsigned, Stream* given, void** parameters, void**) {
  when_nobody_frees();
  Stream* stream = stream_of(given);
  if (const int error = trouble(stream)) return error;
  paceline::device::ReduceJob job;
  std::memcpy(&job, parameters[0], sizeof job);
  const auto kernel = reinterpret_cast<void (*)(paceline::device::ReduceJob)>(function);
  enqueue(stream, [=] {
    stream->push([=] { run_kernel(kernel, job, grid, block); });
    ++world().kernels;
  });
  return kSuccess;
}

int cuStreamBeginCapture_v2(Stream* given, int) {
  if (capture || reinterpret_cast<std::uintptr_t>(given) <= 1) return kNotPermitted;
  capture = std::make_unique<Capture>();
  capture->origin = given;
  capture->clocks[given];
  return kSuccess;
}
int cuStreamEndCapture(Stream* origin, Graph** graph) {
  *graph = nullptr;
  if (!capture || capture->origin != origin) return kNotPermitted;
  const std::unique_ptr<Capture> ended = std::move(capture);
  if (ended->error) return ended->error;
  for (auto& [stream, clock] : ended->clocks)
    if (stream != origin && ended->clocks[origin][stream] < clock[stream]) return kUnjoined;
  *graph = new Graph(std::move(ended->graph));
  return kSuccess;
}
int cuGraphInstantiateWithFlags(Graph** exec, Graph* graph, unsigned long long) {
  *exec = new Graph(*graph);
  return kSuccess;
}
int cuGraphLaunch(Graph* exec, Stream*) {
  for (const auto& step : exec->steps) step();
  ++world().graphs;
  return kSuccess;
}
int cuGraphExecDestroy(Graph* exec) {
  delete exec;
  return kSuccess;
}
int cuGraphDestroy(Graph* graph) {
  delete graph;
  return kSuccess;
}

}  // extern "C"
