#include "engine/operation.hpp"

#include <algorithm>

#include "base/copy_bytes.hpp"

namespace paceline {
namespace {

Activity activity_of(Kind kind) {
  switch (kind) {
    case Kind::send:
      return Activity::send;
    case Kind::recv:
    case Kind::recv_reduce:
      return Activity::recv;
    case Kind::reduce:
    case Kind::finish:
      return Activity::reduce;
    case Kind::signal:
      return Activity::signal;
    case Kind::wait:
      return Activity::wait;
    default:
      return Activity::copy;
  }
}

}  // namespace

Operation::Operation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel)
    : compiled_(std::move(bound)), channel_(channel) {
  std::uint32_t most = 0;
  for (const CompiledStep& step : compiled_->steps) most = std::max(most, step.places);
  sources_.resize(most);
}

bool talks(Kind kind) { return kind != Kind::reduce && kind != Kind::copy && kind != Kind::finish; }

void Operation::start(const Buffers& buffers, std::uint32_t number,
                      const Fingerprint& fingerprint) {
  // The schedule never writes the input unless it is the same memory as the output.
  base_[0] = const_cast<std::byte*>(static_cast<const std::byte*>(buffers.input));
  base_[1] = static_cast<std::byte*>(buffers.output);
  base_[2] = buffers.scratch;
  peers_ = buffers.peers;
  number_.store(number, std::memory_order_relaxed);
  fingerprint_ = fingerprint;
  started_ = true;
  if (error_) error_.reset();   // without an error no write: other threads may read it
  if (failure_) failure_.reset();
  done_.store(false, std::memory_order_release);
  begin();
}

void Operation::stop(Transport& transport, const Error& error) {
  if (!under_way() || error_) return;
  cancel(transport);
  error_ = error;
  if (!runs_out()) complete();
}

std::byte* Operation::at_peer(const Place& place) const {
  if (place.space == Space::scratch) return scratch_of(place.owner) + place.offset;
  const PeerBuffers& peer = peers_[place.owner];
  return (place.space == Space::input ? peer.input : peer.output) + place.offset;
}

std::byte* Operation::scratch_of(int position) const {
  fail(Fault::internal, "internal: ", describe(), " reads the scratch of rank ", position,
       ", which it does not reach");
}

// reduce: {target, sources}; copy: {target, source}, a reduction of one source; finish: {block}.
void Operation::combine(const CompiledStep& step) {
  const std::size_t element = size_of(compiled_->type);
  for (std::uint32_t i = 0; i < step.stretches; ++i) {
    const Stretch& stretch = compiled_->stretches[step.first + i];
    const Place* places = compiled_->places.data() + stretch.first_place;
    if (step.places == 1) {
      if (compiled_->divisor > 1)
        divide(at(places[0]), compiled_->type, stretch.elements, compiled_->divisor);
    } else if (step.places == 2) {
      copy_bytes(at(places[0]), at(places[1]), stretch.elements * element);
    } else {
      for (std::uint32_t k = 1; k < step.places; ++k) sources_[k - 1] = at(places[k]);
      compiled_->reduce(at(places[0]), sources_.data(), static_cast<int>(step.places) - 1,
                     stretch.elements);
    }
  }
}

std::string Operation::describe() const {
  const Schedule& s = schedule();
  return str(name_of(s.problem.collective), " #", number(), " (", s.algorithm, ", ",
             s.problem.ranks, " ranks)");
}

void Operation::log(std::uint32_t id, double begin_s, int steps) {
  const Step& step = schedule().steps[id];
  Event event;
  event.activity = activity_of(step.kind);
  event.peer = talks(step.kind) ? peer_of(step.peer) : -1;
  event.step = static_cast<int>(id);
  event.steps = steps;
  event.segment = schedule().segment_of(id);
  event.begin_s = begin_s;
  event.end_s = now_s_();
  event.bytes = compiled_->steps[id].bytes;
  events_->push_back(event);
}

}  // namespace paceline
