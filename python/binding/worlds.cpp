#include "worlds.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "coll/registry.hpp"
#include "ir/bind.hpp"
#include "runtime/communicator.hpp"
#include "simulate/simulate.hpp"
#include "simulate/traffic.hpp"
#include "trace/json.hpp"
#include "tune/choose.hpp"
#include "verify/sweep.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// Limit of ranks: proofs beyond it take hours, and a mistyped number would take all memory.
constexpr int kMaxRanks = 4096;

// An algorithm in a world of one shape.
struct Place {
  const Algorithm* algorithm;
  Shape shape;

  Place(const std::string& collective, const std::string& name, Shape given)
      : algorithm(&find_algorithm(collective_from(collective), name)), shape(given) {
    shape.collective = algorithm->collective;
    if (shape.ranks < 1 || shape.ranks > kMaxRanks)
      fail(Fault::usage, "world: ", shape.ranks, " ranks; it must be 1 to ", kMaxRanks, ".");
    if (shape.root < 0 || shape.root >= shape.ranks)
      fail(Fault::usage, "world: root ", shape.root, " among ", shape.ranks,
           " ranks; it must be 0 to ", shape.ranks - 1, ".");
    check_knobs(*algorithm, shape.cut.knobs);
    if (algorithm->is_load_store()) shape.group = 0;
    if (shape.group < 0 || (shape.group > 0 && shape.ranks % shape.group != 0))
      fail(Fault::usage, "world: nodes of ", shape.group, " ranks among ", shape.ranks,
           "; there must be equally many on each.");
    shape.scattered = shape.scattered && shape.group > 0;
    if (!shape.nodes.empty() && algorithm->is_load_store())
      fail(Fault::usage, "world: ", algorithm->name, " knows no nodes.");
    check_nodes("world", shape.nodes, shape.ranks);
    if (!algorithm->expects_late()) shape.late.clear();
    check_late(problem_of(*algorithm, shape, 0));
  }

  // Assigns positions to ranks that arrive at these times, in seconds.
  Shape arriving(const std::vector<double>& arrivals) const {
    Shape out = shape;
    if (algorithm->claims() && static_cast<int>(arrivals.size()) == shape.ranks)
      out.order = claimed_order(arrivals);
    return out;
  }
  std::string rejects() const {
    const auto reason = why_not(*algorithm, problem_of(*algorithm, shape, 0));
    return reason ? reason->why : std::string();
  }
  std::string print_rank(int rank) const {
    const World world = make_world(*algorithm, shape);
    if (rank < 0 || rank >= shape.ranks)
      fail(Fault::usage, "world: rank ", rank, " among ", shape.ranks, " ranks.");
    return print(world[std::size_t(rank)]);
  }
  Trace simulated(std::size_t count, std::size_t element_bytes, const std::string& machine,
                  const std::vector<double>& arrivals) const {
    return simulate(make_world(*algorithm, arriving(arrivals)), count, element_bytes,
                    machine_from(machine), arrivals);
  }
  bool is_load_store() const { return algorithm->is_load_store(); }
  Traffic traffic(std::size_t count, std::size_t element_bytes) const {
    return traffic_of(make_world(*algorithm, shape), count, element_bytes);
  }
  // Applies `each` to every rank's schedule; results by rank.
  template <class Each>
  auto by_rank(Each&& each) const {
    std::vector<decltype(each(Schedule{}))> ranks;
    for (const Schedule& schedule : make_world(*algorithm, shape)) ranks.push_back(each(schedule));
    return ranks;
  }
};

// The rows of a Traffic by name, without those that are empty.
template <class Kind, std::size_t kRows>
nb::dict named(const std::array<Moved, kRows>& rows) {
  nb::dict out;
  for (std::size_t i = 0; i < kRows; ++i)
    if (rows[i].total() > 0) out[std::string(name_of(Kind(i))).c_str()] = rows[i];
  return out;
}

// The results of some worlds of a sweep.
struct Outcome {
  std::size_t proven = 0;
  std::map<std::string, std::size_t> rejected;               // "allreduce/ring: why" -> worlds
  std::vector<std::pair<std::string, std::string>> faults;   // the line that repeats it, the fault
};

// All worlds that the chosen algorithms have to prove themselves in, small ones first.
class Sweep {
 public:
  Sweep(const std::string& collective, const std::string& algorithm, int max_ranks) {
    if (max_ranks < 1 || max_ranks > kMaxRanks)
      fail(Fault::usage, "sweep: up to ", max_ranks, " ranks; it must be 1 to ", kMaxRanks, ".");
    const Algorithm* only =
        algorithm.empty() ? nullptr : &find_algorithm(collective_from(collective), algorithm);
    for (const Algorithm* a : registry()) {
      if (!collective.empty() && a->collective != collective_from(collective)) continue;
      if (only != nullptr && a != only) continue;
      for (const Shape& shape : sweep(*a, max_ranks)) worlds_.emplace_back(a, shape);
    }
    std::stable_sort(worlds_.begin(), worlds_.end(), [](const auto& a, const auto& b) {
      return a.second.ranks < b.second.ranks;
    });
  }

  std::size_t size() const { return worlds_.size(); }
  int ranks(std::size_t world) const { return worlds_.at(world).second.ranks; }

  Outcome run(std::size_t first, std::size_t count) const {
    Outcome out;
    for (std::size_t i = first; i < std::min(first + count, worlds_.size()); ++i) {
      const auto& [algorithm, shape] = worlds_[i];
      if (const auto reason = why_not(*algorithm, problem_of(*algorithm, shape, 0))) {
        const auto collective = name_of(algorithm->collective);
        ++out.rejected[str(collective, "/", algorithm->name, ": ", reason->why)];
        continue;
      }
      const Verdict verdict = verify(make_world(*algorithm, shape));
      if (verdict) ++out.proven;
      else out.faults.emplace_back(describe(*algorithm, shape), verdict.fault);
    }
    return out;
  }

 private:
  std::vector<std::pair<const Algorithm*, Shape>> worlds_;
};

void add_shape(nb::class_<Place>& place) {
  place
      .def_prop_ro("collective",
                   [](const Place& p) { return std::string(name_of(p.shape.collective)); })
      .def_prop_ro("algorithm", [](const Place& p) { return p.algorithm->name; })
      .def_prop_ro("ranks", [](const Place& p) { return p.shape.ranks; })
      .def_prop_ro("root", [](const Place& p) { return p.shape.root; })
      .def_prop_ro("in_place", [](const Place& p) { return p.shape.in_place; })
      .def_prop_ro("segments", [](const Place& p) { return p.shape.cut.segments; })
      .def_prop_ro("window", [](const Place& p) { return p.shape.cut.window; })
      .def_prop_ro("radix", [](const Place& p) { return p.shape.cut.knobs.radix; })
      .def_prop_ro("blocks", [](const Place& p) { return p.shape.cut.knobs.blocks; })
      .def_prop_ro("late", [](const Place& p) { return p.shape.late; },
                   "Ranks predicted to be late, of those that the algorithm considers.")
      .def_prop_ro("line", [](const Place& p) { return describe(*p.algorithm, p.shape); },
                   "The arguments of `paceline verify` that name this world.");
}

void add_counts(nb::class_<Place>& place) {
  place
      .def_prop_ro("is_load_store", &Place::is_load_store,
                   "True if ranks share memory and send nothing, so that traffic is counted.")
      .def("traffic", &Place::traffic, "count"_a, "element_bytes"_a, Unlocked(),
           "Bytes that the steps of all ranks read and write together.")
      .def("traffic_by_rank",
           [](const Place& p, std::size_t count, std::size_t bytes) {
             return p.by_rank([&](const Schedule& s) { return traffic_of(s, count, bytes); });
           },
           "count"_a, "element_bytes"_a, Unlocked(), "Like traffic(), for each rank.")
      .def("traffic_by_step",
           [](const Place& p, std::size_t count, std::size_t bytes) {
             return p.by_rank([&](const Schedule& s) { return traffic_by_step(s, count, bytes); });
           },
           "count"_a, "element_bytes"_a, Unlocked(), "Like traffic(), for each step of each rank.")
      .def("traffic_after",
           [](const Place& p, int late, std::size_t count, std::size_t bytes) {
             if (late < 0 || late >= p.shape.ranks)
               fail(Fault::usage, "traffic: rank ", late, " among ", p.shape.ranks, " ranks.");
             std::vector<double> arrivals(std::size_t(p.shape.ranks), 0.0);
             arrivals[std::size_t(late)] = 1;
             return traffic_after(make_world(*p.algorithm, p.arriving(arrivals)), late, count,
                                  bytes);
           },
           "late"_a, "count"_a, "element_bytes"_a, Unlocked(),
           "Like traffic_by_rank(), after the entry of rank `late`, for which all others waited.");
}

}  // namespace

void check_nodes(std::string_view where, const std::vector<int>& nodes, int ranks) {
  if (nodes.empty()) return;
  int most = -1;
  bool fits = nodes.size() == std::size_t(ranks);
  for (int node : nodes) {
    fits = fits && node >= 0 && node <= most + 1;
    most = std::max(most, node);
  }
  if (!fits)
    fail(Fault::usage, where, ": there must be a node for each of ", ranks, " ranks, and ",
         "nodes must be numbered from 0 on by their first ranks, as in 0,0,1.");
}

void bind_traces(nb::module_& m) {
  nb::class_<Event>(m, "Event", "An activity of one rank, from begin_s to end_s.")
      .def_ro("rank", &Event::rank)
      .def_prop_ro("activity", [](const Event& e) { return std::string(name_of(e.activity)); })
      .def_ro("peer", &Event::peer)
      .def_ro("step", &Event::step)
      .def_ro("steps", &Event::steps)
      .def_ro("segment", &Event::segment)
      .def_ro("begin_s", &Event::begin_s)
      .def_ro("end_s", &Event::end_s)
      .def_ro("bytes", &Event::bytes);
  nb::class_<Trace>(m, "Trace", "The activities of all ranks, simulated or measured.")
      .def_ro("title", &Trace::title)
      .def_ro("provenance", &Trace::provenance)
      .def_ro("ranks", &Trace::ranks)
      .def_ro("arrival_s", &Trace::arrival_s)
      .def_ro("exit_s", &Trace::exit_s)
      .def_ro("events", &Trace::events)
      .def_prop_ro("span_s", &Trace::span_s)
      .def("to_json", &to_json);
  m.def("start_trace", &Communicator::start_trace, "communicator"_a, Unlocked(),
        "Records every step of every collective of this process from now on.");
  m.def("take_trace", &Communicator::take_trace, "communicator"_a, Unlocked(),
        "Ends the recording. Returns this rank's events, in seconds of CLOCK_MONOTONIC.");
}

void bind_traffic(nb::module_& m) {
  nb::class_<Moved>(m, "Moved", "Bytes that steps read and write.")
      .def_ro("read", &Moved::read)
      .def_ro("written", &Moved::written)
      .def_ro("again", &Moved::again,
              "The part of `read` that the same rank wrote in earlier steps.")
      .def_prop_ro("total", &Moved::total);
  nb::class_<Traffic>(m, "Traffic", "Bytes that steps move, by kind; empty kinds are left out.")
      .def_prop_ro("passes", [](const Traffic& t) { return named<Pass>(t.by_pass); })
      .def_prop_ro("homes", [](const Traffic& t) { return named<Home>(t.by_home); })
      .def_prop_ro("total", &Traffic::total)
      .def_ro("signals", &Traffic::signals)
      .def_ro("syncs", &Traffic::syncs);
}

void bind_worlds(nb::module_& m) {
  nb::class_<Place> place(
      m, "World", "An algorithm on a number of ranks; a knob (radix, blocks) of 0 is left open.");
  place
      .def("__init__",
           [](Place* self, const std::string& collective, const std::string& algorithm, int ranks,
              int root, bool in_place, bool fused, int segments, int window, bool ordered,
              bool uneven, int radix, int blocks, bool in_step, bool whole_tail, int group,
              bool scattered, bool canonical, const std::vector<int>& nodes,
              bool no_staging, const std::vector<double>& arrivals, std::vector<int> late) {
             Shape shape;
             shape.ranks = ranks;
             shape.root = root;
             shape.in_place = in_place;
             shape.fused = fused;
             shape.cut.segments = segments;
             shape.cut.window = window;
             shape.ordered = ordered;
             shape.uneven = uneven;
             shape.cut.knobs = {.radix = radix, .blocks = blocks};
             shape.cut.in_step = in_step;
             shape.cut.whole_tail = whole_tail;
             shape.group = group;
             shape.scattered = scattered;
             shape.canonical = canonical;
             shape.nodes = nodes;
             shape.no_staging = no_staging;
             shape.late = std::move(late);
             new (self) Place(collective, algorithm, shape);
             self->shape = self->arriving(arrivals);
           },
           "collective"_a, "algorithm"_a, "ranks"_a, "root"_a = 0, "in_place"_a = false,
           "fused"_a = false, "segments"_a = 1, "window"_a = 1, "ordered"_a = false,
           "uneven"_a = false, "radix"_a = 0, "blocks"_a = 0, "in_step"_a = false,
           "whole_tail"_a = false, "group"_a = 0, "scattered"_a = false, "canonical"_a = false,
           "nodes"_a = std::vector<int>(), "no_staging"_a = false,
           "arrivals"_a = std::vector<double>(), "late"_a = std::vector<int>())
      .def("rejects", &Place::rejects,
           "Returns the reason why the algorithm cannot serve this world; empty if it can.")
      .def("verify",
           [](const Place& p) { return verify(make_world(*p.algorithm, p.shape)).fault; },
           Unlocked(), "Returns the fault; empty if the world is proven.")
      .def("shake",
           [](const Place& p, std::uint64_t seed) {
             return shake(make_world(*p.algorithm, p.shape), seed).fault;
           },
           "seed"_a, Unlocked(), "Like verify(), after one run in an order drawn from the seed.")
      .def("print", &Place::print_rank, "rank"_a = 0, "Returns one rank's schedule as text.")
      .def("simulate", &Place::simulated, "count"_a, "element_bytes"_a, "machine"_a,
           "arrivals"_a = std::vector<double>(), Unlocked());
  add_shape(place);
  add_counts(place);
}

void bind_sweeps(nb::module_& m) {
  nb::class_<Outcome>(m, "Outcome")
      .def_ro("proven", &Outcome::proven)
      .def_ro("rejected", &Outcome::rejected)
      .def_ro("faults", &Outcome::faults);
  nb::class_<Sweep>(m, "Sweep",
                    "Every small world of the named algorithms; an empty name stands for all.")
      .def(nb::init<std::string, std::string, int>(), "collective"_a, "algorithm"_a, "max_ranks"_a)
      .def("__len__", &Sweep::size)
      .def("ranks", &Sweep::ranks, "world"_a)
      .def("run", &Sweep::run, "first"_a, "count"_a, Unlocked());
}

}  // namespace paceline::binding
