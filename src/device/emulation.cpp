#include "device/emulation.hpp"

#include <algorithm>

#include "base/copy_bytes.hpp"
#include "base/error.hpp"
#include "kernels/kernels.hpp"

namespace paceline::device {
namespace {

void run_combine(const Combine& combine) {
  std::vector<const void*> sources;
  for (const Memory& source : combine.sources) sources.push_back(source.data);
  if (sources.size() > 1 || sources.front() != combine.target.data)
    reduce_kernel(combine.type, combine.op)(combine.target.data, sources.data(),
                                            static_cast<int>(sources.size()), combine.count);
  if (combine.divisor > 1)
    divide(combine.target.data, combine.type, combine.count, combine.divisor);
  for (const Memory& copy : combine.copies)
    copy_bytes(copy.data, combine.target.data, combine.count * size_of(combine.type));
}

Work work_of(const Combine& combine, int device) {
  Work work{.combines = true, .device = device};
  const double bytes = static_cast<double>(combine.count * size_of(combine.type));
  for (const Memory& source : combine.sources)
    if (source.device != device && source.device != kHost) work.from.push_back(source.device);
  const auto writes = [&](const Memory& target) {
    if (target.device != device && target.device != kHost) work.to.push_back(target.device);
  };
  writes(combine.target);
  for (const Memory& copy : combine.copies) writes(copy);
  work.bytes = bytes;
  work.combined = bytes * static_cast<double>(combine.sources.size() - 1);
  return work;
}

}  // namespace

Emulation::Emulation(const EmulationOptions& options)
    : options_(options), random_(options.seed) {
  if (options.devices < 1)
    fail(Fault::usage, "device: ", options.devices, " emulated devices; there is at least 1.");
  memory_.resize(static_cast<std::size_t>(options.devices) + 1);
  lost_.resize(static_cast<std::size_t>(options.devices));
}

Emulation::~Emulation() {
  {
    const Lock lock(mutex_);
    stop_ = true;
    for (auto& [name, queue] : queues_) queue->awakened.notify_one();
  }
  for (auto& [name, queue] : queues_)
    if (queue->thread.joinable()) queue->thread.join();
  release_memory();
}

void Emulation::check(int device, const char* what) const {
  if (device < kHost || device >= options_.devices)
    fail(Fault::usage, "device: ", what, " on device ", device, "; there are 0 to ",
         options_.devices - 1, ".");
}

bool Emulation::reaches(int device, int peer) const {
  check(device, "access");
  check(peer, "access");
  return true;
}

int Emulation::link(int device, int peer) const {
  check(device, "a link");
  check(peer, "a link");
  return 0;
}

Stream Emulation::make_stream(int device) {
  check(device, "a stream");
  const Lock lock(mutex_);
  auto queue = std::make_unique<Queue>();
  queue->device = device;
  Queue& made = *queue;
  queues_.emplace(next_, std::move(queue));
  if (options_.threads) made.thread = std::thread([this, &made] { serve(made); });
  return Stream{next_++};
}

Event Emulation::make_event(int device) {
  check(device, "an event");
  const Lock lock(mutex_);
  events_[next_].device = device;
  return Event{next_++};
}

void Emulation::release(Stream stream) {
  Lock lock(mutex_);
  const auto found = queues_.find(static_cast<int>(stream));
  if (found == queues_.end()) return;
  Queue& queue = *found->second;
  while (!queue.tasks.empty() || queue.busy)
    if (options_.threads) passed_.wait(lock);
    else if (!run_any(lock) && !look_again(lock))
      fail(Fault::internal, "device: a stream is released that waits for ever");
  const auto kept = queues_.extract(found);   // the thread may still look at it
  queue.ended = true;
  queue.awakened.notify_one();
  lock.unlock();
  if (queue.thread.joinable()) queue.thread.join();
}

void Emulation::release(Event event) {
  const Lock lock(mutex_);
  events_.erase(static_cast<int>(event));
}

Stream Emulation::adopt_stream(int device, std::uintptr_t native) {
  const Stream stream{static_cast<int>(native)};
  if (device_of(stream) != device)
    fail(Fault::usage, "device: stream ", native, " is of device ", device_of(stream), ", not of ",
         device, "; pass a stream of the device that the memory is on.");
  return stream;
}

int Emulation::device_of(Stream stream) const {
  const Lock lock(mutex_);
  return queue(stream).device;
}

Emulation::Queue& Emulation::queue(Stream stream) const {
  const auto found = queues_.find(static_cast<int>(stream));
  if (found == queues_.end())
    fail(Fault::usage, "device: there is no stream ", static_cast<int>(stream),
         "; it was released, or another driver's.");
  return *found->second;
}

Emulation::EventState& Emulation::state(Event event) {
  const auto found = events_.find(static_cast<int>(event));
  if (found == events_.end())
    fail(Fault::usage, "device: there is no event ", static_cast<int>(event),
         "; it was released, or another driver's.");
  return found->second;
}

bool Emulation::keep(std::function<void()> again) {
  if (!capturing_) return false;
  capturing_->push_back(std::move(again));
  return true;
}

void Emulation::enqueue(Queue& queue, Task task) {
  queue.tasks.push_back(std::move(task));
  queue.awakened.notify_one();
}

void Emulation::log(Queue& queue, Work work) {
  if (!options_.keeps_work) return;
  work.after = queue.last;
  queue.last = {static_cast<std::uint32_t>(work_.size())};
  work_.push_back(std::move(work));
}

void Emulation::copy(Stream stream, const Copy& copy) {
  check(copy.to.device, "a copy");
  check(copy.from.device, "a copy");
  const Lock lock(mutex_);
  if (keep([=, this] { this->copy(stream, copy); })) return;
  Queue& on = queue(stream);
  const int moved_to = copy.to.device == kHost ? copy.from.device : copy.to.device;
  Work work{.device = moved_to, .bytes = static_cast<double>(copy.bytes)};
  if (copy.from.device != kHost) work.from = {copy.from.device};
  log(on, std::move(work));
  enqueue(on, {.run = [copy] { copy_bytes(copy.to.data, copy.from.data, copy.bytes); },
               .touches = {copy.to.device, copy.from.device}});
}

void Emulation::combine(Stream stream, const Combine& combine) {
  require(!combine.sources.empty(), "device: a combination without sources");
  if (!is_defined(combine.op, combine.type))
    fail(Fault::refusal, "device: ", paceline::name_of(combine.op), " is not defined for ",
         paceline::name_of(combine.type), ".");
  const Lock lock(mutex_);
  if (keep([=, this] { this->combine(stream, combine); })) return;
  Queue& on = queue(stream);
  log(on, work_of(combine, on.device));
  Task task{.run = [combine] { run_combine(combine); }, .touches = {combine.target.device}};
  for (const Memory& source : combine.sources) task.touches.push_back(source.device);
  for (const Memory& copy : combine.copies) task.touches.push_back(copy.device);
  enqueue(on, std::move(task));
}

void Emulation::record(Event event, Stream stream) {
  const Lock lock(mutex_);
  if (keep([=, this] { record(event, stream); })) return;
  EventState& state = this->state(event);
  Queue& on = queue(stream);
  state.last = on.last;
  state.record = std::make_shared<Record>();
  enqueue(on, {.record = state.record});
}

void Emulation::wait(Stream stream, Event event) {
  const Lock lock(mutex_);
  if (keep([=, this] { wait(stream, event); })) return;
  const EventState& state = this->state(event);
  Queue& on = queue(stream);
  on.last.insert(on.last.end(), state.last.begin(), state.last.end());
  std::sort(on.last.begin(), on.last.end());
  on.last.erase(std::unique(on.last.begin(), on.last.end()), on.last.end());
  if (state.record) enqueue(on, {.record = state.record, .waits = true});
}

void Emulation::wait(Stream stream, Word* word, std::uint32_t value) {
  const Lock lock(mutex_);
  if (keep([=, this] { wait(stream, word, value); })) return;
  enqueue(queue(stream), {.word = word, .value = value});
}

void Emulation::write(Stream stream, Word* word, std::uint32_t value) {
  const Lock lock(mutex_);
  if (keep([=, this] { write(stream, word, value); })) return;
  enqueue(queue(stream), {.run = [=] { word->store(value, std::memory_order_release); }});
}

Graph Emulation::capture(Stream origin, const std::function<void()>& enqueue) {
  int name = 0;
  {
    const Lock lock(mutex_);
    queue(origin);
    if (capturing_) fail(Fault::usage, "device: a graph is captured inside of another one.");
    name = next_++;
    capturing_ = &graphs_[name];
  }
  try {
    enqueue();
  } catch (...) {
    const Lock lock(mutex_);
    capturing_ = nullptr;
    graphs_.erase(name);
    throw;
  }
  const Lock lock(mutex_);
  capturing_ = nullptr;
  return Graph{name};
}

void Emulation::launch(Graph graph, Stream origin) {
  std::vector<std::function<void()>> again;
  {
    const Lock lock(mutex_);
    queue(origin);
    const auto found = graphs_.find(static_cast<int>(graph));
    if (found == graphs_.end())
      fail(Fault::usage, "device: there is no graph ", static_cast<int>(graph), ".");
    again = found->second;
  }
  for (const auto& each : again) each();
}

void Emulation::release(Graph graph) {
  const Lock lock(mutex_);
  graphs_.erase(static_cast<int>(graph));
}

void Emulation::lose(int device) {
  check(device, "loss");
  const Lock lock(mutex_);
  lost_[static_cast<std::size_t>(device)] = true;
}

std::vector<Work> Emulation::take_work() {
  const Lock lock(mutex_);
  for (auto& [name, queue] : queues_) queue->last.clear();
  for (auto& [name, event] : events_) event.last.clear();
  return std::exchange(work_, {});
}

}  // namespace paceline::device
