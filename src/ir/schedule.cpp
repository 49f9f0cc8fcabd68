#include "ir/schedule.hpp"

#include <algorithm>
#include <array>

#include "base/str.hpp"

namespace paceline {
namespace {

std::string text(const Segment& s) {
  if (s.space == Space::incoming) return "incoming";
  static constexpr std::array<const char*, 3> kNames{"input", "output", "scratch"};
  const char* space = kNames[static_cast<std::size_t>(s.space)];
  std::string where = s.space == Space::scratch ? str(space, s.slot) : std::string(space);
  if (s.owner != kOwn) where = str("rank", s.owner, ".", where);
  return str(where, "[", s.first, "..", s.first + s.blocks, ")");
}

std::string joined(const Segment* first, const Segment* last, const char* separator) {
  std::string out;
  for (const Segment* s = first; s != last; ++s) out += (s == first ? "" : separator) + text(*s);
  return out;
}

std::string text(const Schedule& schedule, const Step& step) {
  const Segment* a = schedule.begin(step);
  const Segment* z = schedule.end(step);
  const std::string peer = str(step.peer, step.lane ? str(" lane ", step.lane) : "");
  switch (step.kind) {
    case Kind::send: return str("-> ", peer, "  ", joined(a, z, ", "));
    case Kind::recv: return str("<- ", peer, "  ", joined(a, z, ", "));
    case Kind::recv_reduce: return str("<- ", peer, "  ", text(*a), " = ", joined(a + 1, z, " + "));
    case Kind::reduce: return str(text(*a), " = ", joined(a + 1, z, " + "));
    case Kind::copy: return str(text(*a), " = ", text(a[1]));
    case Kind::finish: return text(*a);
    default: return str("rank ", peer);
  }
}

std::string late_of(const Problem& problem) {
  std::string out;
  for (int rank : problem.late) out += str(out.empty() ? ", late: " : " ", rank);
  return out;
}

}  // namespace

std::string_view name_of(Kind kind) {
  static constexpr std::array<std::string_view, 8> kNames{
      "send", "recv", "reduce", "copy", "finish", "recv_reduce", "signal", "wait"};
  return kNames[static_cast<std::size_t>(kind)];
}

int Schedule::segment_of(std::uint32_t step) const {
  const int at = static_cast<int>(step);
  return at < head() ? at / (head() / pipeline) : tail > 0 && pipeline > 1 ? pipeline : 0;
}

void set_edges(Schedule& schedule, std::vector<Edge> edges) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  const std::size_t n = schedule.steps.size();
  schedule.edge_begin.assign(n + 1, 0);
  schedule.indegree.assign(n, 0);
  schedule.edges.clear();
  for (const auto& [from, to] : edges) {
    ++schedule.edge_begin[from + 1];
    ++schedule.indegree[to];
    schedule.edges.push_back(to);
  }
  for (std::size_t i = 0; i < n; ++i) schedule.edge_begin[i + 1] += schedule.edge_begin[i];
}

std::vector<Edge> edges_of(const Schedule& schedule) {
  std::vector<Edge> edges;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i)
    for (std::uint32_t e = schedule.edge_begin[i]; e < schedule.edge_begin[i + 1]; ++e)
      edges.emplace_back(i, schedule.edges[e]);
  return edges;
}

std::string print(const Schedule& schedule) {
  std::vector<std::string> after(schedule.steps.size());
  for (const auto& [from, to] : edges_of(schedule)) after[to] += str(" ", from);
  const auto blocks = schedule.blocks();
  std::string out = str(name_of(schedule.problem.collective), "/", schedule.algorithm, ", rank ",
                        schedule.problem.rank, " of ", schedule.problem.ranks, ", ", blocks,
                        blocks == 1 ? " block" : " blocks", late_of(schedule.problem), "\n");
  for (std::size_t i = 0; i < schedule.steps.size(); ++i)
    out += str("  #", i, " ", name_of(schedule.steps[i].kind), " ",
               text(schedule, schedule.steps[i]), after[i].empty() ? "" : "  after", after[i],
               "\n");
  return out;
}

}  // namespace paceline
