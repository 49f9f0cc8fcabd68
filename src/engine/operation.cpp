#include "engine/operation.hpp"

#include <algorithm>
#include <cstring>

namespace paceline {
namespace {

bool talks(Kind kind) { return kind != Kind::reduce && kind != Kind::copy && kind != Kind::finish; }
bool is_send(Kind kind) { return kind == Kind::send || kind == Kind::signal; }

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

Operation::Operation(std::shared_ptr<const Bound> bound, const Channel& channel)
    : bound_(std::move(bound)), channel_(channel) {
  const Schedule& s = *bound_->schedule;
  const std::size_t talking = static_cast<std::size_t>(std::count_if(
      s.steps.begin(), s.steps.end(), [](const Step& step) { return talks(step.kind); }));
  transfers_ = std::vector<Transfer>(talking);
  transfer_of_.assign(s.steps.size(), -1);
  reductions_.resize(s.steps.size());
  missing_.resize(s.steps.size());
  ready_.resize(s.steps.size());
  running_.reserve(talking);
  std::int32_t next = 0;
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
    const Step& step = s.steps[i];
    if (!talks(step.kind)) continue;
    Transfer& t = transfers_[static_cast<std::size_t>(next)];
    transfer_of_[i] = next++;
    t.peer = (*channel.ranks)[static_cast<std::size_t>(step.peer)];
    t.bytes = bound_->steps[i].bytes;
    t.key = {channel.context, 0, step.lane, step.kind == Kind::signal || step.kind == Kind::wait,
             step.seq};
    if (step.kind == Kind::recv_reduce) {
      reductions_[i] = {this, i};
      t.consume = &Operation::consume;
      t.state = &reductions_[i];
    } else {
      t.parts.resize(bound_->steps[i].stretches);
    }
  }
}

Operation::~Operation() = default;

void Operation::start(Buffers buffers, std::uint32_t number,
                      const Fingerprint& fingerprint) {
  const Schedule& s = *bound_->schedule;
  // The schedule never writes the input unless it is the same memory as the output.
  base_[0] = const_cast<std::byte*>(static_cast<const std::byte*>(buffers.input));
  base_[1] = static_cast<std::byte*>(buffers.output);
  base_[2] = buffers.scratch;
  peers_ = std::move(buffers.peers);
  number_ = number;
  fingerprint_ = fingerprint;
  started_ = true;
  error_.reset();
  done_.store(s.steps.empty(), std::memory_order_release);
  open_ = s.steps.size();
  missing_ = s.indegree;
  running_.clear();
  ready_.clear();
  next_ready_ = 0;
  for (std::uint32_t i = 0; i < s.steps.size(); ++i)
    if (missing_[i] == 0) ready_.push_back(i);
  if (events_) begun_s_.assign(s.steps.size(), 0);
}

std::byte* Operation::at(const Place& place) const {
  if (place.owner == kOwn) return base_[static_cast<std::size_t>(place.space)] + place.offset;
  const PeerBuffers& peer = peers_[static_cast<std::size_t>(place.owner)];
  return (place.space == Space::input ? peer.input : peer.output) + place.offset;
}

bool Operation::advance(Transport& transport) {
  bool moved = false;
  for (std::size_t i = 0; i < running_.size();) {
    const std::uint32_t step = running_[i];
    if (!transfers_[static_cast<std::size_t>(transfer_of_[step])].done.load(
            std::memory_order_acquire)) {
      ++i;
      continue;
    }
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    if (events_) log(step, begun_s_[step]);
    complete(step);
    moved = true;
  }
  while (next_ready_ < ready_.size()) {
    run(ready_[next_ready_++], transport);
    moved = true;
  }
  return moved;
}

void Operation::run(std::uint32_t step, Transport& transport) {
  const Kind kind = bound_->schedule->steps[step].kind;
  const double begin_s = events_ ? now_s_() : 0;
  if (talks(kind)) {
    if (events_) begun_s_[step] = begin_s;
    return post(step, transport);
  }
  combine(bound_->steps[step]);
  if (events_) log(step, begin_s);
  complete(step);
}

void Operation::post(std::uint32_t step, Transport& transport) {
  const BoundStep& b = bound_->steps[step];
  Transfer& t = transfers_[static_cast<std::size_t>(transfer_of_[step])];
  t.key.number = number_;
  t.fingerprint = fingerprint_;
  t.done.store(false, std::memory_order_relaxed);
  t.moved = 0;
  t.granted = false;
  const std::size_t element = size_of(bound_->type);
  for (std::size_t i = 0; i < t.parts.size(); ++i) {
    const Stretch& stretch = bound_->stretches[b.first + i];
    t.parts[i] = {at(bound_->places[stretch.first_place]), stretch.elements * element};
  }
  running_.push_back(step);
  if (is_send(bound_->schedule->steps[step].kind))
    transport.send(t);
  else
    transport.recv(t);
}

// reduce: {target, sources}; copy: {target, source}, a reduction of one source; finish: {block}.
void Operation::combine(const BoundStep& step) {
  const std::size_t element = size_of(bound_->type);
  for (std::uint32_t i = 0; i < step.stretches; ++i) {
    const Stretch& stretch = bound_->stretches[step.first + i];
    const Place* places = bound_->places.data() + stretch.first_place;
    if (step.places == 1) {
      if (bound_->divisor > 1)
        divide(at(places[0]), bound_->type, stretch.elements, bound_->divisor);
    } else if (step.places == 2) {
      std::memcpy(at(places[0]), at(places[1]), stretch.elements * element);
    } else {
      const void* sources[16];
      require(step.places <= 17, "a reduce with ", step.places - 1, " sources");
      for (std::uint32_t k = 1; k < step.places; ++k) sources[k - 1] = at(places[k]);
      bound_->reduce(at(places[0]), sources, static_cast<int>(step.places) - 1, stretch.elements);
    }
  }
}

void Operation::consume(void* state, std::size_t offset, const std::byte* data, std::size_t bytes) {
  const auto& reduction = *static_cast<Reduction*>(state);
  reduction.operation->consume(reduction.operation->bound_->steps[reduction.step], offset, data,
                               bytes);
}

void Operation::consume(const BoundStep& step, std::size_t offset, const std::byte* data,
                        std::size_t bytes) const {
  const std::size_t element = size_of(bound_->type);
  for (std::uint32_t i = 0; i < step.stretches && bytes > 0; ++i) {
    const Stretch& stretch = bound_->stretches[step.first + i];
    const std::size_t length = stretch.elements * element;
    if (offset >= length) {
      offset -= length;
      continue;
    }
    const std::size_t now = std::min(bytes, length - offset);
    const Place* places = bound_->places.data() + stretch.first_place;
    const void* sources[16];
    for (std::uint32_t k = 1; k < step.places; ++k)
      sources[k - 1] =
          static_cast<std::int32_t>(k) - 1 == step.incoming ? data : at(places[k]) + offset;
    bound_->reduce(at(places[0]) + offset, sources, static_cast<int>(step.places) - 1,
                   now / element);
    data += now;
    bytes -= now;
    offset = 0;
  }
}

void Operation::complete(std::uint32_t step) {
  const Schedule& s = *bound_->schedule;
  for (std::uint32_t e = s.edge_begin[step]; e < s.edge_begin[step + 1]; ++e)
    if (--missing_[s.edges[e]] == 0) ready_.push_back(s.edges[e]);
  if (--open_ == 0) done_.store(true, std::memory_order_release);
}

void Operation::stop(Transport& transport, const Error& error) {
  if (!under_way()) return;
  for (std::uint32_t step : running_)
    transport.cancel(transfers_[static_cast<std::size_t>(transfer_of_[step])]);
  running_.clear();
  ready_.clear();  // what could have started must not: the buffers go back to the caller now
  next_ready_ = 0;
  error_ = error;
  done_.store(true, std::memory_order_release);
}

std::vector<int> Operation::waits_for() const {
  std::vector<int> peers;
  for (std::uint32_t step : running_)
    peers.push_back(transfers_[static_cast<std::size_t>(transfer_of_[step])].peer);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

std::string Operation::describe() const {
  const Schedule& s = *bound_->schedule;
  return str(name_of(s.problem.collective), " #", number_, " (", s.algorithm, ", ", s.problem.ranks,
             " ranks)");
}

void Operation::log(std::uint32_t id, double begin_s) {
  const Step& step = bound_->schedule->steps[id];
  const Schedule& s = *bound_->schedule;
  Event event;
  event.activity = activity_of(step.kind);
  event.peer = talks(step.kind) ? (*channel_.ranks)[static_cast<std::size_t>(step.peer)] : -1;
  event.step = static_cast<int>(id);
  event.segment = s.segment_of(id);
  event.begin_s = begin_s;
  event.end_s = now_s_();
  event.bytes = bound_->steps[id].bytes;
  events_->push_back(event);
}

}  // namespace paceline
