// DeviceRun: a device program with its devices' streams, events and scratch, made once.
//
// A call starts when the work on the callers' streams is done, and their later work waits for its
// end; the host does not wait. A call that is repeated on the same buffers can be captured as a
// graph.
#pragma once

#include <vector>

#include "device/driver.hpp"
#include "engine/enqueued.hpp"

namespace paceline {

struct DeviceBuffers {   // of one position, on its device; null: none
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

class DeviceRun {
 public:
  // `devices`: by position; several positions may share one. Throws a refusal if a device would
  // have to reach one that it cannot, and a resource error if there is no scratch.
  DeviceRun(device::Driver& driver, DeviceProgram program, std::vector<int> devices);
  ~DeviceRun();   // after the last call has ended
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  // `callers`: by position, a stream of its device; or the first position's alone.
  void enqueue(const std::vector<DeviceBuffers>& buffers,
               const std::vector<device::Stream>& callers);

  // The same on these buffers as a graph, which is launched on a stream of the first position. Its
  // launches and other calls follow each other on that stream: they share the scratch.
  device::Graph capture(const std::vector<DeviceBuffers>& buffers, device::Stream origin);

  const DeviceProgram& program() const { return program_; }

 private:
  void check_reach() const;
  void run(const DeviceTask& task, const std::vector<DeviceBuffers>& buffers);
  device::Memory at(const Place& place, const std::vector<DeviceBuffers>& buffers) const;
  device::Event take_event(int position);
  int device_of(int position) const { return devices_[static_cast<std::size_t>(position)]; }
  void release();

  device::Driver& driver_;
  DeviceProgram program_;
  std::vector<int> devices_;
  std::vector<std::byte*> scratch_;
  std::vector<device::Stream> streams_;         // the program's, without those that have no task
  std::vector<bool> used_;
  std::vector<device::Event> begins_, ends_;    // by position; by stream
  device::Event finished_ = {};                 // of the last call
  bool capturing_ = false;
  std::vector<std::vector<device::Event>> free_;   // by position
  std::vector<device::Event> all_events_;
  std::vector<device::Event> event_of_;         // by task, until all waits for it are enqueued
  std::vector<std::uint32_t> waiters_;
};

}  // namespace paceline
