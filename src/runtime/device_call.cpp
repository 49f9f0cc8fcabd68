#include "runtime/device_call.hpp"

#include <utility>

#include "engine/device_operation.hpp"

namespace paceline {

void leave_out_shared(Problem& problem) {
  problem.one_node = problem.single_copy = problem.symmetric = problem.node_staging = false;
}

// Signals alone do not make a call straight: those of a message algorithm go to one peer each.
std::unique_ptr<Operation> operation_of(const Prepared& prepared, Channel channel) {
  if (!prepared.load_store && !prepared.bound->mixed) channel.shm = nullptr;
  const Call& call = prepared.shape.call;
  if (!call.device.end) return make_operation(prepared.bound, channel);
  return std::make_unique<DeviceOperation>(prepared.bound, channel, call.device.end, call.op);
}

void follow(ActiveOp& flight, const OnDevice& device) {
  if (!device.end) return;
  static_cast<DeviceOperation&>(*flight.operation).set_begin(device.end->mark(device.stream));
}

}  // namespace paceline
