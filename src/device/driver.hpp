// Driver: what the library asks of devices. Two implementations: the host emulation
// (emulation.hpp), which runs everywhere, and CUDA (cuda/).
//
// Work is enqueued on streams and runs later, in order within a stream; events order streams among
// each other. A device copies in and out at the same time, by a copy engine for each direction, and
// combines on its compute units meanwhile. Memory of the host that copies may touch is pinned, and
// belongs to the device kHost.
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

// Somewhere in the memory of a device.
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
// may be one of the sources, and must not overlap one otherwise. What is written to the target goes
// to `copies` as well.
struct Combine {
  Memory target;
  std::vector<Memory> sources;
  std::size_t count = 0;
  Type type = Type::f32;
  Op op = Op::sum;
  int divisor = 1;
  std::vector<Memory> copies = {};
};

// A word of pinned memory that streams and hosts wait for, also those of other processes. Values go
// up, around 2^32: at least v is who differs from v by less than half of that.
using Word = std::atomic<std::uint32_t>;

// Memory of a device as another process can open it.
struct SharedHandle {
  std::string allocation;   // the same for all memory of one allocation, and no other's ever
  std::size_t offset = 0;   // in it, bytes
  std::uintptr_t begin = 0; // of the allocation, where the process that shares it has it
  std::size_t bytes = 0;    // of it; 0: not known
};

// Names of what a driver has made; never reused while the driver lives. 0: none.
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
  // Whether combinations on a device may read and write the memory of another one.
  virtual bool reaches(int device, int peer) const = 0;
  // How slow the link from one device to another is, beside the others; 0: the fastest.
  virtual int link(int device, int peer) const = 0;

  // Of kHost: pinned. Throws a resource error that says how much there is.
  virtual std::byte* allocate(int device, std::size_t bytes) = 0;
  virtual void release(int device, std::byte* memory) = 0;

  // Memory of the host that somebody else has allocated, pinned until it is unpinned.
  virtual void pin(void* memory, std::size_t bytes) = 0;
  virtual void unpin(void* memory) = 0;

  // What another process on this machine passes to open(). `memory` must be part of what allocate()
  // of some driver gave, and stay as long as it is open anywhere.
  virtual SharedHandle share(int device, const std::byte* memory) = 0;
  // Null: something lies there that was opened before and is to be closed first.
  virtual std::byte* open(int device, const std::string& allocation) = 0;
  virtual void close(int device, std::byte* opened) = 0;

  virtual Stream make_stream(int device) = 0;
  // A stream that somebody else has made, such as a framework: its CUstream. Throws a usage error
  // where it is another device's. Released like any other, which leaves it to its owner.
  virtual Stream adopt_stream(int device, std::uintptr_t native) = 0;
  virtual int device_of(Stream stream) const = 0;
  virtual void release(Stream stream) = 0;   // once what is enqueued on it is done
  virtual Event make_event(int device) = 0;
  virtual void release(Event event) = 0;

  virtual void copy(Stream stream, const Copy& copy) = 0;
  virtual void combine(Stream stream, const Combine& combine) = 0;
  virtual void record(Event event, Stream stream) = 0;
  // What is enqueued on the stream from now on waits for the last record of the event.
  virtual void wait(Stream stream, Event event) = 0;

  // wait: what is enqueued from now on waits until the word has at least the value. write: the word
  // gets the value once all before it is done.
  virtual void wait(Stream stream, Word* word, std::uint32_t value) = 0;
  virtual void write(Stream stream, Word* word, std::uint32_t value) = 0;

  // Whether the last record of the event is done. Both throw what has become of a device.
  virtual bool is_done(Event event) = 0;
  virtual void synchronize(Event event) = 0;
  // A look at an event by a thread that must not be held up: work goes on where nobody else does it
  // (emulated devices without threads), and what has become of a device is thrown. Of CUDA's calls
  // few may be made so: while one thread frees memory, those of others wait for every stream.
  virtual void poll(Event event) = 0;

  // What `enqueue` puts on `origin`, and on streams that wait for it, to be launched as often as is
  // wanted. Nothing runs meanwhile.
  virtual Graph capture(Stream origin, const std::function<void()>& enqueue) = 0;
  virtual void launch(Graph graph, Stream origin) = 0;
  virtual void release(Graph graph) = 0;
};

inline bool has_reached(std::uint32_t value, std::uint32_t wanted) {
  return static_cast<std::int32_t>(value - wanted) >= 0;
}

}  // namespace paceline::device
