#include "ir/edges.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/hazard.hpp"

namespace paceline {
namespace {

using StepCell = Cell<int>;   // actors: indices of steps

class Deriver {
 public:
  void add(std::uint32_t id, const Step& step, const Segment* segments) {
    // A target that is also a source, as in "a = b + a", is a write: it waits for all a read would.
    for (std::uint32_t i = 0; i < step.segments; ++i)
      touch(segments[i], writes(step.kind, i) ? Use::write : Use::read, id);
    if (fence_ >= 0) edges.emplace_back(static_cast<std::uint32_t>(fence_), id);
    if (step.kind == Kind::signal)
      for (std::uint32_t earlier : since_fence_) edges.emplace_back(earlier, id);
    // A signal says what the steps before it have done; it need not wait for other signals.
    if (step.kind != Kind::signal) since_fence_.push_back(id);
    if (step.kind == Kind::wait) fence_ = static_cast<int>(id);
  }

  std::vector<Edge> edges;

 private:
  void touch(const Segment& segment, Use kind, std::uint32_t id) {
    if (segment.space == Space::incoming) return;
    std::vector<StepCell>& buffer = cells_[{segment.space, segment.owner, segment.slot}];
    const auto [first, last] = range(segment, buffer);
    for (std::size_t i = first; i < last; ++i)
      access(buffer[i], static_cast<int>(id), kind,
             [&](int earlier) { edges.emplace_back(static_cast<std::uint32_t>(earlier), id); });
  }

  // The cells that a segment covers. When a slot changes its shape, each of its new cells may be
  // any of the old ones: it starts with all that they have seen.
  std::pair<std::size_t, std::size_t> range(const Segment& s, std::vector<StepCell>& buffer) {
    const bool scratch = s.space == Space::scratch;
    const auto first = static_cast<std::size_t>(s.first - (scratch ? s.origin : 0));
    const auto last = first + static_cast<std::size_t>(s.blocks);
    StepCell fresh;
    if (scratch) {
      Shape& shape =
          shapes_.try_emplace({s.owner, s.slot}, Shape{s.like, s.origin, {}}).first->second;
      if (shape.like != s.like || shape.origin != s.origin) {
        shape = {s.like, s.origin, overall(buffer)};
        buffer.assign(buffer.size(), shape.before);
      }
      fresh = shape.before;
    }
    if (buffer.size() < last) buffer.resize(last, fresh);
    return {first, last};
  }

  static StepCell overall(const std::vector<StepCell>& buffer) {
    StepCell all;
    for (const StepCell& cell : buffer) {
      all.readers.insert(all.readers.end(), cell.readers.begin(), cell.readers.end());
      if (cell.writer) all.readers.push_back(*cell.writer);
    }
    std::sort(all.readers.begin(), all.readers.end());
    all.readers.erase(std::unique(all.readers.begin(), all.readers.end()), all.readers.end());
    return all;
  }

  struct Shape {
    Space like;
    int origin;
    StepCell before;   // what the slot had seen when it took this shape
  };

  std::map<std::tuple<Space, int, int>, std::vector<StepCell>> cells_;   // by space, owner, slot
  std::map<std::pair<int, int>, Shape> shapes_;                      // by owner and slot
  std::vector<std::uint32_t> since_fence_;
  int fence_ = -1;
};

}  // namespace

bool writes(Kind kind, std::size_t index) {
  if (kind == Kind::send) return false;
  return kind == Kind::recv || index == 0;
}

void derive_edges(Schedule& schedule) {
  Deriver deriver;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i)
    deriver.add(i, schedule.steps[i], schedule.begin(schedule.steps[i]));
  set_edges(schedule, std::move(deriver.edges));
}

void derive_slots(Schedule& schedule) {
  for (Slot& slot : schedule.slots) slot.shapes.resize(slot.is_alike ? 1 : 0);
  for (const Step& step : schedule.steps)
    for (const Segment* s = schedule.begin(step); s != schedule.end(step); ++s) {
      if (s->space != Space::scratch) continue;
      Segment shape = *s;   // what is read of a peer's slot has the same place in the own one
      shape.owner = kOwn;
      std::vector<Segment>& shapes = schedule.slots[static_cast<std::size_t>(s->slot)].shapes;
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
}

}  // namespace paceline
