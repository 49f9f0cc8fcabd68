#include "ir/fuse.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "ir/edges.hpp"
#include "ir/load_store.hpp"

namespace paceline {
namespace {

// Steps that use a slot, in order.
std::vector<std::uint32_t> users(const Schedule& schedule, int slot) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (std::any_of(schedule.begin(step), schedule.end(step), [&](const Segment& s) {
          return s.space == Space::scratch && s.slot == slot;
        }))
      out.push_back(i);
  }
  return out;
}

// True if `recv` writes the slot as a whole, and `reduce` reads it once and exactly as written.
bool fits(const Schedule& schedule, const Step& recv, const Step& reduce) {
  if (recv.kind != Kind::recv || recv.segments != 1 || reduce.kind != Kind::reduce) return false;
  const Segment& message = *schedule.begin(recv);
  if (*schedule.begin(reduce) == message) return false;
  return std::count(schedule.begin(reduce) + 1, schedule.end(reduce), message) == 1;
}

// True if no step after `reduce` reads what `recv` left in the slot: a receive comes next.
bool ends(const Schedule& schedule, const std::vector<std::uint32_t>& users, std::size_t reduce) {
  return reduce + 1 == users.size() || schedule.steps[users[reduce + 1]].kind == Kind::recv;
}

// The rounds of a schedule: a send is one round behind the latest receive that it waits for, a
// receive belongs to the latest round of a send before it.
class Rounds {
 public:
  explicit Rounds(const Schedule& schedule)
      : round_(schedule.steps.size()), heard_(round_), sent_(round_),
        last_send_(round_.size(), -1), last_recv_(last_send_) {
    int now = 0, last_recv = -1;
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const Kind kind = schedule.steps[i].kind;
      const bool send = kind == Kind::send, recv = kind == Kind::recv;
      if (send) now = std::max(now, round_[i] = heard_[i] + 1);
      if (recv) heard_[i] = std::max(heard_[i], round_[i] = now);
      before_.push_back(last_recv);
      if (recv) last_recv = static_cast<int>(i);
      for (std::uint32_t e = schedule.edge_begin[i]; e < schedule.edge_begin[i + 1]; ++e) {
        const std::uint32_t next = schedule.edges[e];
        heard_[next] = std::max(heard_[next], heard_[i]);
        if (recv) last_recv_[next] = std::max(last_recv_[next], static_cast<int>(i));
        if (recv) continue;
        sent_[next] = std::max(sent_[next], send ? round_[i] : sent_[i]);
        last_send_[next] = std::max(last_send_[next], send ? static_cast<int>(i) : last_send_[i]);
      }
    }
  }

  // True if the reduce has to wait for a send of the receive's own round, or for one behind the
  // receive before it. Fused, the receive would wait for it too, while the peer's send waits for
  // the receive: ranks that exchange would wait for each other.
  bool waits_for_own_send(std::uint32_t recv, std::uint32_t reduce) const {
    return last_send_[reduce] > before_[recv] ||
           (last_send_[reduce] >= 0 && sent_[reduce] >= round_[recv]);
  }

  // True if the reduce also needs what a later receive brings. Fused, the earlier message would
  // have to wait for the later one, and its sender would lose a round.
  bool waits_for_later_recv(std::uint32_t recv, std::uint32_t reduce) const {
    return last_recv_[reduce] > static_cast<int>(recv);
  }

 private:
  std::vector<int> round_;       // of a send or receive
  std::vector<int> heard_;       // the latest round of a receive that a step waits for
  std::vector<int> sent_;        // the latest round of a send that it waits for, not counting
  std::vector<int> last_send_;   // those which a receive waits for; and the last such send
  std::vector<int> last_recv_;   // the last receive whose message a step needs
  std::vector<int> before_;      // the receive before a step
};

}  // namespace

Schedule fuse(Schedule schedule) {
  require(schedule.pipeline == 1, "a schedule is fused before it is pipelined");
  if (is_load_store(schedule)) return schedule;   // there is nothing to receive
  Schedule out = schedule;
  const Rounds rounds(schedule);
  std::vector<std::optional<std::uint32_t>> received_by(schedule.steps.size());   // by reduce
  std::vector<bool> gone(schedule.steps.size(), false);
  // Skips the staging buffer: other ranks may read it, too.
  for (int slot = schedule.staging; slot < static_cast<int>(schedule.slots.size()); ++slot) {
    const std::vector<std::uint32_t> uses = users(schedule, slot);
    for (std::size_t i = 0; i + 1 < uses.size(); ++i) {
      const std::uint32_t recv = uses[i], reduce = uses[i + 1];
      if (gone[recv] || received_by[reduce] ||
          !fits(schedule, schedule.steps[recv], schedule.steps[reduce]) ||
          !ends(schedule, uses, i + 1) || rounds.waits_for_own_send(recv, reduce) ||
          rounds.waits_for_later_recv(recv, reduce))
        continue;
      received_by[reduce] = recv;
      gone[recv] = true;
    }
  }
  out.steps.clear();
  out.tail -= static_cast<int>(std::count(gone.begin() + schedule.head(), gone.end(), true));
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    if (gone[i]) continue;
    Step step = schedule.steps[i];
    if (received_by[i]) {
      const Step& recv = schedule.steps[*received_by[i]];
      const Segment message = *schedule.begin(recv);
      for (std::uint32_t s = step.first + 1; s < step.first + step.segments; ++s)
        if (out.segments[s] == message) out.segments[s].space = Space::incoming;
      step.kind = Kind::recv_reduce;
      step.peer = recv.peer;
      step.seq = recv.seq;
    }
    out.steps.push_back(step);
  }
  derive_slots(out);
  derive_edges(out);
  return out;
}

}  // namespace paceline
