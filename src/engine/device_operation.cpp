#include "engine/device_operation.hpp"

#include <algorithm>
#include <utility>

namespace paceline {

using device::Stream;

namespace {

constexpr double kRunsOutS = 1;   // after this time the driver is asked if the device still exists

bool is_send(Kind kind) { return kind == Kind::send || kind == Kind::signal; }
bool is_receive(Kind kind) { return kind == Kind::recv || kind == Kind::wait; }
bool has_data(Kind kind) { return kind == Kind::send || kind == Kind::recv; }

}  // namespace

DeviceOperation::DeviceOperation(std::shared_ptr<const CompiledSchedule> bound,
                                 const Channel& channel,
                                 std::shared_ptr<DeviceEnd> end, Op op)
    : Operation(std::move(bound), channel), end_(std::move(end)), op_(op),
      out_{StageOf::copy_out, end_->out()}, in_{StageOf::copy_in, end_->in()},
      work_{StageOf::reduce, end_->work()} {
  const Schedule& s = schedule();
  const std::size_t steps = s.steps.size();
  require(compiled_->order.size() == steps, "device: ", s.algorithm, " has no order");
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
    t.bytes = compiled_->steps[i].bytes;
    t.key = {channel.context, 0, step.lane, !has_data(step.kind), step.seq};
    t.parts.resize(has_data(step.kind) && t.bytes > 0 ? 1 : 0);
  }
  for (std::uint32_t step : compiled_->order)
    if (is_receive(s.steps[step].kind)) receives_.push_back(step);
  scratch_ = end_->take_scratch(compiled_->scratch_bytes);
  messages_ = end_->take_word();
  for (Line* line : {&out_, &in_, &work_}) {
    line->word = end_->take_word();
    line->end = end_->take_event();
  }
}

DeviceOperation::~DeviceOperation() {
  if (is_ahead_ || !done()) give_up();
  end_->give_scratch(scratch_, compiled_->scratch_bytes);
  end_->give(messages_);
  for (Line* line : {&out_, &in_, &work_}) {
    end_->give(line->word);
    end_->give(line->end);
  }
}

bool DeviceOperation::moves(std::uint32_t step) const {
  return has_data(schedule().steps[step].kind) && compiled_->steps[step].bytes > 0;
}

// Returns null if nothing is enqueued for the step.
DeviceOperation::Line* DeviceOperation::line_of(std::uint32_t step) {
  const Kind kind = schedule().steps[step].kind;
  if (is_send(kind)) return &out_;
  if (is_receive(kind)) return &in_;
  return kind == Kind::finish && compiled_->divisor == 1 ? nullptr : &work_;
}

void DeviceOperation::begin() {
  const Schedule& s = schedule();
  require(is_ahead_, "device: ", s.algorithm, " is started and not enqueued");
  is_ahead_ = false;
  base_[2] = scratch_;
  open_ = s.steps.size();
  missing_ = s.indegree;
  issued_.assign(s.steps.size(), false);
  arrived_.assign(s.steps.size(), false);
  next_receive_ = 0;
  ready_.clear();
  next_ready_ = 0;
  running_.clear();
  for (std::uint32_t i = 0; i < s.steps.size(); ++i)
    if (missing_[i] == 0) ready_.push_back(i);
  end_->begin_call();
  if (open_ == 0) finish();
}

void DeviceOperation::join(Stream stream) {
  for (const Line* line : {&out_, &in_, &work_})
    if (line->given > 0) end_->driver().wait(stream, line->end);
}

bool DeviceOperation::advance(Transport& transport) {
  if (done()) return false;
  try {
    bool moved = look_at_transfers();
    moved |= look_at_lines(transport);
    while (!error() && next_ready_ < ready_.size()) {
      issue(ready_[next_ready_++], transport);
      moved = true;
    }
    return moved;
  } catch (const Error& trouble) {   // the session breaks its group
    if (trouble.fault() == Fault::lost) forget_lines();   // a lost device touches nothing
    if (!error())
      failure_ = trouble;
    else if (!runs_out())
      finish();
    return true;
  }
}

bool DeviceOperation::is_counted(const Line& line, std::uint32_t step) const {
  return &line == &in_ ? arrived_[step] : issued_[step];
}

void DeviceOperation::forget_lines() {
  for (Line* line : {&out_, &in_, &work_}) {
    for (std::uint32_t step : line->steps)
      if (is_counted(*line, step)) end_->end(line->stage);
    line->steps.clear();
  }
}

// Issues a step, whose work on the device is already enqueued; from now on it may be seen as done.
void DeviceOperation::issue(std::uint32_t step, Transport& transport) {
  begun_s_[step] = end_->now_s();
  issued_[step] = true;
  Line* const line = line_of(step);
  if (line == &in_) return post(step, transport, false);
  if (line) end_->begin(line->stage);
  release_those_after(step);   // they may start at once: the streams order the work
  if (!line) end(step);
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
    const bool sent = is_send(schedule().steps[step].kind);
    end_->end(sent ? StageOf::send : StageOf::receive);
    moved = true;
    if (!sent) {
      arrive(step);
      continue;
    }
    free_slot(step);
    end(step);
  }
  return moved;
}

// Messages may arrive in an order other than that in which the stream waits for them.
void DeviceOperation::arrive(std::uint32_t step) {
  arrived_[step] = true;
  end_->begin(in_.stage);
  release_those_after(step);
  while (next_receive_ < receives_.size() && arrived_[receives_[next_receive_]]) ++next_receive_;
  messages_->store(messages_base_ + static_cast<std::uint32_t>(next_receive_),
                   std::memory_order_release);
}

// Tasks of a line end in order. A device may be ahead of the issued steps.
bool DeviceOperation::look_at_lines(Transport& transport) {
  bool moved = false;
  for (Line* line : {&out_, &in_, &work_}) {
    if (!line->steps.empty()) end_->driver().poll(event_of_[line->steps.front()]);
    while (!line->steps.empty()) {
      const std::uint32_t step = line->steps.front();
      const bool counts = is_counted(*line, step);
      if (!counts && !error()) break;
      if (!device::has_reached(line->word->load(std::memory_order_acquire),
                               line->base + line->seen + 1))
        break;
      end_->driver().poll(event_of_[step]);
      ++line->seen;
      line->steps.pop_front();
      moved = true;
      if (counts) end_->end(line->stage);
      if (error()) continue;
      if (line == &out_) {
        post(step, transport, true);
        continue;
      }
      free_slot(step);
      end(step);
    }
  }
  if (!error()) return moved;
  if (!runs_out()) finish();
  else if (end_->now_s() - cancelled_s_ > kRunsOutS)
    for (const Line* line : {&out_, &in_, &work_})
      if (line->given > 0) end_->driver().is_done(line->end);
  return moved;
}

void DeviceOperation::end(std::uint32_t step) {
  if (events_) log(step, begun_s_[step]);
  if (--open_ == 0) finish();
}

void DeviceOperation::finish() {
  give_back();
  end_->end_call();
  complete();
}

void DeviceOperation::give_back() {
  for (std::uint32_t step = 0; step < slots_.size(); ++step) free_slot(step);
  for (device::Event& event : event_of_)
    if (event != device::Event{}) end_->give(std::exchange(event, device::Event{}));
}

void DeviceOperation::free_slot(std::uint32_t step) {
  if (std::byte* slot = std::exchange(slots_[step], nullptr))
    end_->give_pinned(slot, compiled_->steps[step].bytes);
}

// Ends messages at once; enqueued work runs out, and advance() looks at it until then.
void DeviceOperation::cancel(Transport& transport) {
  for (std::uint32_t step : running_) {
    transport.cancel(transfers_[static_cast<std::size_t>(transfer_of_[step])]);
    end_->end(is_send(schedule().steps[step].kind) ? StageOf::send : StageOf::receive);
  }
  running_.clear();
  ready_.clear();
  next_ready_ = 0;
  let_run_out();
  cancelled_s_ = end_->now_s();
  if (runs_out()) return;
  give_back();
  end_->end_call();
}

bool DeviceOperation::runs_out() const {
  return !out_.steps.empty() || !in_.steps.empty() || !work_.steps.empty();
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
