#include "engine/message_operation.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace paceline {
namespace {

bool is_send(Kind kind) { return kind == Kind::send || kind == Kind::signal; }

// Sort key of a message among those of a call.
std::tuple<int, int, int> place_of(int peer, const Key& key) { return {peer, key.lane, key.seq}; }

}  // namespace

MessageOperation::MessageOperation(std::shared_ptr<const CompiledSchedule> bound,
                                   const Channel& channel)
    : Operation(std::move(bound), channel) {
  const Schedule& s = schedule();
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
    t.peer = rank_of(step.peer);
    t.bytes = compiled_->steps[i].bytes;
    t.key = {channel.context, 0, step.lane, step.kind == Kind::signal || step.kind == Kind::wait,
             step.seq};
    if (step.kind == Kind::recv_reduce) {
      reductions_[i] = {this, i};
      t.consume = &MessageOperation::consume;
      t.state = &reductions_[i];
    } else {
      t.parts.resize(compiled_->steps[i].stretches + (is_noted(i) ? 1 : 0));
    }
    if (is_noted(i)) t.bytes += Notes::kBytes;
  }
  if (!compiled_->has_notes) return;
  notes_.emplace(s.problem.ranks, s.problem.rank, talking);
  for (std::uint32_t i = 0; i < s.steps.size(); ++i)
    if (is_noted(i) && !is_send(s.steps[i].kind)) by_key_.push_back(message_of(i));
  std::sort(by_key_.begin(), by_key_.end(), [&](std::size_t a, std::size_t b) {
    return place_of(transfers_[a].peer, transfers_[a].key) <
           place_of(transfers_[b].peer, transfers_[b].key);
  });
}

// Signals carry no values, so they have no notes.
bool MessageOperation::is_noted(std::uint32_t step) const {
  const Kind kind = schedule().steps[step].kind;
  return compiled_->has_notes && talks(kind) && kind != Kind::signal && kind != Kind::wait;
}

void MessageOperation::sighted(int peer, const Key& key) {
  if (!notes_ || key.signal) return;
  const auto wanted = place_of(peer, key);
  const auto found = std::lower_bound(
      by_key_.begin(), by_key_.end(), wanted, [&](std::size_t message, const auto& place) {
        return place_of(transfers_[message].peer, transfers_[message].key) < place;
      });
  if (found == by_key_.end()) return;
  const Transfer& t = transfers_[*found];
  if (place_of(t.peer, t.key) == wanted) notes_->sighted(*found, channel_.now_s());
}

void MessageOperation::begin() {
  const Schedule& s = schedule();
  open_ = s.steps.size();
  missing_ = s.indegree;
  running_.clear();
  ready_.clear();
  next_ready_ = 0;
  for (std::uint32_t i = 0; i < s.steps.size(); ++i)
    if (missing_[i] == 0) ready_.push_back(i);
  if (events_) begun_s_.assign(s.steps.size(), 0);
  if (notes_) notes_->begin(channel_.now_s());
  if (s.steps.empty()) end_all();
}

bool MessageOperation::advance(Transport& transport) {
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
    if (notes_ && is_noted(step) && !is_send(schedule().steps[step].kind))
      notes_->received(message_of(step));
    end(step);
    moved = true;
  }
  while (next_ready_ < ready_.size()) {
    run(ready_[next_ready_++], transport);
    moved = true;
  }
  return moved;
}

void MessageOperation::run(std::uint32_t step, Transport& transport) {
  const Kind kind = schedule().steps[step].kind;
  const double begin_s = events_ ? now_s_() : 0;
  if (talks(kind)) {
    if (events_) begun_s_[step] = begin_s;
    return post(step, transport);
  }
  combine(compiled_->steps[step]);
  if (events_) log(step, begin_s);
  end(step);
}

void MessageOperation::post(std::uint32_t step, Transport& transport) {
  const CompiledStep& b = compiled_->steps[step];
  Transfer& t = transfers_[static_cast<std::size_t>(transfer_of_[step])];
  t.key.number = number();
  t.fingerprint = fingerprint_;
  t.priority = priority_;
  t.done.store(false, std::memory_order_relaxed);
  t.moved = 0;
  t.granted = false;
  const std::size_t element = size_of(compiled_->type);
  for (std::size_t i = 0; i < b.stretches && !t.parts.empty(); ++i) {
    const Stretch& stretch = compiled_->stretches[b.first + i];
    t.parts[i] = {at(compiled_->places[stretch.first_place]), stretch.elements * element};
  }
  running_.push_back(step);
  const bool sends = is_send(schedule().steps[step].kind);
  if (notes_ && is_noted(step) && !t.parts.empty())
    t.parts.back() = sends ? notes_->to_send(message_of(step), channel_.now_s())
                           : notes_->to_receive(message_of(step));
  if (sends)
    transport.send(t);
  else
    transport.recv(t);
}

void MessageOperation::consume(void* state, std::size_t offset, const std::byte* data,
                              std::size_t bytes) {
  const auto& reduction = *static_cast<Reduction*>(state);
  reduction.operation->consume(reduction.step, offset, data, bytes);
}

void MessageOperation::consume(std::uint32_t step, std::size_t offset, const std::byte* data,
                              std::size_t bytes) {
  const CompiledStep& b = compiled_->steps[step];
  const std::size_t values = std::min(bytes, b.bytes - std::min(offset, b.bytes));
  if (values > 0) consume(b, offset, data, values);
  if (values == bytes) return;
  const std::size_t at = offset + values - b.bytes;   // among the notes
  std::memcpy(notes_->to_receive(message_of(step)).data + at, data + values, bytes - values);
}

void MessageOperation::consume(const CompiledStep& step, std::size_t offset, const std::byte* data,
                        std::size_t bytes) const {
  const std::size_t element = size_of(compiled_->type);
  for (std::uint32_t i = 0; i < step.stretches && bytes > 0; ++i) {
    const Stretch& stretch = compiled_->stretches[step.first + i];
    const std::size_t length = stretch.elements * element;
    if (offset >= length) {
      offset -= length;
      continue;
    }
    const std::size_t now = std::min(bytes, length - offset);
    const Place* places = compiled_->places.data() + stretch.first_place;
    for (std::uint32_t k = 1; k < step.places; ++k)
      sources_[k - 1] =
          static_cast<std::int32_t>(k) - 1 == step.incoming ? data : at(places[k]) + offset;
    compiled_->reduce(at(places[0]) + offset, sources_.data(), static_cast<int>(step.places) - 1,
                   now / element);
    data += now;
    bytes -= now;
    offset = 0;
  }
}

void MessageOperation::end(std::uint32_t step) {
  const Schedule& s = schedule();
  for (std::uint32_t e = s.edge_begin[step]; e < s.edge_begin[step + 1]; ++e)
    if (--missing_[s.edges[e]] == 0) ready_.push_back(s.edges[e]);
  if (--open_ > 0) return;
  if (notes_) notes_->end(channel_.now_s());
  end_all();
}

void MessageOperation::cancel(Transport& transport) {
  for (std::uint32_t step : running_)
    transport.cancel(transfers_[static_cast<std::size_t>(transfer_of_[step])]);
  running_.clear();
  ready_.clear();  // no further step may start: the caller gets its buffers back now
  next_ready_ = 0;
}

std::vector<int> MessageOperation::waits_for() const {
  std::vector<int> peers;
  for (std::uint32_t step : running_)
    peers.push_back(transfers_[static_cast<std::size_t>(transfer_of_[step])].peer);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace paceline
