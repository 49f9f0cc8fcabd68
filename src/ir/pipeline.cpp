#include "ir/pipeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"

namespace paceline {
namespace {

// Messages per (kind, peer) in one copy: where the numbering of the lane's next copy goes on.
std::map<std::pair<Kind, int>, int> messages_of(const Schedule& schedule) {
  std::map<std::pair<Kind, int>, int> count;
  for (const Step& step : schedule.steps) {
    const Kind direction = step.kind == Kind::recv_reduce ? Kind::recv : step.kind;
    ++count[{direction, step.peer}];
  }
  return count;
}

void append_copy(Schedule& out, const Schedule& one, int segment, int lane, int turn) {
  const auto messages = messages_of(one);
  const int slots = static_cast<int>(one.slots.size());
  const int shift = segment * one.units * one.cuts;
  const auto base = static_cast<std::uint32_t>(out.segments.size());
  for (Segment s : one.segments) {
    s.first += shift;
    if (s.space == Space::scratch) {
      s.slot += lane * slots;
      s.origin += shift;
    }
    out.segments.push_back(s);
  }
  for (Step step : one.steps) {
    const Kind direction = step.kind == Kind::recv_reduce ? Kind::recv : step.kind;
    step.lane = static_cast<std::uint16_t>(lane);
    step.seq += turn * messages.at({direction, step.peer});
    step.first += base;
    out.steps.push_back(step);
  }
  for (int i = 0; i < slots; ++i)
    for (Segment shape : one.slots[std::size_t(i)].shapes) {
      shape.slot += lane * slots;
      shape.first += shift;
      shape.origin += shift;
      out.slots[std::size_t(shape.slot)].shapes.push_back(shape);
    }
}

}  // namespace

Schedule pipeline(const Schedule& one, int segments, int window) {
  if (segments < 1 || window < 1)
    fail(Fault::usage, "pipeline: ", segments, " segments with a window of ", window,
         "; both must be at least 1.");
  require(one.pipeline == 1, "a pipelined schedule cannot be pipelined again");
  if (segments == 1) return one;
  const int lanes = std::min(segments, window);
  Schedule out = one;
  out.steps.clear();
  out.segments.clear();
  out.slots.assign(one.slots.size() * std::size_t(lanes), {});
  out.pipeline = segments;
  out.lanes = lanes;

  const std::vector<Edge> inner = edges_of(one);
  const auto steps = static_cast<std::uint32_t>(one.steps.size());
  std::vector<std::uint32_t> sources, sinks;
  for (std::uint32_t i = 0; i < steps; ++i) {
    if (one.indegree[i] == 0) sources.push_back(i);
    if (one.edge_begin[i] == one.edge_begin[i + 1]) sinks.push_back(i);
  }
  std::vector<Edge> edges;
  for (int s = 0; s < segments; ++s) {
    append_copy(out, one, s, s % lanes, s / lanes);
    const auto here = static_cast<std::uint32_t>(s) * steps;
    for (const auto& [from, to] : inner) edges.emplace_back(here + from, here + to);
    if (s < lanes) continue;
    const auto before = static_cast<std::uint32_t>(s - lanes) * steps;
    for (std::uint32_t sink : sinks)
      for (std::uint32_t source : sources) edges.emplace_back(before + sink, here + source);
  }
  set_edges(out, std::move(edges));
  return out;
}

int segments_of_size(std::size_t bytes, std::size_t segment_bytes) {
  if (segment_bytes == 0)
    fail(Fault::usage, "pipeline: a segment size of 0 bytes; it must be at least 1.");
  return static_cast<int>(std::max<std::size_t>(1, (bytes + segment_bytes - 1) / segment_bytes));
}

}  // namespace paceline
