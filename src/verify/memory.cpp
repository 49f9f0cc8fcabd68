#include "verify/memory.hpp"

#include <tuple>

#include "base/str.hpp"
#include "ir/edges.hpp"

namespace paceline {
namespace {

std::string text(const std::optional<Value>& value, int ranks) {
  if (!value) return "nothing";
  std::string from;
  for (int r = 0; r < ranks; ++r)
    if (value->from.has(r)) from += str(from.empty() ? "" : " ", r);
  return str("piece ", value->id, " of ranks {", from, "}",
             value->how.empty() ? "" : str(", added as ", value->how),
             value->finished ? ", finished" : "");
}

// Adds one operand to a sum; returns why it cannot, or nothing.
std::string combine(std::optional<Value>& sum, const std::optional<Value>& operand,
                    bool commutative) {
  if (!operand) return "reads a block that no rank wrote";
  if (operand->finished) return "adds a sum that was already finished";
  if (!sum) {
    sum = operand;
    return {};
  }
  if (sum->id != operand->id) return "adds different pieces";
  if (sum->from.meets(operand->from)) return "adds a contribution twice";
  if (!commutative && sum->from.highest() + 1 != operand->from.lowest())
    return "adds out of rank order";
  sum->from |= operand->from;
  if (!sum->how.empty()) sum->how += ' ' + operand->how;
  return {};
}

// Names the step that wrote this block of the rank's buffer last, in the author's order. A peer may
// have written since.
std::string last_writer(const Schedule& schedule, Space space, int block) {
  for (std::uint32_t i = static_cast<std::uint32_t>(schedule.steps.size()); i-- > 0;) {
    const Step& step = schedule.steps[i];
    for (std::uint32_t k = 0; k < step.segments; ++k) {
      const Segment& s = schedule.begin(step)[k];
      if (writes(step.kind, k) && s.owner == kOwn && s.space == space && s.first <= block &&
          block < s.first + s.blocks)
        return str("step ", i, " (", name_of(step.kind), ") wrote it");
    }
  }
  return "no step writes it";
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

// A slot's blocks have other places and lengths under another shape than the one it was written in:
// reading them so gives no values.
Memory::Content Memory::read(int rank, const Segment& s) const {
  const Place place = place_of(rank, s);
  const auto found = content_.find(place);
  Content out(static_cast<std::size_t>(s.blocks));
  if (found == content_.end()) return out;
  const bool scratch = s.space == Space::scratch;
  if (scratch && shapes_.at(place) != std::pair{s.like, s.origin}) return out;
  for (int i = 0; i < s.blocks; ++i) {
    const auto at = static_cast<std::size_t>(s.first - (scratch ? s.origin : 0) + i);
    if (at < found->second.size()) out[static_cast<std::size_t>(i)] = found->second[at];
  }
  return out;
}

void Memory::write(int rank, const Segment& s, const Content& content) {
  const Place place = place_of(rank, s);
  const bool scratch = s.space == Space::scratch;
  Content& target = content_[place];
  if (scratch) {
    auto& shape = shapes_.try_emplace(place, s.like, s.origin).first->second;
    if (shape != std::pair{s.like, s.origin}) target.clear();
    shape = {s.like, s.origin};
  }
  const auto first = static_cast<std::size_t>(s.first - (scratch ? s.origin : 0));
  if (target.size() < first + content.size()) target.resize(first + content.size());
  for (std::size_t i = 0; i < content.size(); ++i) target[first + i] = content[i];
}

std::string Memory::apply(const Schedule& schedule, const Step& step, const Content& incoming) {
  const int rank = schedule.problem.rank;
  const Segment* s = schedule.begin(step);
  if (step.kind == Kind::copy) {
    const Content content = read(rank, s[1]);
    for (const auto& value : content)
      if (!value) return "copies a block that no rank wrote";
    write(rank, s[0], content);
  } else if (step.kind == Kind::finish) {
    Content content = read(rank, s[0]);
    for (auto& value : content) {
      if (!value || value->finished) return "finishes a block that is not an open sum";
      if (value->from != RankSet::all(schedule.problem.ranks))
        return "finishes a sum that lacks contributions";
      value->finished = true;
    }
    write(rank, s[0], content);
  } else if (step.kind == Kind::reduce || step.kind == Kind::recv_reduce) {
    Content sum(static_cast<std::size_t>(s[0].blocks));
    for (std::uint32_t k = 1; k < step.segments; ++k) {
      const Content operand = s[k].space == Space::incoming ? incoming : read(rank, s[k]);
      if (operand.size() != sum.size()) return "adds ranges of different length";
      for (std::size_t i = 0; i < sum.size(); ++i)
        if (std::string bad = combine(sum[i], operand[i], schedule.problem.commutative);
            !bad.empty())
          return bad;
    }
    for (auto& value : sum)
      if (step.segments > 2 && value && !value->how.empty()) value->how = '(' + value->how + ')';
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
          return str("contract: rank ", p.rank, " ", space == Space::input ? "input" : "output",
                     " block ", b, " holds ", text(found, p.ranks), " instead of ",
                     text(wanted, p.ranks), "; ", last_writer(s, space, b));
      }
    }
  }
  return {};
}

std::string Memory::fingerprint() const {
  std::string out;
  for (const auto& [place, content] : content_) {
    out += str(std::get<0>(place), " ", int(std::get<1>(place)), " ", std::get<2>(place), ":");
    if (const auto shape = shapes_.find(place); shape != shapes_.end())
      out += str(int(shape->second.first), " ", shape->second.second, ":");
    out += key(content);
  }
  return out;
}

std::string key(const Memory::Content& content) {
  std::string out = str(content.size(), ":");
  for (const auto& value : content) {
    if (value) out += str(value->id, value->finished ? '!' : ':') + value->from.key() + value->how;
    out += ';';
  }
  return out;
}

}  // namespace paceline
