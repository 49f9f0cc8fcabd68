// DeviceGroup: the devices that one process drives, as the ranks of collectives.
//
// enqueue() enqueues a call for all positions at once and returns; buffers and streams belong to
// the caller. The group uses the registry's algorithms (engine/enqueued.hpp). The first call of a
// shape makes its program, streams, events and scratch, which are kept.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "device/driver.hpp"
#include "engine/device_run.hpp"
#include "runtime/call.hpp"
#include "tune/choose.hpp"

namespace paceline {

class DeviceGroup {
 public:
  // `devices`: by position; a device may have several positions. `machine`: alpha, beta and gamma
  // of copies and combinations, for the choice. Throws a usage error.
  DeviceGroup(std::shared_ptr<device::Driver> driver, std::vector<int> devices,
              const Machine& machine);
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  int size() const { return static_cast<int>(devices_.size()); }
  int device_of(int position) const { return devices_[static_cast<std::size_t>(position)]; }
  device::Driver& driver() const { return *driver_; }

  // `calls`: by position, equal but for their buffers, which lie on the position's device.
  // `callers`: a stream of each position's device, or one of the first position's for all. Throws a
  // usage error or a refusal before anything is enqueued.
  void enqueue(const std::vector<Call>& calls, const std::vector<device::Stream>& callers);

  // Returns a graph of these calls for device::Driver::launch() on `origin`. The group must outlive
  // it.
  device::Graph capture(const std::vector<Call>& calls, device::Stream origin);

  // Describes the calls: the algorithm and why, segments, tasks, streams.
  std::string explain(const std::vector<Call>& calls);
  const DeviceProgram& program(const std::vector<Call>& calls);

  static constexpr std::size_t kMostShapes = 64;   // shapes kept

 private:
  struct Shape {
    std::string key;
    Choice choice;
    std::unique_ptr<DeviceRun> run;
  };

  // `is_graph`: the driver starts the work, once captured; else this process starts every task, and
  // fewer are better.
  Shape& shape_of(const std::vector<Call>& calls, bool is_graph = false);
  void check_alike(const std::vector<Call>& calls) const;
  void check_streams(const std::vector<device::Stream>& callers) const;
  Choice chosen(const Call& call, const Problem& problem, bool is_graph) const;
  std::vector<DeviceBuffers> buffers_of(const std::vector<Call>& calls) const;

  std::shared_ptr<device::Driver> driver_;
  std::vector<int> devices_;
  Machine machine_;
  bool all_reach_ = false;       // all devices reach each other's memory
  std::list<Shape> shapes_;      // last used first
};

}  // namespace paceline
