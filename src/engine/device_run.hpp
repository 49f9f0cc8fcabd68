// DeviceRun: a device program with its devices: streams, events and scratch, made once.
//
// A call starts when what is on the callers' streams is done, and what they enqueue afterwards
// waits for its end; the host waits for nothing. A call that is repeated on the same buffers can be
// captured as a graph.
#pragma once

#include <vector>

#include "device/driver.hpp"
#include "engine/enqueued.hpp"

namespace paceline {

struct DeviceBuffers {   // of one position, on its device; null where it has none
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

class DeviceRun {
 public:
  // `devices`: by position; several positions may share one. Throws a refusal where a device would
  // have to reach another one that it does not, and a resource error where there is no scratch.
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
  std::vector<device::Stream> streams_;         // of the program; those without tasks are not made
  std::vector<bool> used_;
  std::vector<device::Event> begins_, ends_;    // by position; by stream
  device::Event finished_ = {};                 // of the last call
  bool capturing_ = false;
  std::vector<std::vector<device::Event>> free_;   // by position
  std::vector<device::Event> all_events_;
  std::vector<device::Event> event_of_;         // by task, while somebody has yet to wait for it
  std::vector<std::uint32_t> waiters_;
};

}  // namespace paceline
