#include "verify/match.hpp"

#include <map>
#include <tuple>

#include "base/str.hpp"
#include "ir/contract.hpp"

namespace paceline {
namespace {

// Source, target, lane, number, and whether it is a signal.
using Message = std::tuple<int, int, int, int, bool>;
using Ends = std::map<Message, StepId>;

bool arrives(Kind kind) {
  return kind == Kind::recv || kind == Kind::recv_reduce || kind == Kind::wait;
}
bool departs(Kind kind) { return kind == Kind::send || kind == Kind::signal; }

std::vector<std::int64_t> length_of(const Schedule& schedule, const Step& step) {
  std::vector<std::int64_t> names;
  if (step.kind == Kind::signal || step.kind == Kind::wait) return names;
  const Segment* last =
      step.kind == Kind::recv_reduce ? schedule.begin(step) + 1 : schedule.end(step);
  for (const Segment* s = schedule.begin(step); s != last; ++s)
    for (int b = s->first; b < s->first + s->blocks; ++b)
      names.push_back(size_name(schedule, *s, b));
  return names;
}

Verdict collect(const World& world, Ends& departures, Ends& arrivals) {
  for (int rank = 0; rank < static_cast<int>(world.size()); ++rank) {
    const Schedule& schedule = world[static_cast<std::size_t>(rank)];
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const Step& step = schedule.steps[i];
      if (!departs(step.kind) && !arrives(step.kind)) continue;
      if (step.peer < 0 || step.peer >= static_cast<int>(world.size()) || step.peer == rank)
        return {str("match: ", name(world, {rank, i}), " names peer ", step.peer, " of ",
                    world.size())};
      const bool signal = step.kind == Kind::signal || step.kind == Kind::wait;
      const int from = departs(step.kind) ? rank : step.peer,
                to = departs(step.kind) ? step.peer : rank;
      Ends& ends = departs(step.kind) ? departures : arrivals;
      if (!ends.try_emplace({from, to, step.lane, step.seq, signal}, StepId{rank, i}).second)
        return {str("match: ", name(world, {rank, i}), " repeats message number ", step.seq)};
    }
  }
  return {};
}

}  // namespace

std::string name(const World& world, StepId id) {
  const Step& step = world[static_cast<std::size_t>(id.rank)].steps[id.step];
  return str("rank ", id.rank, " step ", id.step, " (", name_of(step.kind), ")");
}

Verdict match(const World& world, Partners& partners) {
  Ends departures, arrivals;
  if (Verdict bad = collect(world, departures, arrivals); !bad) return bad;
  partners.clear();
  for (const Schedule& schedule : world) partners.emplace_back(schedule.steps.size());
  for (const auto& [message, sender] : departures) {
    const auto found = arrivals.find(message);
    if (found == arrivals.end())
      return {str("match: ", name(world, sender), " to rank ", std::get<1>(message),
                  " is never received")};
    const StepId receiver = found->second;
    const auto sent = length_of(world[std::size_t(sender.rank)],
                                world[std::size_t(sender.rank)].steps[sender.step]);
    const auto expected = length_of(world[std::size_t(receiver.rank)],
                                    world[std::size_t(receiver.rank)].steps[receiver.step]);
    if (sent != expected)
      return {str("match: ", name(world, sender), " sends ", sent.size(), " blocks, ",
                  name(world, receiver), " expects ", expected.size(), " blocks or others")};
    partners[std::size_t(sender.rank)][sender.step] = receiver;
    partners[std::size_t(receiver.rank)][receiver.step] = sender;
    arrivals.erase(found);
  }
  if (!arrivals.empty())
    return {str("match: ", name(world, arrivals.begin()->second),
                " waits for a message that no rank sends")};
  return {};
}

}  // namespace paceline
