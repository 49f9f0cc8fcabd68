// Device calls: what a communicator does otherwise where the buffers of a call are on a device.
#pragma once

#include <memory>

#include "runtime/schedule_cache.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {

// Messages between devices go through the host: whatever the ranks share is not the devices'.
void leave_out_shared(Problem& problem);

// What carries out a prepared call, on the host or on the device that its buffers are on.
std::unique_ptr<Operation> operation_of(const Prepared& prepared, Channel channel);

// Before the start of a flight: it comes after what is on the caller's stream. Nothing for calls on
// memory of the host. Throws a usage error for a stream of another device.
void follow(ActiveOp& flight, const OnDevice& device);

}  // namespace paceline
