#include "verify/memory.hpp"

#include <tuple>

#include "base/str.hpp"

namespace paceline {
namespace {

std::string text(const std::optional<Value>& value, int ranks) {
  if (!value) return "nothing";
  std::string from;
  for (int r = 0; r < ranks; ++r)
    if (value->from.has(r)) from += str(from.empty() ? "" : " ", r);
  return str("piece ", value->id, " of ranks {", from, "}", value->finished ? ", finished" : "");
}

// Adds one operand to a sum; the text says why it cannot be.
std::string combine(std::optional<Value>& sum, const std::optional<Value>& operand, bool commutative) {
  if (!operand) return "reads a block that nobody wrote";
  if (operand->finished) return "adds a sum that was already finished";
  if (!sum) {
    sum = operand;
    return {};
  }
  if (sum->id != operand->id) return "adds different pieces";
  if (sum->from.meets(operand->from)) return "adds a contribution twice";
  if (!commutative && sum->from.highest() + 1 != operand->from.lowest()) return "adds out of rank order";
  sum->from |= operand->from;
  return {};
}

}  // namespace

Memory::Memory(const World& world) {
  for (const Schedule& s : world) {
    const int rank = s.problem.rank;
    for (Space space : {Space::input, Space::output}) {
      Content& content = content_[{rank, space, 0}];
      for (int b = 0; b < s.blocks(); ++b) content.push_back(before(s, space, b));
    }
  }
}

Memory::Content Memory::read(int rank, const Segment& s) const {
  const auto found = content_.find({s.owner == kOwn ? rank : s.owner, s.space, s.slot});
  Content out(static_cast<std::size_t>(s.blocks));
  if (found == content_.end()) return out;
  const int base = s.space == Space::scratch ? s.origin : 0;
  for (int i = 0; i < s.blocks; ++i) {
    const auto at = static_cast<std::size_t>(s.first - base + i);
    if (at < found->second.size()) out[static_cast<std::size_t>(i)] = found->second[at];
  }
  return out;
}

void Memory::write(int rank, const Segment& s, const Content& content) {
  Content& target = content_[{s.owner == kOwn ? rank : s.owner, s.space, s.slot}];
  const int base = s.space == Space::scratch ? s.origin : 0;
  const auto first = static_cast<std::size_t>(s.first - base);
  if (target.size() < first + content.size()) target.resize(first + content.size());
  for (std::size_t i = 0; i < content.size(); ++i) target[first + i] = content[i];
}

std::string Memory::apply(const Schedule& schedule, const Step& step, const Content& incoming) {
  const int rank = schedule.problem.rank;
  const Segment* s = schedule.begin(step);
  if (step.kind == Kind::copy) {
    const Content content = read(rank, s[1]);
    for (const auto& value : content)
      if (!value) return "copies a block that nobody wrote";
    write(rank, s[0], content);
  } else if (step.kind == Kind::finish) {
    Content content = read(rank, s[0]);
    for (auto& value : content) {
      if (!value || value->finished) return "finishes a block that is not an open sum";
      if (value->from != RankSet::all(schedule.problem.ranks)) return "finishes a sum that lacks contributions";
      value->finished = true;
    }
    write(rank, s[0], content);
  } else if (step.kind == Kind::reduce || step.kind == Kind::recv_reduce) {
    Content sum(static_cast<std::size_t>(s[0].blocks));
    for (std::uint32_t k = 1; k < step.segments; ++k) {
      const Content operand = s[k].space == Space::incoming ? incoming : read(rank, s[k]);
      if (operand.size() != sum.size()) return "adds ranges of different length";
      for (std::size_t i = 0; i < sum.size(); ++i)
        if (std::string bad = combine(sum[i], operand[i], schedule.problem.commutative); !bad.empty()) return bad;
    }
    write(rank, s[0], sum);
  }
  return {};
}

std::string Memory::judge(const World& world) const {
  for (const Schedule& s : world) {
    const Problem& p = s.problem;
    for (int b = 0; b < s.blocks(); ++b) {
      for (Space space : {Space::input, Space::output}) {
        std::optional<Value> wanted = after(s, space, b);
        if (!wanted && space == Space::input) wanted = before(s, space, b);   // read-only
        if (!wanted) continue;
        const std::optional<Value>& found = content_.at({p.rank, space, 0})[std::size_t(b)];
        if (found != wanted)
          return str("contract: rank ", p.rank, " ", space == Space::input ? "input" : "output", " block ", b, " holds ",
                     text(found, p.ranks), " instead of ", text(wanted, p.ranks));
      }
    }
  }
  return {};
}

std::string Memory::fingerprint() const {
  std::string out;
  for (const auto& [place, content] : content_)
    for (const auto& value : content) {
      if (value) {
        out += str(value->id, value->finished ? "!" : ":");
        for (int r = value->from.lowest(); r >= 0 && r <= value->from.highest(); ++r)
          out += value->from.has(r) ? '1' : '0';
      }
      out += ';';
    }
  return out;
}

}  // namespace paceline
