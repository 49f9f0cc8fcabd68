// Device calls: the parts of a communicator's calls that differ if the buffers are on a device.
#pragma once

#include <memory>

#include "engine/device_operation.hpp"
#include "runtime/schedule_cache.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {

// Clears all that the ranks share: messages between devices go through the host.
void leave_out_shared(Problem& problem);

// Makes the operation of a prepared call, on the host or on the device of its buffers.
std::unique_ptr<Operation> operation_of(const Prepared& prepared, Channel channel);

// Enqueues a device call's work on the caller's stream, before its operation starts; does nothing
// for calls on host memory. Throws a usage error for a stream of another device. The destructor
// gives the work up if the operation was not started.
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
