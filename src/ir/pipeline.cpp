#include "ir/pipeline.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace paceline {
namespace {

bool is_message(Kind kind) {
  return kind == Kind::send || kind == Kind::recv || kind == Kind::signal || kind == Kind::wait;
}

// Writes the copies, and knows where each step of the one schedule has gone.
class Copier {
 public:
  Copier(const Schedule& one, Schedule& out) : one_(one), out_(out) {
    out_.steps.clear();
    out_.segments.clear();
    out_.slots.assign(one.slots.size() * std::size_t(out.lanes), {});
    out_.staging = one.staging * out.lanes;
    for (int i = 0; i < one.head(); ++i) ++messages_[channel(one.steps[std::size_t(i)])];
    for (int i = one.head(); i < int(one.steps.size()); ++i) {
      places_.push_back(length_);
      length_ += is_message(one.steps[std::size_t(i)].kind) ? 1 : out.pipeline;
    }
    out_.tail = length_;
  }

  void head(int segment) {
    const int lane = segment % out_.lanes;
    for (int i = 0; i < one_.head(); ++i) {
      Step step = one_.steps[std::size_t(i)];
      step.lane = static_cast<std::uint16_t>(lane);
      step.seq += segment / out_.lanes * messages_[channel(step)];
      append(step, segment, segment + 1);
    }
    for (const Slot& slot : one_.slots)
      for (const Segment& shape : slot.shapes) {
        const Segment s = shifted(shape, segment);
        out_.slots[std::size_t(s.slot)].shapes.push_back(s);
        out_.slots[std::size_t(s.slot)].is_alike = slot.is_alike;
      }
  }

  // Messages are those of all segments together, in the first lane; other steps are repeated.
  void tail() {
    const int turns = (out_.pipeline + out_.lanes - 1) / out_.lanes;
    for (int i = one_.head(); i < int(one_.steps.size()); ++i) {
      Step step = one_.steps[std::size_t(i)];
      require(step.kind != Kind::recv_reduce, "a tail combines what it receives");
      step.seq += (turns - 1) * messages_[channel(step)];
      if (is_message(step.kind)) append(step, 0, out_.pipeline);
      else
        for (int segment = 0; segment < out_.pipeline; ++segment)
          append(step, segment, segment + 1);
    }
  }

  std::uint32_t place(std::uint32_t step, int segment) const {
    const int at = static_cast<int>(step), head = one_.head();
    if (at < head) return static_cast<std::uint32_t>(segment * head + at);
    const bool once = is_message(one_.steps[step].kind);
    return static_cast<std::uint32_t>(out_.pipeline * head + places_[std::size_t(at - head)] +
                                      (once ? 0 : segment));
  }

 private:
  static std::pair<Kind, int> channel(const Step& step) {
    return {step.kind == Kind::recv_reduce ? Kind::recv : step.kind, step.peer};
  }

  Segment shifted(Segment s, int segment) const {
    const int shift = segment * one_.units * one_.cuts;
    s.first += shift;
    if (s.space != Space::scratch) return s;
    const int lane = segment % out_.lanes, own = static_cast<int>(one_.slots.size()) - one_.staging;
    if (s.slot < one_.staging) s.slot += lane * one_.staging;   // first, as on the other ranks
    else s.slot += out_.staging - one_.staging + lane * own;
    s.origin += shift;
    return s;
  }

  void append(Step step, int first, int last) {
    const Segment* s = one_.begin(step);
    const std::uint32_t count = step.segments;
    step.first = static_cast<std::uint32_t>(out_.segments.size());
    step.segments = count * static_cast<std::uint32_t>(last - first);
    for (int segment = first; segment < last; ++segment)
      for (std::uint32_t k = 0; k < count; ++k) out_.segments.push_back(shifted(s[k], segment));
    out_.steps.push_back(step);
  }

  const Schedule& one_;
  Schedule& out_;
  std::map<std::pair<Kind, int>, int> messages_;   // of a copy's head, by direction and peer
  std::vector<int> places_;                        // of the tail's steps within the tail
  int length_ = 0;                                 // of the tail
};

// Steps of the head with which a copy begins, and those with which it ends.
struct Rim {
  std::vector<std::uint32_t> first, last;
};

Rim rim_of(const Schedule& one) {
  const auto head = static_cast<std::uint32_t>(one.head());
  std::vector<bool> has_next(one.steps.size(), false);
  for (const auto& [from, to] : edges_of(one)) has_next[from] = has_next[from] || to < head;
  Rim rim;
  for (std::uint32_t i = 0; i < head; ++i) {
    if (one.indegree[i] == 0) rim.first.push_back(i);
    if (!has_next[i]) rim.last.push_back(i);
  }
  return rim;
}

}  // namespace

Schedule pipeline(Schedule one, int segments, int window, Tail tail) {
  if (segments < 1 || window < 1)
    fail(Fault::usage, "pipeline: ", segments, " segments with a window of ", window,
         "; both must be at least 1.");
  require(one.pipeline == 1, "a pipelined schedule cannot be pipelined again");
  if (segments == 1) return one;
  if (tail == Tail::cut) {
    one.tail = 0;
    one.tail_reads_scratch = false;
  }
  Schedule out = one;
  out.pipeline = segments;
  out.lanes = one.tail_reads_scratch ? segments : std::min(segments, window);
  Copier copier(one, out);
  for (int s = 0; s < segments; ++s) copier.head(s);
  copier.tail();

  const Rim rim = rim_of(one);
  std::vector<Edge> edges;
  for (int s = 0; s < segments; ++s) {
    for (const auto& [from, to] : edges_of(one))
      edges.emplace_back(copier.place(from, s), copier.place(to, s));
    if (s < out.lanes) continue;
    for (std::uint32_t from : rim.last)
      for (std::uint32_t to : rim.first)
        edges.emplace_back(copier.place(from, s - out.lanes), copier.place(to, s));
  }
  set_edges(out, std::move(edges));
  return out;
}

}  // namespace paceline
