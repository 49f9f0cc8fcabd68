#include "engine/device_run.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace paceline {

using device::Event;
using device::Graph;
using device::Memory;
using device::Stream;

DeviceRun::DeviceRun(device::Driver& driver, DeviceProgram program, std::vector<int> devices)
    : driver_(driver), program_(std::move(program)), devices_(std::move(devices)) {
  require(devices_.size() == program_.scratch_bytes.size(), "device: ", devices_.size(),
          " devices for ", program_.scratch_bytes.size(), " positions");
  check_reach();
  used_.assign(program_.streams.size(), false);
  for (const DeviceTask& task : program_.tasks) used_[task.stream] = true;
  streams_.resize(program_.streams.size());
  ends_.resize(program_.streams.size());
  free_.resize(devices_.size());
  event_of_.resize(program_.tasks.size());
  waiters_.resize(program_.tasks.size());
  try {
    for (std::size_t at = 0; at < devices_.size(); ++at) {
      const std::size_t bytes = program_.scratch_bytes[at];
      scratch_.push_back(bytes > 0 ? driver_.allocate(devices_[at], bytes) : nullptr);
      begins_.push_back(driver_.make_event(devices_[at]));
      all_events_.push_back(begins_.back());
    }
    finished_ = driver_.make_event(devices_.front());
    all_events_.push_back(finished_);
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (!used_[i]) continue;
      streams_[i] = driver_.make_stream(device_of(program_.streams[i].position));
      ends_[i] = driver_.make_event(device_of(program_.streams[i].position));
      all_events_.push_back(ends_[i]);
    }
  } catch (...) {
    release();
    throw;
  }
}

DeviceRun::~DeviceRun() { release(); }

void DeviceRun::release() {
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i] != Stream{}) driver_.release(streams_[i]);
  for (Event event : all_events_) driver_.release(event);
  for (std::size_t at = 0; at < scratch_.size(); ++at)
    if (scratch_[at]) driver_.release(devices_[at], scratch_[at]);
}

void DeviceRun::check_reach() const {
  for (const DeviceTask& task : program_.tasks) {
    if (task.kind == DeviceTask::Kind::copy) continue;
    for (std::uint32_t p = task.first; p < task.first + task.parts; ++p)
      for (std::uint32_t k = 0; k < program_.parts[p].places; ++k) {
        const int peer = program_.places[program_.parts[p].first_place + k].owner;
        if (peer != task.position && !driver_.reaches(device_of(task.position), device_of(peer)))
          fail(Fault::refusal, "device: device ", device_of(task.position),
               " does not reach the memory of device ", device_of(peer),
               ", which this algorithm needs; name one that sends, such as ring or chain.");
      }
  }
}

Memory DeviceRun::at(const Place& place, const std::vector<DeviceBuffers>& buffers) const {
  const auto owner = static_cast<std::size_t>(place.owner);
  std::byte* base = place.space == Space::scratch  ? scratch_[owner]
                    : place.space == Space::output ? buffers[owner].output
                                                   : buffers[owner].input;
  return {devices_[owner], base + place.offset};
}

Event DeviceRun::take_event(int position) {
  std::vector<Event>& free = free_[static_cast<std::size_t>(position)];
  if (free.empty()) {
    all_events_.push_back(driver_.make_event(device_of(position)));
    return all_events_.back();
  }
  const Event event = free.back();
  free.pop_back();
  return event;
}

void DeviceRun::run(const DeviceTask& task, const std::vector<DeviceBuffers>& buffers) {
  const Stream stream = streams_[task.stream];
  const std::size_t element = size_of(program_.type);
  for (std::uint32_t p = task.first; p < task.first + task.parts; ++p) {
    const DevicePart& part = program_.parts[p];
    const Place* places = program_.places.data() + part.first_place;
    if (task.kind == DeviceTask::Kind::copy) {
      driver_.copy(stream, {at(places[0], buffers), at(places[1], buffers),
                            part.elements * element});
      continue;
    }
    device::Combine combine{.target = at(places[0], buffers), .sources = {},
                            .count = part.elements, .type = program_.type, .op = program_.op};
    const bool divides = task.kind == DeviceTask::Kind::divide;
    for (std::uint32_t k = divides ? 0 : 1; k < part.places; ++k)
      combine.sources.push_back(at(places[k], buffers));
    if (divides) combine.divisor = program_.divisor;
    driver_.combine(stream, combine);
  }
}

void DeviceRun::enqueue(const std::vector<DeviceBuffers>& buffers,
                        const std::vector<Stream>& callers) {
  require(buffers.size() == devices_.size(), "device: buffers of ", buffers.size(), " positions");
  require(callers.size() == devices_.size() || callers.size() == 1, "device: ", callers.size(),
          " callers' streams");
  // Joins all on the first caller's stream: p + streams waits instead of p * streams.
  const Stream first = callers.front();
  for (std::size_t at = 1; at < callers.size(); ++at) {
    driver_.record(begins_[at], callers[at]);
    driver_.wait(first, begins_[at]);
  }
  if (!capturing_) driver_.wait(first, finished_);   // the call before uses the scratch
  driver_.record(begins_.front(), first);
  for (std::size_t i = 0; i < streams_.size(); ++i)
    if (used_[i]) driver_.wait(streams_[i], begins_.front());
  for (std::size_t i = 0; i < program_.tasks.size(); ++i) {
    const DeviceTask& task = program_.tasks[i];
    for (std::uint32_t before : task.waits) {
      driver_.wait(streams_[task.stream], event_of_[before]);
      // An enqueued wait keeps its record: the event may be recorded anew.
      if (--waiters_[before] == 0)
        free_[static_cast<std::size_t>(program_.tasks[before].position)].push_back(
            event_of_[before]);
    }
    run(task, buffers);
    if (task.waiters == 0) continue;
    waiters_[i] = task.waiters;
    event_of_[i] = take_event(task.position);
    driver_.record(event_of_[i], streams_[task.stream]);
  }
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (!used_[i]) continue;
    driver_.record(ends_[i], streams_[i]);
    driver_.wait(first, ends_[i]);
  }
  if (!capturing_) driver_.record(finished_, first);
  for (std::size_t at = 1; at < callers.size(); ++at) driver_.wait(callers[at], finished_);
}

Graph DeviceRun::capture(const std::vector<DeviceBuffers>& buffers, Stream origin) {
  capturing_ = true;
  try {
    const Graph graph = driver_.capture(origin, [&] { enqueue(buffers, {origin}); });
    capturing_ = false;
    return graph;
  } catch (...) {
    capturing_ = false;
    throw;
  }
}

}  // namespace paceline
