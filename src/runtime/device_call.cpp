#include "runtime/device_call.hpp"

#include <utility>

#include "engine/claimed.hpp"
#include "engine/message_operation.hpp"
#include "engine/mixed.hpp"
#include "engine/shm/load_store.hpp"

namespace paceline {
namespace {

std::unique_ptr<Operation> on_host(std::shared_ptr<const CompiledSchedule> bound,
                                   const Channel& channel) {
  if (!bound->positions.empty() || bound->by_arrival)
    return std::make_unique<ClaimedOperation>(std::move(bound), channel);
  if (bound->load_store)
    return std::make_unique<LoadStoreOperation>(std::move(bound), channel);
  if (bound->mixed) return std::make_unique<MixedOperation>(std::move(bound), channel);
  return std::make_unique<MessageOperation>(std::move(bound), channel);
}

}  // namespace

void leave_out_shared(Problem& problem) {
  problem.one_node = problem.single_copy = problem.symmetric = problem.node_staging = false;
}

// Only load/store and mixed schedules use the shm channel. A message algorithm may have signals
// too, each of which goes to one peer.
std::unique_ptr<Operation> operation_of(const Prepared& prepared, Channel channel) {
  if (!prepared.load_store && !prepared.bound->mixed) channel.shm = nullptr;
  const Call& call = prepared.shape.call;
  if (!call.device.end) return on_host(prepared.bound, channel);
  return std::make_unique<DeviceOperation>(prepared.bound, channel, call.device.end, call.op);
}

Ahead::Ahead(ActiveOp& active, const Call& call) {
  if (!call.device.end) return;
  operation_ = static_cast<DeviceOperation*>(active.operation.get());
  operation_->enqueue(call.input, call.output, call.device.stream);
}

Ahead::~Ahead() {
  if (operation_ && operation_->is_ahead()) operation_->give_up();
}

}  // namespace paceline
