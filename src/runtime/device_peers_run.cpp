// DevicePeers: the functions that enqueue tasks and wait for them.
#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "runtime/progress/clock.hpp"
#include "runtime/device_peers.hpp"

namespace paceline {

using device::Memory;
using device::Stream;

namespace {

constexpr std::uint32_t kFarAhead = 1u << 30;   // beyond any value that a stream waits for

}  // namespace

Memory DevicePeers::at(const Shape& shape, const Place& place,
                       const std::vector<Buffer>& buffers) const {
  const auto owner = static_cast<std::size_t>(place.owner);
  std::byte* base = place.space == Space::scratch  ? shape.scratch[owner]
                    : place.space == Space::output ? buffers[owner].output
                                                   : buffers[owner].input;
  return {device_, base + place.offset};
}

void DevicePeers::run(const Shape& shape, const DeviceTask& task,
                      const std::vector<Buffer>& buffers) {
  const DeviceProgram& program = shape.program;
  const Stream stream = own_stream(task.stream);
  const std::size_t element = size_of(program.type);
  for (std::uint32_t p = task.first; p < task.first + task.parts; ++p) {
    const DevicePart& part = program.parts[p];
    const Place* places = program.places.data() + part.first_place;
    if (task.kind == DeviceTask::Kind::copy) {
      driver_->copy(stream, {at(shape, places[0], buffers), at(shape, places[1], buffers),
                             part.elements * element});
      continue;
    }
    device::Combine combine{.target = at(shape, places[0], buffers), .sources = {},
                            .count = part.elements, .type = program.type, .op = program.op};
    const bool divides = task.kind == DeviceTask::Kind::divide;
    for (std::uint32_t k = divides ? 0 : 1; k < part.places; ++k)
      combine.sources.push_back(at(shape, places[k], buffers));
    if (divides) combine.divisor = program.divisor;
    driver_->combine(stream, combine);
  }
}

Stream DevicePeers::own_stream(std::uint32_t stream) {
  Stream& found = streams_[stream];
  if (found == Stream{}) found = driver_->make_stream(device_);
  return found;
}

device::Event DevicePeers::take_event() {
  if (free_events_.empty()) {
    all_events_.push_back(driver_->make_event(device_));
    return all_events_.back();
  }
  const device::Event event = free_events_.back();
  free_events_.pop_back();
  return event;
}

void DevicePeers::enqueue_tasks(const Shape& shape, const std::vector<Buffer>& buffers) {
  const std::vector<DeviceTask>& tasks = shape.program.tasks;
  std::vector<device::Event> taken;
  event_of_.assign(tasks.size(), device::Event{});
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const DeviceTask& task = tasks[i];
    if (task.position != me_) continue;
    const Stream stream = own_stream(task.stream);
    for (std::uint32_t before : task.waits) {
      const std::uint32_t other = tasks[before].stream;
      if (tasks[before].position == me_)
        driver_->wait(stream, event_of_[before]);
      else
        driver_->wait(stream, stream_word(other), base_[other] + shape.number[before]);
    }
    run(shape, task, buffers);
    if (task.waiters > 0) {
      event_of_[i] = take_event();
      taken.push_back(event_of_[i]);
      driver_->record(event_of_[i], stream);
    }
    if (shape.written[i])
      driver_->write(stream, stream_word(task.stream), base_[task.stream] + shape.number[i]);
  }
  free_events_.insert(free_events_.end(), taken.begin(), taken.end());
}

void DevicePeers::enqueue(const Call& call, Stream caller) {
  check_usable();
  if (driver_->device_of(caller) != device_)
    fail(Fault::usage, "device: a stream of device ", driver_->device_of(caller),
         " for memory of device ", device_, "; pass a stream of the device that the memory is on.");
  const std::vector<Told> all = exchange(tell(call));
  Shape& shape = shape_of(call, all);
  const std::vector<Buffer> buffers = reached(call, all);
  ++epoch_;
  // The call begins when every rank has come here, since its buffers may then be accessed.
  driver_->write(caller, begin_word(me_), epoch_);
  driver_->record(begun_, caller);
  std::vector<bool> used(base_.size(), false);
  for (const DeviceTask& task : shape.program.tasks)
    if (task.position == me_) used[task.stream] = true;
  for (std::uint32_t s = 0; s < used.size(); ++s) {
    if (!used[s]) continue;
    driver_->wait(own_stream(s), begun_);
    for (int r = 0; r < ranks_; ++r)
      if (r != me_) driver_->wait(own_stream(s), begin_word(r), epoch_);
  }
  enqueue_tasks(shape, buffers);
  for (std::uint32_t s = 0; s < used.size(); ++s) {
    if (!used[s]) continue;
    device::Event& end = ends_[s];
    if (end == device::Event{}) end = driver_->make_event(device_);
    driver_->record(end, own_stream(s));
    driver_->wait(caller, end);
  }
  for (std::size_t s = 0; s < base_.size(); ++s) base_[s] += shape.lengths[s];
  // The call ends when every rank has come here, since none accesses the buffers then.
  driver_->write(caller, end_word(me_), epoch_);
  for (int r = 0; r < ranks_; ++r)
    if (r != me_) driver_->wait(caller, end_word(r), epoch_);
}

void DevicePeers::synchronize(Stream caller) {
  check_usable();
  const device::Event end = take_event();
  driver_->record(end, caller);
  const double limit_s = now_s() + 1e-3 * comm_.timeout_ms();
  while (!driver_->is_done(end)) {
    std::string why = comm_.broken();
    if (why.empty() && now_s() > limit_s) why = missing();
    if (!why.empty()) {
      comm_.abort(why);
      give_up(why);
      driver_->synchronize(end);
      free_events_.push_back(end);
      fail(Fault::timeout, "device: ", why, " The group cannot be used any more.");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  free_events_.push_back(end);
}

// Names the ranks that have yet to begin the call; if all have begun, those that have yet to end.
std::string DevicePeers::missing() const {
  std::string late, busy;
  const auto has_come = [this](device::Word* word) {
    return device::has_reached(word->load(std::memory_order_acquire), epoch_);
  };
  for (int r = 0; r < ranks_; ++r) {
    if (r == me_) continue;
    if (!has_come(begin_word(r))) late += str(late.empty() ? "" : ", ", r);
    if (!has_come(end_word(r))) busy += str(busy.empty() ? "" : ", ", r);
  }
  return str("call #", epoch_, " has not ended after ", comm_.timeout_ms(), " ms, since rank ",
             late.empty() ? busy : late, " has yet to do its part.");
}

// Releases all streams of all processes that wait for a word.
void DevicePeers::give_up(const std::string& why) {
  if (!broken_.empty()) return;
  broken_ = why;
  if (!words_) return;
  for (int r = 0; r < ranks_; ++r) {
    begin_word(r)->store(epoch_ + kFarAhead, std::memory_order_release);
    end_word(r)->store(epoch_ + kFarAhead, std::memory_order_release);
  }
  for (std::uint32_t s = 0; s < base_.size(); ++s)
    stream_word(s)->store(base_[s] + kFarAhead, std::memory_order_release);
}

std::string DevicePeers::explain(const Call& call) {
  check_usable();
  const Shape& shape = shape_of(call, exchange(tell(call)));
  std::size_t own = 0;
  for (const DeviceTask& task : shape.program.tasks) own += task.position == me_;
  return str(shape.choice.algorithm->name, ", ", shape.choice.cut.segments, " segments, ",
             shape.choice.cut.window, " at a time: ", shape.choice.why, "; ", own, " of ",
             shape.program.tasks.size(), " tasks on this rank's ", driver_->name(), " device");
}

}  // namespace paceline
