#include "engine/device_operation.hpp"

#include <algorithm>
#include <utility>

namespace paceline {

using device::Memory;
using device::Stream;

namespace {

bool is_send(Kind kind) { return kind == Kind::send || kind == Kind::signal; }
bool has_data(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

}  // namespace

DeviceOperation::DeviceOperation(std::shared_ptr<const CompiledSchedule> bound,
                                 const Channel& channel,
                                 std::shared_ptr<DeviceEnd> end, Op op)
    : Operation(std::move(bound), channel), end_(std::move(end)), op_(op) {
  const Schedule& s = schedule();
  const std::size_t steps = s.steps.size();
  before_begin_.assign(steps + 1, 0);
  for (std::uint32_t edge : s.edges) ++before_begin_[edge + 1];
  for (std::size_t i = 0; i < steps; ++i) before_begin_[i + 1] += before_begin_[i];
  before_.resize(s.edges.size());
  std::vector<std::uint32_t> next(before_begin_.begin(), before_begin_.end() - 1);
  for (std::uint32_t i = 0; i < steps; ++i)
    for (std::uint32_t e = s.edge_begin[i]; e < s.edge_begin[i + 1]; ++e)
      before_[next[s.edges[e]]++] = i;
  event_of_.resize(steps);
  slots_.assign(steps, nullptr);
  transfer_of_.assign(steps, -1);
  begun_s_.assign(steps, 0);
  transfers_ = std::vector<Transfer>(static_cast<std::size_t>(std::count_if(
      s.steps.begin(), s.steps.end(), [](const Step& step) { return talks(step.kind); })));
  std::int32_t number = 0;
  for (std::uint32_t i = 0; i < steps; ++i) {
    const Step& step = s.steps[i];
    require(step.kind != Kind::recv_reduce, "device: ", s.algorithm, " is fused");
    if (!talks(step.kind)) continue;
    Transfer& t = transfers_[static_cast<std::size_t>(number)];
    transfer_of_[i] = number++;
    t.peer = rank_of(step.peer);
    t.bytes = bound_->steps[i].bytes;
    t.key = {channel.context, 0, step.lane, !has_data(step.kind), step.seq};
    t.parts.resize(has_data(step.kind) && t.bytes > 0 ? 1 : 0);
  }
  if (bound_->scratch_bytes > 0)
    scratch_ = end_->driver().allocate(end_->device(), bound_->scratch_bytes);
  word_ = end_->take_word();
}

DeviceOperation::~DeviceOperation() {
  if (begins_after_ != device::Event{}) end_->give(begins_after_);
  if (scratch_) end_->driver().release(end_->device(), scratch_);
  end_->give(word_);
}

void DeviceOperation::begin() {
  const Schedule& s = schedule();
  base_[2] = scratch_;
  open_ = s.steps.size();
  missing_ = s.indegree;
  ready_.clear();
  next_ready_ = 0;
  running_.clear();
  for (std::uint32_t i = 0; i < s.steps.size(); ++i)
    if (missing_[i] == 0) ready_.push_back(i);
  ended_ = word_->load(std::memory_order_relaxed) + 1;
  end_->begin_call();
  if (open_ == 0) finish();
}

void DeviceOperation::join(Stream stream) { end_->driver().wait(stream, word_, ended_); }

bool DeviceOperation::advance(Transport& transport) {
  if (done() || failure()) return false;
  try {
    // Until the caller's stream has come so far the host looks, and streams do not wait: what it
    // enqueued might wait for an operation whose tasks would then stand behind this one's.
    if (begins_after_ != device::Event{}) {
      if (!end_->driver().is_done(begins_after_)) return false;
      end_->give(std::exchange(begins_after_, device::Event{}));
    }
    bool moved = look_at_transfers();
    moved |= look_at_queues(transport);
    while (next_ready_ < ready_.size()) {
      issue(ready_[next_ready_++], transport);
      moved = true;
    }
    return moved;
  } catch (const Error& error) {
    fail_with(error, transport);
    return true;
  }
}

void DeviceOperation::issue(std::uint32_t step, Transport& transport) {
  begun_s_[step] = end_->now_s();
  const Kind kind = schedule().steps[step].kind;
  if (talks(kind)) return issue_message(step, transport);
  if (kind == Kind::finish && bound_->divisor == 1) {
    release_those_after(step);   // which look through it
    return end(step);
  }
  issue_combination(step);
}

// What tells a peer something goes by the stream as well, with nothing to copy: it comes after the
// device's tasks before it.
void DeviceOperation::issue_message(std::uint32_t step, Transport& transport) {
  const Kind kind = schedule().steps[step].kind;
  const std::size_t bytes = has_data(kind) ? bound_->steps[step].bytes : 0;
  if (bytes > 0) slots_[step] = end_->take_pinned(bytes);
  if (!is_send(kind)) return post(step, transport, false);
  wait_for_those_before(step, end_->out());
  if (bytes > 0) copy_stretches(step, end_->out(), true);
  enqueued(step, out_, end_->out());
  release_those_after(step);   // once the copy is made the message needs the buffer no more
}

void DeviceOperation::issue_combination(std::uint32_t step) {
  const CompiledStep& b = bound_->steps[step];
  wait_for_those_before(step, end_->work());
  const std::size_t element = size_of(bound_->type);
  for (std::uint32_t i = 0; i < b.stretches; ++i) {
    const Stretch& stretch = bound_->stretches[b.first + i];
    const Place* places = bound_->places.data() + stretch.first_place;
    if (b.places == 2) {
      end_->driver().copy(end_->work(), {memory_at(places[0]), memory_at(places[1]),
                                         stretch.elements * element});
      continue;
    }
    device::Combine combine{.target = memory_at(places[0]), .sources = {},
                            .count = stretch.elements, .type = bound_->type, .op = op_};
    const bool divides = b.places == 1;
    for (std::uint32_t k = divides ? 0 : 1; k < b.places; ++k)
      combine.sources.push_back(memory_at(places[k]));
    if (divides) combine.divisor = bound_->divisor;
    end_->driver().combine(end_->work(), combine);
  }
  enqueued(step, work_, end_->work());
  release_those_after(step);
}

void DeviceOperation::copy_stretches(std::uint32_t step, Stream stream, bool out) {
  const CompiledStep& b = bound_->steps[step];
  std::byte* slot = slots_[step];
  for (std::uint32_t i = 0; i < b.stretches; ++i) {
    const Stretch& stretch = bound_->stretches[b.first + i];
    const std::size_t bytes = stretch.elements * size_of(bound_->type);
    const Memory here = memory_at(bound_->places[stretch.first_place]);
    const Memory there{device::kHost, slot};
    end_->driver().copy(stream, out ? device::Copy{there, here, bytes}
                                    : device::Copy{here, there, bytes});
    slot += bytes;
  }
}

void DeviceOperation::enqueued(std::uint32_t step, Queue& queue, Stream stream) {
  event_of_[step] = end_->take_event();
  end_->driver().record(event_of_[step], stream);
  end_->begin(queue.stage);
  queue.steps.push_back(step);
}

// One without a task of its own is looked through.
void DeviceOperation::wait_for_those_before(std::uint32_t step, Stream stream) {
  for (std::uint32_t i = before_begin_[step]; i < before_begin_[step + 1]; ++i) {
    const std::uint32_t earlier = before_[i];
    if (event_of_[earlier] != device::Event{})
      end_->driver().wait(stream, event_of_[earlier]);
    else
      wait_for_those_before(earlier, stream);
  }
}

void DeviceOperation::release_those_after(std::uint32_t step) {
  const Schedule& s = schedule();
  for (std::uint32_t e = s.edge_begin[step]; e < s.edge_begin[step + 1]; ++e)
    if (--missing_[s.edges[e]] == 0) ready_.push_back(s.edges[e]);
}

void DeviceOperation::post(std::uint32_t step, Transport& transport, bool sends) {
  Transfer& t = transfers_[static_cast<std::size_t>(transfer_of_[step])];
  t.key.number = number_;
  t.fingerprint = fingerprint_;
  t.done.store(false, std::memory_order_relaxed);
  t.moved = 0;
  t.granted = false;
  if (!t.parts.empty()) t.parts[0] = {slots_[step], t.bytes};
  running_.push_back(step);
  end_->begin(sends ? StageOf::send : StageOf::receive);
  if (sends)
    transport.send(t);
  else
    transport.recv(t);
}

bool DeviceOperation::look_at_transfers() {
  bool moved = false;
  for (std::size_t i = 0; i < running_.size();) {
    const std::uint32_t step = running_[i];
    if (!transfers_[static_cast<std::size_t>(transfer_of_[step])].done.load(
            std::memory_order_acquire)) {
      ++i;
      continue;
    }
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    const Kind kind = schedule().steps[step].kind;
    end_->end(is_send(kind) ? StageOf::send : StageOf::receive);
    moved = true;
    if (kind == Kind::recv && slots_[step]) {
      wait_for_those_before(step, end_->in());
      copy_stretches(step, end_->in(), false);
      enqueued(step, in_, end_->in());
      release_those_after(step);
      continue;
    }
    free_slot(step);
    if (!is_send(kind)) release_those_after(step);
    end(step);
  }
  return moved;
}

// In each queue tasks end in order.
bool DeviceOperation::look_at_queues(Transport& transport) {
  bool moved = false;
  for (Queue* queue : {&out_, &in_, &work_})
    while (!queue->steps.empty() && end_->driver().is_done(event_of_[queue->steps.front()])) {
      const std::uint32_t step = queue->steps.front();
      queue->steps.pop_front();
      end_->end(queue->stage);
      device_done(step, queue->stage, transport);
      moved = true;
    }
  return moved;
}

void DeviceOperation::device_done(std::uint32_t step, StageOf stage, Transport& transport) {
  if (stage == StageOf::copy_out) return post(step, transport, true);
  free_slot(step);
  end(step);
}

void DeviceOperation::end(std::uint32_t step) {
  if (events_) log(step, begun_s_[step]);
  if (--open_ == 0) finish();
}

void DeviceOperation::finish() {
  forget_events();
  end_->end_call();
  word_->store(ended_, std::memory_order_release);
  complete();
}

void DeviceOperation::free_slot(std::uint32_t step) {
  if (std::byte* slot = std::exchange(slots_[step], nullptr))
    end_->give_pinned(slot, bound_->steps[step].bytes);
}

void DeviceOperation::forget_events() {
  for (device::Event& event : event_of_)
    if (event != device::Event{}) end_->give(std::exchange(event, device::Event{}));
}

// The device: whoever looks after the operation breaks its group.
void DeviceOperation::fail_with(const Error& error, Transport& transport) {
  cancel(transport);
  failure_ = error;
}

void DeviceOperation::cancel(Transport& transport) {
  for (std::uint32_t step : running_) {
    transport.cancel(transfers_[static_cast<std::size_t>(transfer_of_[step])]);
    end_->end(is_send(schedule().steps[step].kind) ? StageOf::send : StageOf::receive);
  }
  running_.clear();
  ready_.clear();
  next_ready_ = 0;
  for (Queue* queue : {&out_, &in_, &work_}) {
    for (std::uint32_t step : queue->steps) {
      try {   // buffers go back to the caller: nothing may touch them afterwards
        end_->driver().synchronize(event_of_[step]);
      } catch (const Error&) {   // a device that has gone touches nothing either
      }
      end_->end(queue->stage);
    }
    queue->steps.clear();
  }
  for (std::uint32_t step = 0; step < slots_.size(); ++step) free_slot(step);
  if (begins_after_ != device::Event{}) end_->give(std::exchange(begins_after_, device::Event{}));
  if (failure()) return;   // it has been cancelled before
  forget_events();
  end_->end_call();
  word_->store(ended_, std::memory_order_release);
}

std::vector<int> DeviceOperation::waits_for() const {
  std::vector<int> peers;
  for (std::uint32_t step : running_)
    peers.push_back(transfers_[static_cast<std::size_t>(transfer_of_[step])].peer);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace paceline
