#include "tune/late.hpp"

#include <algorithm>
#include <cmath>

#include "coll/hierarchy.hpp"
#include "coll/registry.hpp"
#include "tune/estimate.hpp"

namespace paceline {
namespace {

constexpr const char* kForThoseLate = "late ranks: what is left once they enter is least";
constexpr double kMostBlocks = 512, kMostPasses = 64;
// Factor on the cost of a pass where the first exchange is a direct one, with which passes collide
// if no rank is late (simulated: 0041).
constexpr double kCrossing = 4;
constexpr int kMostSteps = 20000;   // of a rank's schedule
constexpr int kQuarter = 4;         // at most one rank in so many may be late

constexpr std::size_t kBlock = 128u << 10;   // bytes of a block, by arrival

// Figures of a call: the message, one link, the numbers of late and early ranks. If ranks share
// nodes: numbers of nodes, whose leaders share the port and the sums, and the time inside.
struct Terms {
  double n, alpha, beta, gamma;
  double late, ranks, early;
  double inside_s = 0;

  Terms(const Problem& p, const ChoiceInputs& now)
      : n(static_cast<double>(now.bytes)), alpha(std::max(now.machine.across.alpha_s, 1e-9)),
        beta(now.machine.across.beta_s_per_byte), gamma(now.machine.gamma_s_per_byte),
        late(static_cast<double>(p.late.size())), ranks(p.ranks), early(ranks - late) {
    if (!p.nodes.empty()) take_nodes(Hierarchy::by_messages(p), now.machine.inside);
  }
  double wire() const { return n * beta; }
  bool are_few() const { return kQuarter * late <= ranks; }   // true if few are late

 private:
  void take_nodes(const Hierarchy& h, const Link& inside) {
    const double others = h.most_ranks() - 1, leaders = h.leaders();
    inside_s = 2 * others * (inside.alpha_s + n / leaders * inside.beta_s_per_byte) +
               others / leaders * n * gamma;
    late = static_cast<double>(h.late().size());
    ranks = h.nodes();
    early = ranks - late;
    alpha *= leaders;
    gamma /= leaders;
  }
};

// True if the algorithm works by nodes just if ranks share nodes: then whole nodes are late.
bool suits(const Algorithm& late, const Problem& p) { return late.by_nodes() != p.nodes.empty(); }

// True if a call may switch from one to the other when some ranks are predicted late.
bool may_switch(const Problem& p, const Algorithm& from, const Algorithm& to) {
  if (!has_op(p.collective) || p.fast) return true;
  if (p.canonical) return from.can_be_canonical() && to.can_be_canonical();
  return from.bits != Bits::own && from.bits == to.bits && from.by_nodes() == to.by_nodes();
}

// The power of two next to sqrt(hidden / each): time that pieces hide, and cost of a further one.
int pieces(double hidden, double each, double most) {
  return static_cast<int>(std::exp2(
      std::round(std::log2(std::clamp(std::sqrt(hidden / each), 1.0, most)))));
}

// In a pass an early rank's port carries p - 1 pieces, and a late rank's one for each early rank;
// some pieces of several late ranks meet at one port. An algorithm with the bits of a ring in
// segments has as many segments as the ring, all under way at a time.
LateForm tail(const Algorithm& a, const Terms& t, bool rooted, const Cut& usual) {
  const bool keeps_slots = a.bits != Bits::own;   // in the first exchange
  const int segments = a.bits == Bits::by_ring ? std::max(usual.segments, 1) : 1;
  const double crowd = rooted ? 1 : (t.ranks - 1 + (t.late - 1) / 2) / t.early;
  const double flow = std::max(crowd * t.wire(), t.ranks / t.early * t.n * t.gamma);
  const double sends = rooted ? t.early : t.ranks - 1;
  const double most = std::clamp(kMostSteps / (3 * t.ranks), 1.0, kMostPasses);
  const double each = sends * t.alpha * (keeps_slots ? kCrossing : 1);
  const int blocks = std::max(1, pieces(flow, each, most) / segments), passes = blocks * segments;
  LateForm form{&a, {.segments = segments, .window = segments, .knobs = {.blocks = blocks}}};
  form.residual_s = flow * (1 + 1.0 / passes) + (passes * sends + t.early) * t.alpha;
  form.before_s = (t.early - 1) * (t.alpha + t.wire() / t.early);
  // Segments overlap: while one crosses the wire others move inside the nodes.
  const double hidden = std::min(form.residual_s, t.inside_s) * (1 - 1.0 / segments);
  form.residual_s += t.inside_s - hidden;
  return form;
}

// All blocks go down a chain in sequence, over `hops` hops once the last rank has entered.
// `twice`: the late ranks receive all sums, and all but the last one pass them on.
LateForm chain(const Algorithm& a, const Terms& t, double hops, bool twice) {
  const double flow = (twice ? 2 : 1) * std::max(t.wire(), t.n * t.gamma);
  const int blocks = pieces(hops * t.wire(), t.alpha, kMostBlocks);
  LateForm form{&a, {.segments = 1, .window = 1, .knobs = {.blocks = blocks}}};
  const double block_s = t.alpha + t.wire() / blocks;
  form.residual_s = flow + (hops - 1) * block_s + (twice ? 2 : 1) * blocks * t.alpha;
  form.before_s = (t.ranks - 2 + blocks) * block_s;
  return form;
}

std::optional<LateForm> form_of(const Algorithm& a, const Problem& p, const Terms& t,
                                const Cut& usual) {
  switch (p.collective) {
    case Collective::allreduce:
      if (a.bits_follow_late()) return chain(a, t, t.ranks, t.late > 1);
      if (a.bits == Bits::by_ring && 3 * t.ranks * usual.segments > kMostSteps) return {};
      return tail(a, t, false, usual);
    case Collective::reduce: return tail(a, t, true, usual);
    case Collective::broadcast: return chain(a, t, t.late, false);
    default: return {};
  }
}

}  // namespace

std::optional<LateForm> form_for_late(const Problem& problem, const ChoiceInputs& now,
                                      const Choice& usual) {
  if (problem.late.empty() || problem.one_node || now.bytes == 0) return {};
  const Terms terms(problem, now);
  if (!terms.are_few()) return {};
  std::optional<LateForm> best;
  for (const Algorithm* a : registry()) {
    if (!a->expects_late() || a->collective != problem.collective || !suits(*a, problem) ||
        !may_switch(problem, *usual.algorithm, *a) || why_not(*a, problem))
      continue;
    const auto form = form_of(*a, problem, terms, usual.cut);
    if (form && (!best || form->residual_s < best->residual_s)) best = form;
  }
  return best;
}

std::optional<Cut> cut_for_late(const Algorithm& named, Problem problem, const ChoiceInputs& now) {
  if (!named.expects_late() || problem.late.empty() || problem.one_node || now.bytes == 0)
    return {};
  if (!named.by_nodes()) problem.nodes.clear();
  const auto form = form_of(named, problem, Terms(problem, now), kUncut);
  return form ? std::optional(form->cut) : std::nullopt;
}

std::optional<Choice> chosen_by_arrival(const Problem& p, const ChoiceInputs& now,
                                        const Choice& usual) {
  if (!p.one_node || !p.fast || !usual.algorithm->uses(Access::staging)) return {};
  if (10 * now.bytes > 9 * now.stage_bytes) return {};   // it is shown whole
  for (const Row& row : rows()) {
    const Algorithm& a = *row.algorithm;
    if (a.collective != p.collective || !a.claims() || !row.fits(p.ranks, now.bytes) ||
        why_not(a, p))
      continue;
    Choice choice{.algorithm = &a, .row = &row, .why = row.why};
    if (a.takes.blocks) choice.cut.knobs.blocks = static_cast<int>(now.bytes / kBlock + 1);
    return choice;
  }
  return {};
}

// A broadcast that expects late ranks lets the others end before these come, even if the last rank
// ends no earlier.
bool is_faster(const LateForm& form, const Problem& problem, const Choice& usual) {
  const double margin = problem.collective == Collective::broadcast ? 1 : kMargin;
  return form.residual_s < margin * usual.expected_s;
}

std::optional<Choice> chosen_late(const Problem& p, const ChoiceInputs& now,
                                  const Choice& usual) {
  const std::optional<LateForm> form = form_for_late(p, now, usual);
  if (!form || !is_faster(*form, p, usual)) return {};
  return Choice{.algorithm = form->algorithm, .cut = form->cut, .why = kForThoseLate,
                .expected_s = form->residual_s};
}

}  // namespace paceline
