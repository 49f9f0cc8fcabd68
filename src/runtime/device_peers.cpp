#include "runtime/device_peers.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.hpp"
#include "base/random.hpp"
#include "coll/registry.hpp"
#include "ir/lower.hpp"
#include "runtime/check_call.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {

using device::Memory;
using device::Stream;
using device::Word;

namespace {

constexpr std::size_t kWordBytes = 64;

DeviceHandle where_of(const device::SharedHandle& handle) {
  DeviceHandle where{};
  require(handle.allocation.size() <= sizeof where.allocation, "device: a handle of ",
          handle.allocation.size(), " bytes");
  std::memcpy(where.allocation, handle.allocation.data(), handle.allocation.size());
  where.length = handle.allocation.size();
  where.offset = handle.offset;
  where.begin = handle.begin;
  where.bytes = handle.bytes;
  return where;
}

std::string allocation_of(const DeviceHandle& where) { return {where.allocation, where.length}; }

// Returns every rank's value, in order.
template <class Value>
std::vector<Value> told_by_all(Communicator& comm, const Value& mine) {
  std::vector<Value> all(static_cast<std::size_t>(comm.size()));
  Call call{Collective::allgather, Type::u8};
  call.count = sizeof mine;
  call.input = &mine;
  call.output = all.data();
  comm.run(call);
  return all;
}

std::uint64_t hash_of_text(const std::string& text) {
  std::uint64_t hash = 0;
  for (char c : text) hash = Random::mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

std::string text_of(const Call& call) {
  return str(name_of(call.collective), ' ', name_of(call.type), ' ', name_of(call.op), ' ',
             call.root, ' ', call.count, ' ', text_of(Overrides{call.algorithm, call.cut}));
}

}  // namespace

DevicePeers::DevicePeers(Communicator comm, std::shared_ptr<device::Driver> driver, int device,
                         const Machine& machine)
    : comm_(comm.dup()), driver_(std::move(driver)), device_(device), me_(comm_.rank()),
      ranks_(comm_.size()), machine_(machine) {
  if (comm_.nodes() > 1)
    fail(Fault::refusal, "device: the ranks are on ", comm_.nodes(), " nodes, and reach each "
         "other's devices within one alone; use a communicator for each node, or let messages "
         "carry the data.");
  begun_ = driver_->make_event(device_);   // throws if there is no such device
  map_words();
  base_.assign(static_cast<std::size_t>(ranks_) * 2 * kLanes, 0);
}

DevicePeers::~DevicePeers() {
  try {   // peers may still use memory released here; the wait for a lost peer ends after 2 s
    Call barrier;
    barrier.timeout_ms = 2000;
    if (broken_.empty() && comm_.broken().empty()) {
      for (const auto& [stream, end] : ends_) driver_->synchronize(end);
      comm_.run(barrier);
    }
  } catch (const Error& error) {
    give_up(error.what());
  }
  for (auto& [name, stream] : streams_) driver_->release(stream);
  for (device::Event event : all_events_) driver_->release(event);
  for (auto& [name, end] : ends_) driver_->release(end);
  driver_->release(begun_);
  for (Shape& shape : shapes_) release(shape);
  for (auto& [name, opened] : opened_) driver_->close(device_, opened.memory);
  if (!words_) return;
  driver_->unpin(words_);
  munmap(words_, words_bytes_);
}

// Maps an unnamed file of rank 0, found through its process. It lives as long as a rank maps it.
void DevicePeers::map_words() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  words_bytes_ = (words() * kWordBytes + page - 1) / page * page;
  std::array<int, 2> mine{static_cast<int>(getpid()), -1};
  if (me_ == 0) {
    mine[1] = memfd_create("paceline-words", MFD_CLOEXEC);
    if (mine[1] >= 0 && ftruncate(mine[1], static_cast<off_t>(words_bytes_)) != 0) {
      ::close(mine[1]);
      mine[1] = -1;
    }
  }
  const auto first = told_by_all(comm_, mine).front();
  int file = mine[1];
  if (me_ != 0 && first[1] >= 0)
    file = ::open(str("/proc/", first[0], "/fd/", first[1]).c_str(), O_RDWR | O_CLOEXEC);
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  void* memory =
      file < 0 ? MAP_FAILED : mmap(nullptr, words_bytes_, kBoth, MAP_SHARED, file, 0);
  const char good = memory != MAP_FAILED;
  const auto all_good = told_by_all(comm_, good);   // all have opened it
  if (file >= 0) ::close(file);
  if (good) words_ = static_cast<std::byte*>(memory);
  if (const auto bad = std::find(all_good.begin(), all_good.end(), 0); bad != all_good.end())
    fail(Fault::resource, "device: rank ", bad - all_good.begin(), " cannot map the words by which "
         "streams wait for each other; is there memory, and /proc?");
  driver_->pin(words_, words_bytes_);
}

Word* DevicePeers::word(std::size_t index) const {
  return reinterpret_cast<Word*>(words_ + index * kWordBytes);
}

void DevicePeers::check_usable() const {
  if (!broken_.empty()) fail(Fault::lost, "device: the group is broken: ", broken_);
}

DevicePeers::Told DevicePeers::tell(const Call& call) const {
  check_call(call, me_, ranks_);
  if (call.uneven)
    fail(Fault::refusal, "device: counts that differ between ranks are not served between "
         "processes that reach each other's devices; let messages carry the data.");
  Told told;
  told.key = hash_of_text(text_of(call));
  const Problem problem{.collective = call.collective, .ranks = ranks_, .rank = me_,
                        .root = call.root};
  Problem asked = problem;
  layout_of(call, asked);
  told.in_place = asked.in_place;
  if (call.input) {
    told.has_input = true;
    told.input = where_of(driver_->share(device_, static_cast<const std::byte*>(call.input)));
  }
  if (call.output) {
    told.has_output = true;
    told.output = where_of(driver_->share(device_, static_cast<const std::byte*>(call.output)));
  }
  return told;
}

std::vector<DevicePeers::Told> DevicePeers::exchange(const Told& mine) {
  std::vector<Told> all = told_by_all(comm_, mine);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].key != all.front().key) {
      give_up(str("rank ", r, " has made another call than rank 0"));
      fail(Fault::mismatch, "device: rank ", r, " makes another call than rank 0; all ranks make "
           "the same calls, with the same types and lengths. The group cannot be used any more.");
    }
  return all;
}

// Closes a rank's allocations that overlap a newer one: the rank has freed them, and no rank uses
// them any more.
void DevicePeers::close_older(int rank, const DeviceHandle& than) {
  std::erase_if(opened_, [&](const auto& entry) {
    const Opened& opened = entry.second;
    if (entry.first.first != rank || opened.begin >= than.begin + than.bytes ||
        than.begin >= opened.begin + opened.bytes)
      return false;
    driver_->close(device_, opened.memory);
    return true;
  });
}

std::byte* DevicePeers::reach(int rank, const DeviceHandle& where) {
  const std::pair name(rank, allocation_of(where));
  if (const auto found = opened_.find(name); found != opened_.end()) {
    if (found->second.begin == where.begin && found->second.bytes == where.bytes)
      return found->second.memory + where.offset;
    driver_->close(device_, found->second.memory);   // the name is in use again
    opened_.erase(found);
  }
  close_older(rank, where);
  std::byte* const memory = driver_->open(device_, name.second);
  if (!memory)
    fail(Fault::resource, "device: memory of rank ", rank, " cannot be opened, since it lies in a "
         "block with other memory that has been; take that of paceline.device.empty(), or "
         "allocate at least 2 MiB at a time.");
  opened_[name] = {memory, where.begin, where.bytes};
  return memory + where.offset;
}

std::vector<DevicePeers::Buffer> DevicePeers::reached(const Call& call,
                                                      const std::vector<Told>& all) {
  std::vector<Buffer> buffers(all.size());
  for (int r = 0; r < ranks_; ++r) {
    const Told& told = all[static_cast<std::size_t>(r)];
    Buffer& buffer = buffers[static_cast<std::size_t>(r)];
    if (r == me_) {
      buffer = {const_cast<std::byte*>(static_cast<const std::byte*>(call.input)),
                static_cast<std::byte*>(call.output)};
      continue;
    }
    if (told.has_input) buffer.input = reach(r, told.input);
    if (told.has_output) buffer.output = reach(r, told.output);
  }
  return buffers;
}

// Returns the program of all ranks, which is the same on each of them.
DevicePeers::Shape DevicePeers::made_of(const Call& call, const std::vector<Told>& all) const {
  // fast: positions of devices are fixed, so bits do not depend on arrival.
  Problem problem{.collective = call.collective, .ranks = ranks_, .rank = 0, .root = call.root,
                  .fast = true};
  if (!call.algorithm.empty()) {
    const Algorithm& named = find_algorithm(call.collective, call.algorithm);
    if (named.uses(Access::single_copy))
      fail(Fault::refusal, "device: ", named.name, " has the system copy between processes, and "
           "devices copy themselves; name another algorithm, such as chain.");
    problem.one_node = named.is_load_store();
    problem.symmetric = named.uses(Access::symmetric);
  }
  ChoiceInputs now{.bytes = bytes_for_choice(call, problem), .machine = machine_};
  now.stage_bytes = ~std::size_t{0} >> 1;
  Shape shape;
  shape.choice = choose(problem, now, {call.algorithm, call.cut});
  const Algorithm& algorithm = *shape.choice.algorithm;
  std::vector<Layout> layouts;
  std::vector<Problem> problems;
  for (int at = 0; at < ranks_; ++at) {
    problem.rank = at;
    problem.in_place = all[static_cast<std::size_t>(at)].in_place;
    problem.one_node = algorithm.is_load_store();
    problem.symmetric = algorithm.uses(Access::symmetric);
    problems.push_back(problem);
    layouts.push_back(even_layout(problem, call.count));
  }
  std::vector<std::shared_ptr<const CompiledSchedule>> world;
  for (std::size_t at = 0; at < problems.size(); ++at) {
    auto schedule = std::make_shared<Schedule>(
        lower(algorithm, problems[at], shape.choice.cut, Reader::device));
    world.push_back(std::make_shared<CompiledSchedule>(
        resolve(std::move(schedule), layouts[at], call.type, call.op,
                algorithm.is_load_store() ? layouts : std::vector<Layout>{})));
  }
  shape.program = lower_to_devices(world, call.op, kLanes);
  return shape;
}

// Numbers the tasks in their streams, and marks those that other positions wait for. A program with
// fewer lanes uses the streams of the first lanes.
void DevicePeers::number_tasks(Shape& shape) const {
  const std::size_t lanes = shape.program.streams.size() / (2 * static_cast<std::size_t>(ranks_));
  shape.lengths.assign(base_.size(), 0);
  shape.written.assign(shape.program.tasks.size(), false);
  for (DeviceTask& task : shape.program.tasks) {
    const std::size_t group = task.stream / lanes, lane = task.stream % lanes;
    task.stream = static_cast<std::uint32_t>(group * kLanes + lane);
    shape.number.push_back(++shape.lengths[task.stream]);
    for (std::uint32_t before : task.waits)
      if (shape.program.tasks[before].position != task.position) shape.written[before] = true;
  }
}

DevicePeers::Shape& DevicePeers::shape_of(const Call& call, const std::vector<Told>& all) {
  std::string key = text_of(call);
  for (const Told& told : all) key += told.in_place ? " in" : " out";
  const auto found = std::find_if(shapes_.begin(), shapes_.end(),
                                  [&](const Shape& shape) { return shape.key == key; });
  if (found != shapes_.end()) {
    shapes_.splice(shapes_.begin(), shapes_, found);
    return shapes_.front();
  }
  Shape shape = made_of(call, all);
  shape.key = key;
  number_tasks(shape);
  share_scratch(shape);
  if (shapes_.size() >= kMostShapes) {
    for (const auto& [stream, end] : ends_) driver_->synchronize(end);
    Call barrier;
    comm_.run(barrier);   // then no rank uses the oldest shape's scratch
    release(shapes_.back());
    shapes_.pop_back();
  }
  shapes_.push_front(std::move(shape));
  return shapes_.front();
}

void DevicePeers::share_scratch(Shape& shape) {
  const std::size_t bytes = shape.program.scratch_bytes[static_cast<std::size_t>(me_)];
  std::byte* own = nullptr;
  DeviceHandle mine{};
  std::string trouble;
  if (bytes > 0) try {
    own = driver_->allocate(device_, bytes);
    mine = where_of(driver_->share(device_, own));
  } catch (const Error& error) {   // the exchange below tells the other ranks
    trouble = error.what();
    mine.length = sizeof mine.allocation + 1;
  }
  const std::vector<DeviceHandle> all = told_by_all(comm_, mine);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].length > sizeof mine.allocation) {
      if (own) driver_->release(device_, own);
      fail(Fault::resource, trouble.empty() ? str("device: rank ", r, " has no memory for the "
                                                  "scratch; take smaller segments.") : trouble);
    }
  for (int r = 0; r < ranks_; ++r) {
    const DeviceHandle& where = all[static_cast<std::size_t>(r)];
    shape.scratch.push_back(r == me_            ? own
                            : where.length == 0 ? nullptr
                                                : reach(r, where));
  }
}

void DevicePeers::release(Shape& shape) {
  if (std::byte* own = shape.scratch[static_cast<std::size_t>(me_)]) driver_->release(device_, own);
}

}  // namespace paceline
