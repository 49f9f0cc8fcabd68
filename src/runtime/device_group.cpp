#include "runtime/device_group.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "ir/lower.hpp"
#include "runtime/check_call.hpp"

namespace paceline {
namespace {

// Returns the arguments that must be equal at all positions, as text. They begin the shape's key.
std::string key_of(const Call& call) {
  return str(name_of(call.collective), ' ', name_of(call.type), ' ', name_of(call.op), ' ',
             call.root, ' ', call.uneven, ' ', text_of(Overrides{call.algorithm, call.cut}));
}

}  // namespace

DeviceGroup::DeviceGroup(std::shared_ptr<device::Driver> driver, std::vector<int> devices,
                         const Machine& machine)
    : driver_(std::move(driver)), devices_(std::move(devices)), machine_(machine) {
  if (devices_.empty()) fail(Fault::usage, "device: a group of no devices; name at least one.");
  for (int device : devices_)
    if (device < 0 || device >= driver_->devices())
      fail(Fault::usage, "device: there is no device ", device, "; there are 0 to ",
           driver_->devices() - 1, ".");
  all_reach_ = true;
  for (int a : devices_)
    for (int b : devices_) all_reach_ = all_reach_ && (a == b || driver_->reaches(a, b));
}

void DeviceGroup::check_alike(const std::vector<Call>& calls) const {
  if (calls.size() != devices_.size())
    fail(Fault::usage, "device: ", calls.size(), " calls for a group of ", devices_.size(),
         "; there is one for each position.");
  const bool rooted = calls.front().collective == Collective::gather ||
                      calls.front().collective == Collective::scatter;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    check_call(calls[at], static_cast<int>(at), size());
    const bool same_count = calls[at].uneven || calls[at].count == calls.front().count;
    const bool same_counts = rooted || calls[at].collective == Collective::alltoall ||
                             calls[at].counts == calls.front().counts;
    if (key_of(calls[at]) != key_of(calls.front()) || !same_count || !same_counts)
      fail(Fault::usage, "device: position ", at, " calls ", key_of(calls[at]), " of ",
           calls[at].count, " elements and position 0 ", key_of(calls.front()), " of ",
           calls.front().count, "; all positions make the same call.");
  }
}

Choice DeviceGroup::chosen(const Call& call, const Problem& problem, bool is_graph) const {
  Problem asked = problem;
  if (!call.algorithm.empty()) {
    const Algorithm& named = find_algorithm(call.collective, call.algorithm);
    if (named.uses(Access::single_copy))
      fail(Fault::refusal, "device: ", named.name, " has the system copy between processes, and "
           "devices copy themselves; name another algorithm, such as chain.");
    asked.one_node = named.is_load_store() && !asked.uneven;
    asked.symmetric = named.uses(Access::symmetric);
    if (asked.one_node && !all_reach_)
      fail(Fault::refusal, "device: ", named.name, " reads the memory of other devices, and these "
           "do not all reach each other; name one that sends, such as ring.");
  }
  ChoiceInputs now{.bytes = bytes_for_choice(call, asked), .machine = machine_};
  now.stage_bytes = ~std::size_t{0} >> 1;
  now.one_starts_all = !is_graph;
  // All data pass through one memory, whichever positions they go between: starts alone differ.
  if (std::ranges::count(devices_, devices_.front()) == size() && !is_graph)
    now.machine.across.beta_s_per_byte = now.machine.gamma_s_per_byte = 0;
  return choose(asked, now, {call.algorithm, call.cut});
}

DeviceGroup::Shape& DeviceGroup::shape_of(const std::vector<Call>& calls, bool is_graph) {
  check_alike(calls);
  std::vector<Problem> problems;
  std::vector<Layout> layouts;
  std::string key = str(is_graph ? "graph " : "", key_of(calls.front()));
  for (int at = 0; at < size(); ++at) {
    const Call& call = calls[static_cast<std::size_t>(at)];
    // fast: positions of devices are fixed, so bits do not depend on arrival.
    problems.push_back({.collective = call.collective, .ranks = size(), .rank = at,
                        .root = call.root, .uneven = call.uneven, .fast = true});
    layouts.push_back(layout_of(call, problems.back()));
    key += str(' ', call.count, problems.back().in_place ? " in place" : "");
    for (const auto* counts : {&call.counts, &call.counts_received})
      for (std::size_t count : *counts) key += str(',', count);
  }
  const auto found = std::find_if(shapes_.begin(), shapes_.end(),
                                  [&](const Shape& shape) { return shape.key == key; });
  if (found != shapes_.end()) {
    shapes_.splice(shapes_.begin(), shapes_, found);
    return shapes_.front();
  }
  Shape shape{.key = key, .choice = chosen(calls.front(), problems.front(), is_graph),
              .run = nullptr};
  const Algorithm& algorithm = *shape.choice.algorithm;
  std::vector<std::shared_ptr<const CompiledSchedule>> world;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    problems[at].one_node = algorithm.is_load_store();
    problems[at].symmetric = algorithm.uses(Access::symmetric);
    auto schedule = std::make_shared<Schedule>(
        lower(algorithm, problems[at], shape.choice.cut, Reader::device));
    world.push_back(std::make_shared<CompiledSchedule>(
        resolve(std::move(schedule), layouts[at], calls[at].type, calls[at].op,
                algorithm.is_load_store() ? layouts : std::vector<Layout>{})));
  }
  shape.run = std::make_unique<DeviceRun>(*driver_, lower_to_devices(world, calls.front().op),
                                          devices_);
  if (shapes_.size() >= kMostShapes) shapes_.pop_back();
  shapes_.push_front(std::move(shape));
  return shapes_.front();
}

std::vector<DeviceBuffers> DeviceGroup::buffers_of(const std::vector<Call>& calls) const {
  std::vector<DeviceBuffers> buffers;
  for (const Call& call : calls)
    buffers.push_back({const_cast<std::byte*>(static_cast<const std::byte*>(call.input)),
                       static_cast<std::byte*>(call.output)});
  return buffers;
}

void DeviceGroup::check_streams(const std::vector<device::Stream>& callers) const {
  if (callers.size() != 1 && callers.size() != devices_.size())
    fail(Fault::usage, "device: ", callers.size(), " streams for a group of ", devices_.size(),
         "; pass one for each position, or one for all.");
  for (std::size_t at = 0; at < callers.size(); ++at)
    if (const int device = driver_->device_of(callers[at]); device != devices_[at])
      fail(Fault::usage, "device: the stream of position ", at, " is of device ", device,
           ", not of ", devices_[at], "; pass a stream of the device that the position is on.");
}

void DeviceGroup::enqueue(const std::vector<Call>& calls,
                          const std::vector<device::Stream>& callers) {
  check_streams(callers);
  shape_of(calls).run->enqueue(buffers_of(calls), callers);
}

device::Graph DeviceGroup::capture(const std::vector<Call>& calls, device::Stream origin) {
  check_streams({origin});
  return shape_of(calls, true).run->capture(buffers_of(calls), origin);
}

std::string DeviceGroup::explain(const std::vector<Call>& calls) {
  const Shape& shape = shape_of(calls);
  const DeviceProgram& program = shape.run->program();
  return str(shape.choice.algorithm->name, ", ", shape.choice.cut.segments, " segments, ",
             shape.choice.cut.window, " at a time: ", shape.choice.why, "; ", program.tasks.size(),
             " tasks on ", program.streams.size(), " streams of ", driver_->name(), " devices");
}

const DeviceProgram& DeviceGroup::program(const std::vector<Call>& calls) {
  return shape_of(calls).run->program();
}

}  // namespace paceline
