#include "tune/estimate.hpp"

#include <algorithm>
#include <cmath>

#include "ir/bind.hpp"

namespace paceline {
namespace {

// Upper limits of pieces. More than kMostPieces make schedules longer and save little. A chain has
// few steps for each piece, which cost only a port's time. kMostShort applies if long messages are
// slow, and makes each piece short.
constexpr double kMostPieces = 128, kMostOfChain = 512, kMostShort = 8192;
// Factor on the time of rounds in step whose messages are longer than Link::short_bytes (measured:
// docs/design/0027).
constexpr double kInStep = 1.25;
// Steps after the sums are cut as well only if the call then takes less than this part of the time:
// cut, they run out of step, and take longer than estimated.
constexpr double kTail = 0.85;
// One of many calls is cut if that leaves less than this part of its time. Else it has the price of
// the cut one: the other calls hide latency and sums as pieces do (docs/design/0018-drop-in.md).
constexpr double kClearly = 0.75;
// The other calls also hide that long messages are slow, from so many times the length of the
// shortest slow one on: each costs a handshake. Measured with bench/cut.c between 8 nodes at
// 200 Mbit/s over Open MPI 5.
constexpr double kHidden = 4;
// A call between nodes of fewer bytes is not cut: the cost of a further message is known less
// exactly than the little that it could save (docs/design/0027).
constexpr std::size_t kUncutBytes = 64u << 10;

// Pieces of an allreduce go inside nodes, across and inside again: a further one under way keeps at
// most this part of a rank busy (simulated: docs/design/0045-mixed.md). If they go inside only
// once, two of them keep both links busy.
constexpr double kThreeStages = 1.0 / 3;

// A call of at most so many short messages has the link's lone_beta, which was measured in the
// probe's ring, where a rank sends two (machine/probe.cpp).
constexpr double kLone = 2;

// Parts of the time of a call in one piece, in seconds: alpha, beta and gamma times their counts in
// the algorithm's cost.
struct Terms {
  double start = 0, wire = 0, work = 0;
  double near_start = 0, near = 0;   // messages inside nodes, beside those across
  double latency = 0;   // part of the start with free ports; 0 if rounds wait for each other
  double repeated = 1;  // part of the traffic that a further piece has; 1 except in a pipe
  double host = 0;      // of one process that starts all messages and sums; 0: each rank its own
  double exposed = 0;   // part of the shorter of wire and work that the other does not hide
  double further = 1;   // part of a rank that a further piece under way keeps busy
};

// The first piece takes the algorithm's cost. A further piece takes the time of the busiest port or
// core, whichever is longer, or of both in turn inside a node, where the cores move the data.
//   T(s) = s' alpha rounds + busy + filling / s,  s' = s, or 1 + (s - 1) hops / rounds in a pipe
// is least at sqrt(filling / (alpha rounds)): in a pipe the known best number of blocks, in a ring
// as many as hide its sums. Only `part` of the rounds and the traffic is cut. A further piece does
// not cost the latency in alpha. Pieces hide it like sums, except in a pipe, which is filled once.
struct InPieces {
  double start = 0;      // of the first piece
  double further = 0;    // of each further one
  double busy = 0;       // of all pieces, at the busiest port or core
  double filling = 0;    // of the message in one piece, at other ports and cores
  double starts = 0, moves = 0;   // a rank's busy time: per piece, and for the data of all pieces
  double beside = 1;     // Terms::further
  double host = 0;       // Terms::host, for each piece
  InPieces(const Terms& t, double part) {
    const double sent = part * t.wire, hidden = t.repeated < 1 ? 0 : part * t.latency;
    const double ports = t.repeated * sent, sums = t.repeated * t.work;
    further = std::max(part * t.repeated * (t.start - t.latency), t.near_start);
    busy = std::max({ports, sums, t.near}) + t.exposed * std::min(ports, sums);
    filling = sent + t.work + t.near - busy + hidden;
    start = t.start + t.near_start - hidden + (t.wire - sent);
    beside = t.further;
    host = t.host;
    starts = t.repeated * (t.start + t.near_start);
    moves = t.repeated * (t.wire + t.work + t.near);
  }
  Estimate in(double pieces) const {
    const double seconds = start + (pieces - 1) * further + busy + filling / pieces;
    return {std::max(seconds, pieces * host), static_cast<int>(pieces)};
  }
  // Each rank has at most `window` pieces under way at a time.
  Estimate in(double pieces, double window) const {
    Estimate e = in(pieces);
    const double at_once = 1 + (window - 1) * beside;
    e.seconds = std::max(e.seconds, (pieces * starts + moves) / at_once);
    return e;
  }
  Estimate in_the_best(double least, double most) const {
    if (filling <= 0) return in(least);
    const double best = std::sqrt(filling / further);
    const double within = std::clamp(best, std::max(least, std::min(2.0, most)), most);
    Estimate found = in(std::exp2(std::round(std::log2(within))));
    for (double pieces = found.pieces / 2; host > 0 && pieces >= least; pieces /= 2)
      if (in(pieces).seconds <= found.seconds) found = in(pieces);
    return found;
  }
};

// True if the ranks of a node are neighbours, as they are numbered or as they are bound.
bool keeps_nodes_together(const Algorithm& a, const Cost& cost, const Problem& p) {
  return cost.in_node_order || is_bound(a, p) || std::is_sorted(p.nodes.begin(), p.nodes.end());
}

// Use of a node's port by its ranks.
struct Port {
  double senders = 1;   // ranks that share it at a time
  double least = 0;     // seconds per byte, however fast the port is
  Port(const Row& row, const Cost& cost, const Problem& p, const Machine& m) {
    const Algorithm& a = *row.algorithm;
    if (m.ranks_per_node >= p.ranks) return;
    if (a.by_nodes()) return;   // its cost is that of a node's port
    if (!(row.traits & lean) || !keeps_nodes_together(a, cost, p)) senders = m.ranks_per_node;
    // Neighbours send as much inside a node as across: the slower link decides.
    else if (m.ranks_per_node > 1) least = m.inside.beta_s_per_byte;
  }
};

// Alpha of a short call. Ranks that send in the same round delay each other; the fewer send
// (`quiet`: the part that does not), the shorter the delay.
double short_alpha_s(const Link& link, const Cost& cost, int ranks) {
  const double quiet = cost.rounds > 0 ? 1 - cost.sent(ranks) / (cost.rounds * ranks) : 0;
  return std::max(link.alpha_s, link.alpha_loaded_s) * (1 - link.contention * quiet);
}

// The rate of a short call's messages, in seconds per byte.
double short_rate(const Link& link, double bytes, double message) {
  const bool is_lone = link.lone_beta_s_per_byte > 0 && bytes <= kLone * link.short_bytes;
  return is_lone ? link.lone_beta_s_per_byte : link.rate(message);
}

// Returns the call in one, or cut. If in doubt it is cut: pieces often take less than estimated.
Estimate better(const Estimate& in_one, const Estimate& cut, bool is_one_of_many) {
  const double seconds = std::min(cut.seconds, in_one.seconds);
  if (is_one_of_many && cut.seconds > in_one.seconds * kClearly)
    return {seconds, 1, in_one.in_step};
  if (cut.pieces == 1 || cut.seconds > in_one.seconds / kMargin) return in_one;
  Estimate result = cut;
  result.seconds = seconds;
  return result;
}

}  // namespace

Estimate estimate(const Row& row, const Problem& p, const ChoiceInputs& now, int pieces,
                  int window) {
  const Algorithm& a = *row.algorithm;
  const Machine& m = now.machine;
  const bool one_node = m.ranks_per_node >= p.ranks;
  const Link& link = one_node ? m.inside : m.across;
  Knobs knobs = row.knobs;
  if (row.cut == CutInto::blocks) knobs.blocks = 1;
  const Cost cost = a.cost(p, knobs);
  const Port port(row, cost, p, m);
  const double n = static_cast<double>(now.bytes);
  Terms t{.further = a.by_nodes() && p.collective == Collective::allreduce ? kThreeStages : 1};
  const bool is_short = !one_node && now.bytes < kUncutBytes;
  const double alpha_s = is_short ? short_alpha_s(link, cost, p.ranks) : link.alpha_s;
  t.start = cost.rounds * alpha_s * port.senders;
  const double message = cost.rounds > 0 ? cost.volume * n / cost.rounds : 0;
  const double rate = is_short ? short_rate(link, n, message) : link.rate(message);
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
  if (!in_step) t.latency = cost.rounds * link.latency_s * port.senders;
  if (now.one_starts_all) t.host = cost.sent(p.ranks) * (t.work > 0 ? 2 : 1) * alpha_s;
  const double alone_s = t.start + t.near_start + t.wire + t.work + t.near;
  const Estimate in_one{std::max(alone_s, t.host), 1, in_step};
  const bool is_whole = row.cut == CutInto::whole || t.start <= 0 || is_short;
  if (pieces == 1 || (pieces == 0 && is_whole)) return in_one;
  if (row.hops > 0) t.repeated = std::min(1.0, row.hops / cost.rounds);
  // Sums delay a pipe of rounds: all of them in step, half of them otherwise.
  const bool in_rounds = is_strict && row.hops > 0;
  t.exposed = one_node || (in_rounds && in_step) ? 1 : in_rounds ? 0.5 : 0;
  if (pieces > 1) return InPieces(t, 1).in(pieces, window > 0 ? window : pieces);
  const bool is_chain = row.hops > 0 && row.cut == CutInto::segments;
  double most = is_chain && t.latency > 0 ? kMostOfChain : kMostPieces;
  if (link.short_bytes > 0) most = std::clamp(message / link.short_bytes, 1.0, most);
  Estimate cut = InPieces(t, 1).in_the_best(1, most);
  if (row.cut == CutInto::sums) {   // only long sums are worth hiding behind what follows them
    const double below = row.traits & lean ? kMargin : kTail;
    Estimate whole = InPieces(t, 0.5).in_the_best(1, most);
    whole.whole_tail = whole.pieces > 1;
    if (below * whole.seconds <= cut.seconds) cut = whole;
  }
  const bool is_hidden = now.is_one_of_many && message >= kHidden * link.long_from();
  if (link.is_long(message) && link.long_from() > 0 && !is_hidden) {   // pieces may be short
    const double least = std::exp2(std::ceil(std::log2(message / link.long_from())));
    t.wire = cost.volume * n * std::max(port.senders * link.beta_s_per_byte, port.least);
    if (in_step && link.long_from() > link.short_bytes) t.wire *= kInStep;
    const Estimate shorter = InPieces(t, 1).in_the_best(least, std::max(least, most));
    if (least <= kMostShort && shorter.seconds < cut.seconds) cut = shorter;
  }
  cut.in_step = in_step;
  return better(in_one, cut, now.is_one_of_many);
}

double expected_s(const Choice& choice, const Problem& p, const ChoiceInputs& now) {
  const Algorithm& a = *choice.algorithm;
  const Machine& m = now.machine;
  Row row = choice.row ? *choice.row : Row{&a, ""};
  if (a.is_load_store()) {
    const Cost cost = a.cost(p, choice.cut.knobs);
    return cost.rounds * m.inside.alpha_s + static_cast<double>(now.bytes) *
               (cost.copied * m.copy_s_per_byte + cost.reduced * m.gamma_s_per_byte);
  }
  int pieces = choice.cut.segments, window = choice.cut.window;
  if (row.cut == CutInto::blocks)
    window = 0, pieces = choice.cut.knobs.blocks / a.cuts(p, {.radix = 0, .blocks = 1});
  else row.knobs = choice.cut.knobs;
  return estimate(row, p, now, std::max(pieces, 1), window).seconds;
}

}  // namespace paceline
