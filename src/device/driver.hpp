// Driver: interface to devices. It has two implementations: the host emulation (emulation.hpp),
// which runs everywhere, and CUDA (cuda/).
//
// Work is enqueued on streams and runs later, in order within a stream; events order streams among
// each other. A device copies in and out at the same time, by a copy engine for each direction, and
// combines on its compute units meanwhile. Host memory that copies touch is pinned and belongs to
// the device kHost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace paceline::device {

inline constexpr int kHost = -1;

// An address in the memory of a device.
struct Memory {
  int device = kHost;
  std::byte* data = nullptr;
};

struct Copy {
  Memory to, from;
  std::size_t bytes = 0;
};

// target[i] = sources[0][i] op sources[1][i] op ..., from left to right, divided by the divisor;
// sources and target may be in the memory of devices that the stream's device reaches. The target
// may be one of the sources, and must not overlap one otherwise. `copies` get the same result.
struct Combine {
  Memory target;
  std::vector<Memory> sources;
  std::size_t count = 0;
  Type type = Type::f32;
  Op op = Op::sum;
  int divisor = 1;
  std::vector<Memory> copies = {};
};

// A word of pinned memory that streams and hosts of any process wait for. Values grow and wrap at
// 2^32: x is at least v if x - v is below 2^31.
using Word = std::atomic<std::uint32_t>;

// Memory of a device as another process can open it.
struct SharedHandle {
  std::string allocation;   // equal for all memory of one allocation, never reused
  std::size_t offset = 0;   // in it, bytes
  std::uintptr_t begin = 0; // of the allocation, in the process that shares it
  std::size_t bytes = 0;    // of it; 0: not known
};

// Numbers of a driver's objects, never reused while the driver lives. 0: none.
enum class Stream : int {};
enum class Event : int {};
enum class Graph : int {};

class Driver {
 public:
  Driver() = default;
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  virtual std::string name() const = 0;   // "emulated", "cuda"
  virtual int devices() const = 0;
  // True if combinations on a device may read and write the peer's memory.
  virtual bool reaches(int device, int peer) const = 0;
  // Speed class of the link between two devices; 0: the fastest.
  virtual int link(int device, int peer) const = 0;

  // Allocates memory; pinned for kHost. Throws a resource error that tells how much there is.
  virtual std::byte* allocate(int device, std::size_t bytes) = 0;
  virtual void release(int device, std::byte* memory) = 0;

  // Pins host memory that the caller has allocated, until unpin().
  virtual void pin(void* memory, std::size_t bytes) = 0;
  virtual void unpin(void* memory) = 0;

  // Returns the handle that another process on this machine passes to open(). `memory` must be part
  // of an allocation by some driver, and live as long as any process has it open.
  virtual SharedHandle share(int device, const std::byte* memory) = 0;
  // Returns null if its address is taken by an earlier opened allocation, to be closed first.
  virtual std::byte* open(int device, const std::string& allocation) = 0;
  virtual void close(int device, std::byte* opened) = 0;

  virtual Stream make_stream(int device) = 0;
  // Adopts a framework's stream, its CUstream. Throws a usage error if it is another device's.
  // Release it like any other; its owner keeps it.
  virtual Stream adopt_stream(int device, std::uintptr_t native) = 0;
  virtual int device_of(Stream stream) const = 0;
  virtual void release(Stream stream) = 0;   // once the work enqueued on it is done
  virtual Event make_event(int device) = 0;
  virtual void release(Event event) = 0;

  virtual void copy(Stream stream, const Copy& copy) = 0;
  virtual void combine(Stream stream, const Combine& combine) = 0;
  virtual void record(Event event, Stream stream) = 0;
  // Makes later work on the stream wait for the last record of the event.
  virtual void wait(Stream stream, Event event) = 0;

  // wait: later work waits until the word has at least the value. write: sets the word once all
  // earlier work is done.
  virtual void wait(Stream stream, Word* word, std::uint32_t value) = 0;
  virtual void write(Stream stream, Word* word, std::uint32_t value) = 0;

  // True if the last record of the event is done. Both throw the failure of a device.
  virtual bool is_done(Event event) = 0;
  virtual void synchronize(Event event) = 0;
  // Looks at an event without blocking: throws a device's failure, and does work of emulated
  // devices without threads. Few of CUDA's calls may be made here: while one thread frees memory,
  // calls of other threads wait for every stream.
  virtual void poll(Event event) = 0;

  // Captures the work that `enqueue` puts on `origin` and on streams that wait for it, for repeated
  // launches. Nothing runs meanwhile.
  virtual Graph capture(Stream origin, const std::function<void()>& enqueue) = 0;
  virtual void launch(Graph graph, Stream origin) = 0;
  virtual void release(Graph graph) = 0;
};

inline bool has_reached(std::uint32_t value, std::uint32_t wanted) {
  return static_cast<std::int32_t>(value - wanted) >= 0;
}

}  // namespace paceline::device
