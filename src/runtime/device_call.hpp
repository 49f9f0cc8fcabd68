// Device calls: what a communicator does otherwise where the buffers of a call are on a device.
#pragma once

#include <memory>

#include "engine/device_operation.hpp"
#include "runtime/schedule_cache.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {

// Messages between devices go through the host: whatever the ranks share is not the devices'.
void leave_out_shared(Problem& problem);

// What carries out a prepared call, on the host or on the device that its buffers are on.
std::unique_ptr<Operation> operation_of(const Prepared& prepared, Channel channel);

// Before an operation starts: what its device has to do, enqueued after what is on the caller's
// stream. Nothing for calls on memory of the host. Throws a usage error for a stream of another
// device. Where no start comes, it runs out.
class Ahead {
 public:
  Ahead(ActiveOp& active, const Call& call);
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

 private:
  DeviceOperation* operation_ = nullptr;
};

}  // namespace paceline
