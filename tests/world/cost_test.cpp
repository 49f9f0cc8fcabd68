// Costs in the headers of the algorithms, checked against their schedules for p <= 64.
//
// The simulator with one of alpha, beta and gamma at 1 and the others at 0 counts rounds, bytes and
// combined bytes along the longest chain. "In step" means that messages leave and enter a rank in
// its author's order, none overtaking another: that is how the formulas count.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>

#include "base/str.hpp"
#include "coll/algorithms.hpp"
#include "coll/sums.hpp"
#include "shapes/binomial.hpp"
#include "simulate/simulate.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

std::vector<int> ranks_tried() {
  if (short_run()) return {2, 3, 4, 5, 8, 13};
  std::vector<int> all;
  for (int p = 2; p <= (long_run() ? 64 : 33); ++p) all.push_back(p);
  if (!long_run()) all.insert(all.end(), {48, 63, 64});
  return all;
}

std::string full_name(const Algorithm& a) { return str(name_of(a.collective), "/", a.name); }

bool sends(Kind kind) { return kind == Kind::send; }
bool receives(Kind kind) { return kind == Kind::recv || kind == Kind::recv_reduce; }

// The world with the author's order of messages for an edge.
World in_step(World world) {
  for (Schedule& s : world) {
    std::vector<Edge> edges = edges_of(s);
    for (const auto& is : {sends, receives}) {
      std::uint32_t last = ~std::uint32_t{0};
      for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
        if (!is(s.steps[i].kind)) continue;
        if (last != ~std::uint32_t{0}) edges.emplace_back(last, i);
        last = i;
      }
    }
    set_edges(s, std::move(edges));
  }
  return world;
}

// One element per block: all blocks are equally long, and counts are exact in floating point.
struct Counted {
  World world;
  std::size_t count;   // elements per unit
  double total;        // bytes of the message

  explicit Counted(World w) : world(std::move(w)), count(std::size_t(world[0].cuts)) {
    total = double(4 * count) * world[0].units;
  }
  double along(double alpha_s, double beta_s, double gamma_s) const {
    Machine m;
    m.name = "count";
    m.across = {alpha_s, beta_s};
    m.gamma_s_per_byte = gamma_s;
    return simulate(world, count, 4, m).span_s();
  }
  double rounds() const { return along(1, 0, 0); }
  double volume() const { return along(0, 1, 0) / total; }
  double reduced() const { return along(0, 0, 1) / total; }
  double copied() const {
    Machine m;
    m.copy_s_per_byte = 1;
    return simulate(world, count, 4, m).span_s() / total;
  }
};

// Returns the differences between schedules in shared memory and their formula; the copies of a
// lone rank do not count.
std::string memory_cost_fault(const Algorithm& a, const Shape& shape) {
  const Counted counted(make_world(a, shape));
  const Cost cost = a.cost(problem_of(a, shape, 0), shape.cut.knobs);
  const auto fault = [&](const char* what, double found, double said) -> std::string {
    if (std::abs(found - said) <= 1e-9 * std::max(1.0, said)) return "";
    return str(describe(a, shape), ": ", found, " ", what, ", the formula says ", said, "\n");
  };
  const std::string copied =
      shape.ranks > 1 ? fault("of n copied", counted.copied(), cost.copied) : "";
  return copied + fault("rounds", counted.rounds(), cost.rounds) +
         fault("of n combined", counted.reduced(), cost.reduced);
}

// Returns the part of the message that the busiest rank sends or receives, counted from the steps.
double busiest(const World& world) {
  int most = 0;
  for (const Schedule& s : world) {
    int out = 0, in = 0;
    for (const Step& step : s.steps)
      for (const Segment* at = s.begin(step); at != s.end(step); ++at) {
        if (sends(step.kind)) out += at->blocks;
        if (receives(step.kind)) in += at->blocks;
      }
    most = std::max({most, out, in});
  }
  return double(most) / world[0].blocks();
}

int sent(const World& world) {
  int messages = 0;
  for (const Schedule& s : world)
    for (const Step& step : s.steps) messages += sends(step.kind);
  return messages;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

// Algorithms whose header says "at most"; all others are exact in step.
const std::set<std::string> kAtMost{"allreduce/dual_root", "allreduce/double_binary_tree",
                                    "allreduce/sorted_chain"};

// Factor by which overtaking messages slow an algorithm, as its header says: an early block takes
// the port that another still needs.
const std::map<std::string, double> kOvertaking{{"allreduce/dual_root", 8.0 / 7},
                                                {"broadcast/circulant", 1.4},
                                                {"broadcast/scatter_circulant", 7.0 / 6},
                                                {"reduce/circulant", 1.1}};

// Returns the differences between schedules and formula of the algorithm; empty: none.
std::string cost_fault(const Algorithm& a, const Shape& shape) {
  const World world = make_world(a, shape);
  const Counted counted(in_step(world));
  Cost cost = a.cost(problem_of(a, shape, 0), shape.cut.knobs);
  cost.rounds += cost.near_rounds;   // all ranks are equally near
  cost.volume += cost.near_volume;
  const bool at_most = kAtMost.contains(full_name(a));
  const auto fault = [&](const char* what, double found, double said) -> std::string {
    if (near(found, said) || (at_most && found < said)) return "";
    return str(describe(a, shape), ": ", found, " ", what, ", the formula says ", said, "\n");
  };
  std::string out = fault("rounds", counted.rounds(), cost.rounds) +
                    fault("of n sent", counted.volume(), cost.volume) +
                    fault("of n combined", counted.reduced(), cost.reduced);
  const double free = Counted(world).rounds();
  const double most = kOvertaking.contains(full_name(a)) ? kOvertaking.at(full_name(a)) : 1;
  if (free > cost.rounds * most * (1 + 1e-9) || (most == 1 && !at_most && !near(free, cost.rounds)))
    out += str(describe(a, shape), ": ", free, " rounds where messages overtake each other\n");
  const double messages = cost.sent(shape.ranks);
  if (sent(world) > messages || (cost.messages > 0 && sent(world) < messages))
    out += str(describe(a, shape), ": ", sent(world), " messages, the formula says ", messages,
               "\n");
  if (const double port = busiest(world); port > cost.volume * (1 + 1e-9))
    out += str(describe(a, shape), ": a rank sends or receives ", port, " n, more than ",
               cost.volume, "\n");
  return out;
}

std::vector<Knobs> knobs_of(const Algorithm& a) {
  std::vector<Knobs> all = knob_corners(a);
  all.insert(all.begin(), Knobs{});
  return all;
}

// ---- Lower bounds, one port per rank ----

double least_volume(Collective collective, int p) {
  const double share = double(p - 1) / p;
  switch (collective) {
    case Collective::broadcast:
    case Collective::reduce: return 1;
    case Collective::allreduce: return 2 * share;
    case Collective::barrier: return 0;
    default: return share;
  }
}

// Bounds that an algorithm must meet, at powers of two or for every p.
struct Meets {
  const char* name;
  bool any_p = true;
  int rounds = 0;        // multiple of ceil(log2 p) rounds; 0: not required
  bool volume = false;
  Knobs knobs = {};
};

const Meets kMeets[] = {
    {"allreduce/recursive_doubling", false, 1, false},
    {"allreduce/recursive_multiplying", false, 1, false, {.radix = 2}},
    {"allreduce/binomial", true, 2, false},
    {"allreduce/gather", true, 1, false},
    {"allreduce/circulant", true, 2, true},
    {"allreduce/rabenseifner", false, 2, true},
    {"allreduce/ring", true, 0, true},
    {"allreduce/direct", true, 0, true},
    {"broadcast/binomial", true, 1, false},
    {"reduce/binomial", true, 1, false},
    {"reduce/k_nomial", true, 1, false, {.radix = 2}},
    {"reduce/scatter_gather", true, 2, false},
    {"reduce_scatter/circulant", true, 1, true},
    {"reduce_scatter/recursive_halving", false, 1, true},
    {"reduce_scatter/ring", true, 0, true},
    {"reduce_scatter/direct", true, 0, true},
    {"allgather/circulant", true, 1, true},
    {"allgather/recursive_doubling", false, 1, true},
    {"allgather/ring", true, 0, true},
    {"allgather/linear", true, 0, true},
    {"alltoall/bruck", true, 1, false},
    {"alltoall/pairwise", true, 0, true},
    {"gather/binomial", true, 1, true},
    {"gather/linear", true, 0, true},
    {"scatter/binomial", true, 1, true},
    {"scatter/linear", true, 0, true},
    {"barrier/dissemination", true, 1, true},
};

// Returns the costs below a bound, or above one that they must meet; empty: none.
std::string bound_fault(const Algorithm& a, const Shape& shape) {
  const int p = shape.ranks, q = ceil_log2(p);
  const Counted counted(in_step(make_world(a, shape)));
  const double rounds = counted.rounds(), volume = counted.volume();
  const double least = least_volume(a.collective, p);
  std::string out;
  const auto miss = [&](const char* what, double found, double bound) {
    out += str(describe(a, shape), ": ", found, what, bound, "\n");
  };
  if (rounds < q) miss(" rounds, fewer than ", rounds, q);
  if (volume < least * (1 - 1e-9)) miss(" of n, less than ", volume, least);
  for (const Meets& meets : kMeets) {
    if (full_name(a) != meets.name || !(shape.cut.knobs == meets.knobs)) continue;
    if (!meets.any_p && !std::has_single_bit(unsigned(p))) continue;
    if (meets.rounds > 0 && rounds > meets.rounds * q)
      miss(" rounds, not ", rounds, meets.rounds * q);
    if (meets.volume && !near(volume, least)) miss(" of n, not ", volume, least);
    if (meets.volume && !near(busiest(counted.world), least))
      miss(" of n at one rank, not ", busiest(counted.world), least);
  }
  return out;
}

// Algorithms over shared memory send no data: their cost is checked in simulate_test.cpp, and
// bounds on messages do not apply to them.
std::vector<const Algorithm*> senders() {
  std::vector<const Algorithm*> out;
  std::copy_if(registry().begin(), registry().end(), std::back_inserter(out),
               [](const Algorithm* a) { return !a->is_load_store() && !a->by_nodes(); });
  return out;
}

Shape shape_of(const Algorithm& a, int ranks, const Knobs& knobs = {}) {
  return {.collective = a.collective, .ranks = ranks, .cut = {.knobs = knobs}};
}

}  // namespace

TEST_CASE("cost: rounds, bytes and combinations of every schedule are what its formula says") {
  int counted = 0;
  for (const Algorithm* a : senders())
    for (const Knobs& knobs : knobs_of(*a))
      for (int p : ranks_tried()) {
        const std::string fault = cost_fault(*a, shape_of(*a, p, knobs));
        CHECK_MESSAGE(fault.empty(), fault);
        ++counted;
      }
  MESSAGE(counted, " worlds counted");
}

TEST_CASE("cost: signals, copies and combinations in shared memory are what the formula says") {
  std::set<std::string> counted;
  for (const Algorithm* a : registry()) {
    if (!a->is_load_store()) continue;
    for (int p = 1; p <= kSourcesAtOnce; ++p)   // beyond, sums take several steps
      for (int blocks : {0, 2, 5}) {
        if (blocks > 0 && !a->takes.blocks) continue;
        const Shape shape = shape_of(*a, p, {.radix = 0, .blocks = blocks});
        if (why_not(*a, problem_of(*a, shape, 0))) continue;
        const std::string fault = memory_cost_fault(*a, shape);
        CHECK_MESSAGE(fault.empty(), fault);
        counted.insert(full_name(*a));
      }
  }
  CHECK(counted.contains("allreduce/one_shot"));
  CHECK(counted.contains("broadcast/staged"));
}

TEST_CASE("mutants: a formula for shared memory with another number of copies") {
  Algorithm wrong = allreduce_two_shot;
  wrong.cost = [](const Problem& pb, const Knobs& knobs) {
    Cost cost = allreduce_two_shot.cost(pb, knobs);
    cost.copied += 1;
    return cost;
  };
  CHECK(memory_cost_fault(wrong, shape_of(wrong, 4, {})).find("of n copied") != std::string::npos);
}

TEST_CASE("cost: nobody is below the lower bounds, and those meet them who should") {
  std::size_t found = 0;
  for (const Algorithm* a : senders()) {
    std::vector<Knobs> tried{{}};
    for (const Meets& meets : kMeets) {
      if (full_name(*a) != meets.name) continue;
      ++found;
      if (!(meets.knobs == Knobs{})) tried.push_back(meets.knobs);
    }
    for (const Knobs& knobs : tried)
      for (int p : ranks_tried()) {
        const std::string fault = bound_fault(*a, shape_of(*a, p, knobs));
        CHECK_MESSAGE(fault.empty(), fault);
      }
  }
  CHECK(found == std::size(kMeets));   // every row is an algorithm
}

TEST_CASE("cost: B blocks take B - 1 + ceil(log2 p) rounds, as few as there can be") {
  for (const Algorithm* a : {&broadcast_circulant, &reduce_circulant})
    for (int blocks : {1, 2, 3, 4, 7, 16})
      for (int p : ranks_tried()) {
        const Shape shape = shape_of(*a, p, {.blocks = blocks});
        CHECK_MESSAGE(Counted(in_step(make_world(*a, shape))).rounds() ==
                          blocks - 1 + ceil_log2(p), describe(*a, shape));
      }
}

TEST_CASE("cost: mutants are noticed") {
  Algorithm more = allreduce_ring;   // one message more than the formula has
  more.build = [](const Problem& pb, const Knobs& knobs, Builder& b) {
    allreduce_ring.build(pb, knobs, b);
    b.send((pb.rank + 1) % pb.ranks, {b.output(0)});
    b.recv((pb.rank + pb.ranks - 1) % pb.ranks, {b.scratch(b.output(0))});
  };
  Algorithm hollow = allreduce_ring;   // the same without content
  hollow.build = [](const Problem& pb, const Knobs& knobs, Builder& b) {
    allreduce_ring.build(pb, knobs, b);
    b.send((pb.rank + 1) % pb.ranks, {});
    b.recv((pb.rank + pb.ranks - 1) % pb.ranks, {});
  };
  Algorithm nearest = broadcast_binomial;   // a tree that serves its small subtrees first
  nearest.build = [](const Problem& pb, const Knobs&, Builder& b) {
    const BinomialTree tree{pb.ranks};
    if (pb.rank > 0) b.recv(tree.parent(pb.rank), {b.output()});
    for (int child : tree.children(pb.rank)) b.send(child, {b.output()});
  };
  Algorithm cheaper = allreduce_circulant, adds_less = reduce_binomial, small = allreduce_dual_root;
  Algorithm quieter = broadcast_binomial, louder = broadcast_binomial;
  cheaper.cost = [](const Problem& pb, const Knobs& knobs) {
    Cost cost = allreduce_circulant.cost(pb, knobs);
    cost.volume -= 1.0 / pb.ranks;
    return cost;
  };
  adds_less.cost = [](const Problem& pb, const Knobs& knobs) {
    Cost cost = reduce_binomial.cost(pb, knobs);
    cost.reduced -= 1;
    return cost;
  };
  quieter.cost = [](const Problem& pb, const Knobs& knobs) {
    Cost cost = broadcast_binomial.cost(pb, knobs);
    cost.messages -= 1;
    return cost;
  };
  louder.cost = [](const Problem& pb, const Knobs& knobs) {
    Cost cost = broadcast_binomial.cost(pb, knobs);
    cost.messages += 1;
    return cost;
  };
  small.cost = [](const Problem& pb, const Knobs& knobs) {   // an upper bound that is none
    Cost cost = allreduce_dual_root.cost(pb, knobs);
    cost.rounds /= 2;
    return cost;
  };
  for (const Algorithm* a : {&more, &hollow, &nearest, &cheaper, &adds_less, &small, &quieter,
                             &louder})
    for (int p : {4, 7, 8}) CHECK(!cost_fault(*a, shape_of(*a, p)).empty());
  CHECK(bound_fault(allreduce_circulant, shape_of(allreduce_circulant, 7)).empty());
  Algorithm slow = allreduce_circulant;   // misses the bounds for its name
  slow.build = more.build;
  CHECK(!bound_fault(slow, shape_of(slow, 7)).empty());
  Algorithm lossy = broadcast_chain;   // sends nothing
  lossy.build = [](const Problem&, const Knobs&, Builder&) {};
  CHECK(!bound_fault(lossy, shape_of(lossy, 4)).empty());
}
