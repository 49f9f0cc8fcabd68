#include "fuzz/program.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/str.hpp"

namespace paceline::fuzz {
namespace {

std::string list_of(const std::vector<int>& numbers) {
  std::string out;
  for (int n : numbers) out += str(out.empty() ? "" : " ", n);
  return "{" + out + "}";
}

const char* name_of(Way way) {
  switch (way) {
    case Way::split: return "split";
    case Way::dup: return "dup";
    case Way::subgroup: return "subgroups";
    default: return "each alone";
  }
}

std::string text_of(const Program& program, const Making& m) {
  std::string out = str("make     ", name_of(m.way), " of group ", m.parent, ":");
  for (int g = m.first; g < m.first + m.groups; ++g)
    out += str(" ", g, " = ", list_of(program.groups[std::size_t(g)]));
  return out;
}

}  // namespace

std::uint64_t draw(std::uint64_t seed, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t step = 0x9e3779b97f4a7c15u;   // so that zeros do not stay zeros
  std::uint64_t out = Random::mix(seed + step);
  for (const std::uint64_t more : {a, b, c}) out = Random::mix(out ^ Random::mix(more + step));
  return out;
}

int position_of(const Program& program, int group, int rank) {
  const std::vector<int>& members = program.groups[std::size_t(group)];
  const auto at = std::find(members.begin(), members.end(), rank);
  return at == members.end() ? -1 : static_cast<int>(at - members.begin());
}

int size_of_group(const Program& program, int group) {
  return static_cast<int>(program.groups[std::size_t(group)].size());
}

std::string text_of(const Program& program, int call) {
  const Invocation& c = program.calls[std::size_t(call)];
  const char* modes[] = {"blocking", "started", "planned"};
  const char* values[] = {"", ", wild numbers", ", special numbers"};
  std::string out = str("call ", call, ": ", name_of(c.collective), " on group ", c.group, " ",
                        list_of(program.groups[std::size_t(c.group)]));
  if (c.collective != Collective::barrier) out += str(", ", c.count, " ", name_of(c.type));
  if (has_op(c.collective)) out += str(", ", name_of(c.op), values[int(c.values)]);
  if (has_root(c.collective)) out += str(", root ", c.root);
  if (!c.counts.empty())
    out += ", counts " + list_of(std::vector<int>(c.counts.begin(), c.counts.end()));
  for (int i = 0; i < size_of_group(program, c.group); ++i)
    if (c.in_place >> i & 1) out += str(", in place at ", i);
  out += str(", ", modes[int(c.mode)], c.shared ? ", shared" : "");
  if (c.shift > 0) out += str(", shifted by ", c.shift);
  if (!c.algorithm.empty()) out += str(", ", c.algorithm);
  if (c.priority != 0) out += str(", priority ", c.priority);
  if (c.segments > 0) out += str(", ", c.segments, " segments by ", c.window);
  if (c.blocks > 0) out += str(", ", c.blocks, " blocks");
  if (c.same_as >= 0) out += str(", the same as ", c.same_as);
  if (c.plan_of >= 0) out += str(", by the plan of ", c.plan_of);
  return out;
}

std::string text_of(const Program& program) {
  std::string out = str("seed ", program.seed, ", ", program.ranks, " ranks",
                        program.nodes.empty() ? "" : " on nodes " + list_of(program.nodes),
                        program.numbers == Numbers::fast ? ", numbers=fast\n" : "\n");
  for (const Action& a : program.actions) {
    switch (a.kind) {
      case Action::Kind::make:
        out += text_of(program, program.makings[std::size_t(a.subject)]);
        break;
      case Action::Kind::release: out += str("release  group ", a.subject); break;
      case Action::Kind::begin: out += text_of(program, a.subject); break;
      case Action::Kind::complete: out += "complete " + list_of(a.calls); break;
    }
    out += "\n";
  }
  return out;
}

Program thinned(const Program& program, const std::vector<int>& kept) {
  const auto gone = [&](int call) {
    return std::find(kept.begin(), kept.end(), call) == kept.end();
  };
  Program out = program;
  for (Invocation& c : out.calls) {
    if (c.same_as >= 0 && gone(c.same_as)) c.same_as = -1;
    if (c.plan_of >= 0 && gone(c.plan_of)) c.plan_of = -1;
  }
  for (Action& a : out.actions) std::erase_if(a.calls, gone);
  std::erase_if(out.actions, [&](const Action& a) {
    return a.kind == Action::Kind::begin ? gone(a.subject)
                                         : a.kind == Action::Kind::complete && a.calls.empty();
  });
  return out;
}

}  // namespace paceline::fuzz
