#include "ir/builder.hpp"

#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "ir/edges.hpp"
#include "ir/load_store.hpp"

namespace paceline {
namespace {

bool same_place(const Segment& a, const Segment& b) {
  return a.space == b.space && a.owner == b.owner && a.slot == b.slot && a.first == b.first &&
         a.blocks == b.blocks;
}

}  // namespace

// The record that a Builder shares with its phases.
struct Builder::Recording {
  Schedule schedule;
  std::map<std::pair<Kind, int>, int> messages;   // so far, by direction and peer
  std::optional<std::size_t> head;                // steps before the tail
};

Builder::Builder(const Problem& problem, int cuts)
    : problem_(problem), recording_(std::make_shared<Recording>()) {
  require(cuts >= 1, "an algorithm cuts a unit into ", cuts, " blocks");
  Schedule& schedule = recording_->schedule;
  schedule.problem = problem;
  schedule.units = units_of(problem);
  schedule.cuts = cuts;
  total_ = schedule.units * cuts;
  const bool towards_input = problem.collective == Collective::reduce_scatter ||
                             problem.collective == Collective::scatter;
  const bool one_buffer = problem.in_place || problem.collective == Collective::broadcast;
  input_ = {one_buffer && !towards_input ? Space::output : Space::input, 0, total_};
  output_ = {one_buffer && towards_input ? Space::input : Space::output, 0, total_};
}

Builder Builder::phase(const Part& part) const {
  Builder sub;
  sub.problem_ = part.problem;
  sub.total_ = units_of(part.problem) * part.cuts;
  for (int member : part.members) sub.members_.push_back(rank_of(member));
  sub.input_ = part.input;
  sub.output_ = part.output;
  sub.completes_ = completes_ && part.completes;
  sub.leaves_out_ = leaves_out_ || part.leaves_out;
  sub.recording_ = recording_;
  require(part.input.blocks % sub.total_ == 0 && part.output.blocks % sub.total_ == 0,
          "a phase of ", sub.total_, " blocks cannot live in regions of ", part.input.blocks,
          " and ", part.output.blocks, " blocks");
  return sub;
}

int Builder::rank_of(int position) const {
  require(position >= 0 && position < problem_.ranks, name_of(problem_.collective), " names peer ",
          position, " of ", problem_.ranks);
  return members_.empty() ? position : members_[static_cast<std::size_t>(position)];
}

Segment Builder::place(const Region& region, int first, int blocks) const {
  require(first >= 0 && blocks >= 0 && first + blocks <= total_, name_of(problem_.collective),
          " names blocks [", first, ", ", first + blocks, ") of ", total_);
  const int scale = region.blocks / total_;
  Segment s = region.slot;
  if (region.space != Space::scratch) s.space = s.like = region.space;
  s.first = region.first + first * scale;
  s.blocks = blocks * scale;
  return s;
}

Segment Builder::input(int first, int blocks) const { return place(input_, first, blocks); }
Segment Builder::output(int first, int blocks) const { return place(output_, first, blocks); }

Segment Builder::scratch(const Segment& shape) {
  std::vector<Slot>& slots = recording_->schedule.slots;
  slots.push_back({});
  Segment slot;
  slot.space = Space::scratch;
  slot.slot = static_cast<int>(slots.size()) - 1;
  return as(slot, shape);
}

Segment Builder::shared_scratch(const Segment& shape) {
  const Segment slot = scratch(shape);
  recording_->schedule.slots.back() = {{slot}, true};
  return slot;
}

Segment Builder::staging(const Segment& shape) {
  Schedule& schedule = recording_->schedule;
  require(problem_.node_staging && schedule.slots.size() == std::size_t(schedule.staging),
          name_of(problem_.collective), " asks for a staging buffer that it does not have, or ",
          "after other scratch");
  ++schedule.staging;
  return shared_scratch(shape);
}

Segment Builder::as(const Segment& slot, const Segment& shape) {
  Segment s = slot;
  s.like = shape.like;
  s.origin = s.first = shape.first;
  s.blocks = shape.blocks;
  return s;
}

Segment Builder::part(const Segment& whole, int first, int blocks) {
  require(first >= whole.first && first + blocks <= whole.first + whole.blocks, "blocks [", first,
          ", ", first + blocks, ") are not part of [", whole.first, ", ",
          whole.first + whole.blocks, ")");
  Segment s = whole;
  s.first = first;
  s.blocks = blocks;
  return s;
}

Segment Builder::of_peer(int peer, Segment segment) const {
  segment.owner = peer == problem_.rank ? kOwn : rank_of(peer);
  return segment;
}

void Builder::add(Kind kind, int position, Segments first, Segments rest) {
  Recording& r = *recording_;
  const bool talks =
      kind == Kind::send || kind == Kind::recv || kind == Kind::signal || kind == Kind::wait;
  Step step;
  step.kind = kind;
  step.first = static_cast<std::uint32_t>(r.schedule.segments.size());
  if (talks) {
    step.peer = rank_of(position);
    step.seq = r.messages[{kind, step.peer}]++;
  }
  for (const Segments& list : {first, rest})
    for (const Segment& segment : list) {
      if (segment.blocks == 0) continue;
      require(segment.space != Space::scratch || segment.first >= segment.origin,
              name_of(problem_.collective), " uses block ", segment.first,
              " of a slot that begins at ", segment.origin);
      r.schedule.segments.push_back(segment);
    }
  step.segments = static_cast<std::uint32_t>(r.schedule.segments.size()) - step.first;
  r.schedule.steps.push_back(step);
}

void Builder::send(int peer, Segments message) { add(Kind::send, peer, message); }
void Builder::recv(int peer, Segments message) { add(Kind::recv, peer, message); }
void Builder::signal(int peer) { add(Kind::signal, peer, {}); }
void Builder::wait(int peer) { add(Kind::wait, peer, {}); }

void Builder::copy(const Segment& source, const Segment& target) {
  if (source.blocks > 0 && !same_place(source, target)) add(Kind::copy, 0, {target, source});
}

void Builder::reduce(Segments sources, const Segment& target) {
  if (target.blocks > 0) add(Kind::reduce, 0, {target}, sources);
}

void Builder::finish(const Segment& block) {
  if (completes_ && block.blocks > 0) add(Kind::finish, 0, {block});
}

void Builder::whole(bool reads_scratch) {
  Recording& r = *recording_;
  if (leaves_out_) return;
  require(!r.head, name_of(problem_.collective), " begins a second tail");
  r.head = r.schedule.steps.size();
  r.schedule.tail_reads_scratch = reads_scratch;
}

void Builder::cut_within(int blocks) {
  Schedule& schedule = recording_->schedule;
  require(schedule.cuts % blocks == 0, name_of(problem_.collective), " has ", schedule.cuts,
          " blocks, and ", blocks, " in each part");
  schedule.within = blocks;
}

Schedule Builder::take(std::string algorithm) && {
  Schedule schedule = std::move(recording_->schedule);
  if (recording_->head)
    schedule.tail = static_cast<int>(schedule.steps.size() - *recording_->head);
  schedule.algorithm = std::move(algorithm);
  derive_slots(schedule);
  if (schedule.problem.one_node && is_load_store(schedule)) return in_order(std::move(schedule));
  derive_edges(schedule);
  return schedule;
}

}  // namespace paceline
