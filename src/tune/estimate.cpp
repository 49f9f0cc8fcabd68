#include "tune/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "ir/bind.hpp"

namespace paceline {
namespace {

constexpr double kMostPieces = 128;   // beyond it schedules grow and little is won
constexpr double kMostOfChain = 512;   // has few steps for each, and a port's time is all they cost
constexpr double kMostShort = 8192;   // likewise, so that each of its messages is short
// What rounds in step lose where messages are longer than short: measured, docs/design/0027.
constexpr double kInStep = 1.25;
constexpr double kTail = 0.85;     // the same for cutting what follows the sums: out of step
// Between nodes a shorter call is not cut: what every further message costs is known less well than
// the little it could win (docs/design/0027).
constexpr std::size_t kUncutBytes = 64u << 10;

// How many short messages a rank sends where lone ones are looked at (runtime/bootstrap/probe.cpp).
constexpr double kLone = 2;

// The seconds of the parts of a call, and what of them every further piece takes.
struct Terms {
  double start = 0, wire = 0, work = 0;
  double near_start = 0, near = 0;   // messages inside nodes, beside those across
  double flight = 0;  // of the start, while ports are free; none where rounds wait for each other
  double share = 1;   // of rounds and traffic: less than all in a pipe
  double shown = 0;   // of the shorter of wire and work: what is not hidden behind the other
};

// The first piece takes the algorithm's cost; every further one what it costs the busiest port or
// core, whichever is longer, or both after each other inside a node, where the cores move the data.
//   T(s) = s' alpha rounds + busy + bare / s,  s' = s, or 1 + (s - 1) hops / rounds in a pipe
// is least at sqrt(bare / (alpha rounds)): in a pipe the known best number of blocks, in a ring as
// many as hide its sums. Only `part` of the rounds and the traffic is cut. What of alpha is flight
// a further piece does not cost, and but in a pipe, which is filled once, pieces hide it like sums.
struct InPieces {
  double start = 0, further = 0, busy = 0, bare = 0;
  InPieces(const Terms& t, double part) {
    const double sent = part * t.wire, hidden = t.share < 1 ? 0 : part * t.flight;
    const double ports = t.share * sent, sums = t.share * t.work;
    further = std::max(part * t.share * (t.start - t.flight), t.near_start);
    busy = std::max({ports, sums, t.near}) + t.shown * std::min(ports, sums);
    bare = sent + t.work + t.near - busy + hidden;
    start = t.start + t.near_start - hidden + (t.wire - sent);
  }
  Estimate in(double pieces) const {
    return {start + (pieces - 1) * further + busy + bare / pieces, static_cast<int>(pieces)};
  }
  Estimate in_the_best(double least, double most) const {
    if (bare <= 0) return in(least);
    const double best = std::sqrt(bare / further);
    const double within = std::clamp(best, std::max(least, std::min(2.0, most)), most);
    return in(std::exp2(std::round(std::log2(within))));
  }
};

// Whether neighbours are neighbours on a node: as ranks are numbered, or as they are bound.
bool keeps_nodes_together(const Algorithm& a, const Problem& p) {
  return a.in_node_order || is_bound(a, p) || std::is_sorted(p.nodes.begin(), p.nodes.end());
}

// What the ranks of a node have at its port.
struct Share {
  double senders = 1;   // at a time
  double least = 0;     // s per byte, however fast the port is
  Share(const Candidate& row, const Algorithm& a, const Problem& p, const Machine& m) {
    if (m.ranks_per_node >= p.ranks) return;
    if (row.traits & on_nodes) return;   // it counts messages at a node's port
    if (!(row.traits & lean) || !keeps_nodes_together(a, p)) senders = m.ranks_per_node;
    // From neighbour to neighbour goes as much inside a node as across: the slower link decides.
    else if (m.ranks_per_node > 1) least = m.inside.beta_s_per_byte;
  }
};

// Of a message of a short call, where the others' are in the way of those that could be under way.
double short_alpha_s(const Link& link, const Cost& cost, int ranks) {
  const double quiet = cost.rounds > 0 ? 1 - cost.sent(ranks) / (cost.rounds * ranks) : 0;
  return std::max(link.alpha_s, link.alpha_loaded_s) * (1 - link.contention * quiet);
}

}  // namespace

Estimate estimate(const Candidate& row, const Algorithm& a, const Problem& p,
                  const ChoiceInputs& now) {
  const Machine& m = now.machine;
  const bool one_node = m.ranks_per_node >= p.ranks;
  const Link& link = one_node ? m.inside : m.across;
  const Share port(row, a, p, m);
  Knobs knobs = row.knobs;
  if (row.cut == CutInto::blocks) knobs.blocks = 1;
  const Cost cost = a.cost(p, knobs);
  const double n = static_cast<double>(now.bytes);
  Terms t;
  const bool is_short = !one_node && now.bytes < kUncutBytes;
  const double alpha_s = is_short ? short_alpha_s(link, cost, p.ranks) : link.alpha_s;
  t.start = cost.rounds * alpha_s * port.senders;
  const double message = cost.rounds > 0 ? cost.volume * n / cost.rounds : 0;
  const bool is_long = link.is_long(message);
  const bool is_lone = is_short && link.lone_beta_s_per_byte > 0 && n <= kLone * link.short_bytes;
  const double rate = is_lone ? link.lone_beta_s_per_byte : link.rate(message);
  t.wire = cost.volume * n * std::max(port.senders * rate, port.least);
  t.work = cost.reduced * n * m.gamma_s_per_byte;
  t.near_start = cost.near_rounds * m.inside.alpha_s;
  t.near = cost.near_volume * n * m.inside.beta_s_per_byte;
  // A pipe that adds would wait for long sums in every round.
  const bool waits = row.hops > 0 && t.work > t.wire / 2;
  const bool is_strict = (row.traits & strict) && !one_node, in_step = is_strict && !waits;
  if (in_step && !is_short && link.short_bytes > 0 && message > link.short_bytes) {
    t.start *= kInStep;
    t.wire *= kInStep;
  }
  if (!in_step) t.flight = cost.rounds * link.latency_s * port.senders;
  const Estimate in_one{t.start + t.near_start + t.wire + t.work + t.near, 1, in_step};
  if (row.cut == CutInto::whole || t.start <= 0 || is_short) return in_one;

  if (row.hops > 0) t.share = std::min(1.0, row.hops / cost.rounds);
  // In a pipe of rounds the sums are in the way: all of them in step, half of them otherwise.
  const bool in_rounds = is_strict && row.hops > 0;
  t.shown = one_node || (in_rounds && in_step) ? 1 : in_rounds ? 0.5 : 0;
  const bool is_chain = row.hops > 0 && row.cut == CutInto::segments;
  double most = is_chain && t.flight > 0 ? kMostOfChain : kMostPieces;
  if (link.short_bytes > 0) most = std::clamp(message / link.short_bytes, 1.0, most);
  Estimate cut = InPieces(t, 1).in_the_best(1, most);
  if (row.cut == CutInto::sums) {   // only long sums are worth hiding behind what follows them
    const double below = row.traits & lean ? kMargin : kTail;
    Estimate whole = InPieces(t, 0.5).in_the_best(1, most);
    whole.whole_tail = whole.pieces > 1;
    if (below * whole.seconds <= cut.seconds) cut = whole;
  }
  if (is_long && link.long_from() > 0) {   // its pieces may be short
    const double pieces = std::exp2(std::ceil(std::log2(message / link.long_from())));
    t.wire = cost.volume * n * std::max(port.senders * link.beta_s_per_byte, port.least);
    if (in_step && link.long_from() > link.short_bytes) t.wire *= kInStep;
    const Estimate shorter = InPieces(t, 1).in_the_best(pieces, std::max(pieces, most));
    if (pieces <= kMostShort && shorter.seconds < cut.seconds) cut = shorter;
  }
  // In doubt in pieces: two of them often do better than this says.
  if (cut.pieces == 1 || cut.seconds > in_one.seconds / kMargin) return in_one;
  cut.seconds = std::min(cut.seconds, in_one.seconds);
  cut.in_step = in_step;
  return cut;
}

}  // namespace paceline
