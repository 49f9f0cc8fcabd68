#include "simulate/work.hpp"

#include <algorithm>
#include <tuple>

#include "base/error.hpp"
#include "ir/layout.hpp"

namespace paceline {
namespace {

// One end of a message: both ends have the same name.
struct End {
  int from, to, lane, seq;
  bool signal;
  std::uint32_t item;

  auto name() const { return std::tie(from, to, lane, seq, signal); }
};

bool is_signal(Kind kind) { return kind == Kind::signal || kind == Kind::wait; }
bool departs(Kind kind) { return kind == Kind::send || kind == Kind::signal; }
bool arrives(Kind kind) {
  return kind == Kind::recv || kind == Kind::recv_reduce || kind == Kind::wait;
}

void measure(const Schedule& schedule, const Layout& layout, std::size_t element_bytes,
             Item& item) {
  const Step& step = schedule.steps[item.step];
  const Segment* first = schedule.begin(step);
  const Segment* last = schedule.end(step);
  if (first == last) return;
  if (step.kind == Kind::send || step.kind == Kind::recv) {
    for (const Segment* s = first; s != last; ++s)
      item.message_bytes += element_bytes * count_of(schedule, layout, *s);
    return;
  }
  const std::uint64_t target = element_bytes * count_of(schedule, layout, *first);
  if (step.kind == Kind::recv_reduce) item.message_bytes = target;
  if (step.kind == Kind::copy) item.local_bytes = target;
  if (schedule.staging > 0)
    for (const Segment* s = first + 1; s != last; ++s)
      if (s->owner != kOwn) item.mates_bytes += target;
  if (step.kind == Kind::reduce || step.kind == Kind::recv_reduce)
    item.local_bytes = target * static_cast<std::uint64_t>(last - first - 2);
}

// Both ends of every message, in the same order.
struct Ends {
  std::vector<End> departures, arrivals;
};

void add_ends(const Schedule& schedule, int rank, std::uint32_t first, Ends& ends) {
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (departs(step.kind))
      ends.departures.push_back(
          {rank, step.peer, step.lane, step.seq, is_signal(step.kind), first + i});
    if (arrives(step.kind))
      ends.arrivals.push_back(
          {step.peer, rank, step.lane, step.seq, is_signal(step.kind), first + i});
  }
}

void pair_up(Ends& ends, std::vector<Item>& items) {
  const auto by_name = [](const End& a, const End& b) { return a.name() < b.name(); };
  std::sort(ends.departures.begin(), ends.departures.end(), by_name);
  std::sort(ends.arrivals.begin(), ends.arrivals.end(), by_name);
  const std::size_t pairs = std::min(ends.departures.size(), ends.arrivals.size());
  for (std::size_t i = 0; i <= pairs; ++i) {
    const End* d = i < ends.departures.size() ? &ends.departures[i] : nullptr;
    const End* a = i < ends.arrivals.size() ? &ends.arrivals[i] : nullptr;
    if (!d && !a) return;
    const End& alone = !d || (a && a->name() < d->name()) ? *a : *d;
    const Item& item = items[alone.item];
    require(d && a && d->name() == a->name(), "simulate: rank ", item.rank, " step ", item.step,
            " (", name_of(item.kind), ") has no step at its other end");
    const std::uint64_t sent = items[d->item].message_bytes;
    const std::uint64_t expected = items[a->item].message_bytes;
    require(sent == expected, "simulate: rank ", d->from, " sends ", sent, " bytes, rank ", d->to,
            " expects ", expected);
    items[d->item].partner = a->item;
    items[a->item].partner = d->item;
  }
}

}  // namespace

void gather_work(const std::vector<Schedule>& world, std::size_t count, std::size_t element_bytes,
                 Work& work) {
  Ends ends;
  const auto call = static_cast<std::uint32_t>(work.first.size() / world.size());
  for (int rank = 0; rank < static_cast<int>(world.size()); ++rank) {
    const Schedule& schedule = world[static_cast<std::size_t>(rank)];
    const Layout layout = even_layout(schedule.problem, count);
    const auto first = static_cast<std::uint32_t>(work.items.size());
    work.first.push_back(first);
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
      Item item;
      item.kind = schedule.steps[i].kind;
      item.call = call;
      item.rank = rank;
      item.step = i;
      item.segment = static_cast<std::uint32_t>(schedule.segment_of(i));
      measure(schedule, layout, element_bytes, item);
      work.items.push_back(item);
    }
    add_ends(schedule, rank, first, ends);
  }
  pair_up(ends, work.items);
}

}  // namespace paceline
