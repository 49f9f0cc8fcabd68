// Data for the command line: names, options, costs; worlds and traces come from worlds.cpp.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrival/metrics.hpp"
#include "arrival/predict.hpp"
#include "arguments.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/options.hpp"
#include "base/processors.hpp"
#include "base/types.hpp"
#include "binding.hpp"
#include "coll/registry.hpp"
#include "kernels/kernels.hpp"
#include "machine/machine_file.hpp"
#include "model/machine.hpp"
#include "runtime/assumed.hpp"
#include "runtime/late_prices.hpp"
#include "transport/shm/segment.hpp"
#include "transport/shm/staging.hpp"
#include "tune/choose.hpp"
#include "worlds.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

std::string text(std::string_view view) { return std::string(view); }

template <class Value>
nb::list names_below(int end) {
  nb::list names;
  for (int i = 0; i < end; ++i) names.append(text(name_of(Value(i))));
  return names;
}

nb::object typed(const OptionRow& row, const std::string& value) {
  if (row.kind == OptionKind::integer || row.kind == OptionKind::bytes)
    return nb::int_(nb::str(value.c_str()));
  return nb::str(value.c_str());
}

nb::dict described(const OptionRow& row) {
  nb::dict out;
  out["name"] = text(row.name);
  out["variable"] = variable_of(row);
  out["kind"] = text(name_of(row.kind));
  out["default"] = text(row.fallback);
  out["range"] = range_of(row);
  out["words"] = text(row.words);
  out["set_by"] = text(name_of(row.set_by));
  out["sentence"] = text(row.sentence);
  // A bad value is shown, not thrown: this is how one finds it.
  try {
    const OptionValue value = value_of(row);
    out["value"] = typed(row, value.text);
    out["source"] = value.is_default ? "default" : "environment";
    out["error"] = "";
  } catch (const Error& error) {
    out["value"] = nb::none();
    out["source"] = "environment";
    out["error"] = text(error.what());
  }
  return out;
}

nb::object checked_option(const std::string& name, const std::string& value,
                          const std::string& where) {
  const OptionRow& row = find_option(name);
  return typed(row, checked(row, value, where));
}

void bind_options(nb::module_& m) {
  m.def("options", [] {
    nb::list rows;
    for (const OptionRow& row : option_rows()) rows.append(described(row));
    return rows;
  }, "Every option as a dict: its definition, its value in force, and the value's origin.");
  m.def("checked_option", &checked_option, "name"_a, "value"_a, "where"_a,
        "Checks a value that is not from the environment; `where` names it in errors.");
  m.def("did_you_mean", [](const std::string& word, const std::string& names) {
    return did_you_mean(word, names);
  }, "word"_a, "names"_a,
        "\" Did you mean ring?\" for a word that is near one of \"ring, chain\"; else empty.");
  m.def("unknown_variables", &unknown_variables, "PACELINE_* variables that name no option.");
  m.def("parse_bytes", [](const std::string& size) {
    const auto bytes = parse_bytes(size);
    if (!bytes) fail(Fault::usage, "'", size, "' is no size; write 4096, 64KiB, 1MiB or 2GB.");
    return *bytes;
  }, "size"_a);
  m.def("imbalance", [](const std::vector<double>& arrivals) {
    const Imbalance found = imbalance_of(arrivals);
    return std::pair(found.worst, found.average);
  }, "arrivals"_a,
        "Worst and average imbalance time of the arrivals of one call, in their unit: the last\n"
        "minus the first, and the mean distance from their mean.");
  m.def("human_bytes", &human_bytes, "bytes"_a);
}

// A communicator's ranks exchange their waits as numbers of few digits.
using WaitsNs = std::vector<std::pair<std::int64_t, std::int64_t>>;

Latest latest_of(const WaitsNs& waits) {
  ArrivalWords all;
  for (std::size_t rank = 0; rank < waits.size(); ++rank) {
    const auto& [waited, rest] = waits[rank];
    const ArrivalWords own(ArrivalWords::Waits::before_any, int(rank), waited, rest);
    if (rank == 0) all = own;
    else all.merge(own);
  }
  return all.latest();
}

// The predictor of calls that are all alike.
struct LoopPredictor {
  Predictor predictor;
  CallPlace place;
};

void bind_predictor(nb::module_& m) {
  nb::class_<LoopPredictor>(
      m, "Predictor", "Predicts late ranks from their earlier arrivals.")
      .def("__init__", [](LoopPredictor* p, int ranks, std::size_t bytes,
                          const std::string& machine) {
        const Problem problem{.collective = Collective::allreduce, .ranks = ranks};
        const ChoiceInputs now{bytes, machine_from(machine)};
        new (p) LoopPredictor{Predictor(ranks), CallPlace(prices_for_late(
                                                    problem, now, choose(problem, now)))};
      }, "ranks"_a, "bytes"_a, "machine"_a, "For allreduces of `bytes` bytes, one rank a node.")
      .def("next", [](LoopPredictor& p) {
        const std::vector<int> late = p.predictor.late(p.place);
        p.predictor.count_call(p.place);
        return late;
      }, "Returns the ranks predicted to be late in the next call, the latest last. Counts the "
         "call.")
      .def("learn", [](LoopPredictor& p, const WaitsNs& waits, const std::vector<int>& taken) {
        p.predictor.learn(p.place, latest_of(waits), taken);
      }, "waits"_a, "taken"_a,
           "Learns from one call. `waits`: for each rank its ns in the call before and after the\n"
           "last rank entered. `taken`: the ranks that were predicted to be late.");
}

// Divides the ranks equally over nodes, side by side; empty if they make no two nodes.
std::vector<int> nodes_of(int ranks, int ranks_per_node) {
  std::vector<int> nodes;
  if (ranks_per_node < 2 || ranks_per_node >= ranks || ranks % ranks_per_node != 0) return nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / ranks_per_node);
  return nodes;
}

nb::list algorithms(int ranks, int ranks_per_node) {
  nb::list out;
  for (const Algorithm* a : registry()) {
    Problem problem;
    problem.collective = a->collective;
    problem.ranks = ranks;
    if (!a->is_load_store()) problem.nodes = nodes_of(ranks, ranks_per_node);
    problem.node_staging = a->by_nodes();
    nb::dict row;
    row["collective"] = text(name_of(a->collective));
    row["name"] = a->name;
    const Cost cost = a->cost(problem, {});
    row["rounds"] = cost.rounds;
    row["volume"] = cost.volume;
    row["reduced"] = cost.reduced;
    row["near_rounds"] = cost.near_rounds;
    row["near_volume"] = cost.near_volume;
    problem.commutative = false;
    const auto reason = a->rejects(problem);
    row["keeps_order"] = !reason;
    nb::list knobs;
    if (a->takes.radix) knobs.append("radix");
    if (a->takes.blocks) knobs.append("blocks");
    row["knobs"] = knobs;
    row["access"] = std::string(name_of(a->access));
    row["canonical"] = a->can_be_canonical();
    row["expects_late"] = a->expects_late();
    row["follows_arrival"] = a->claims();
    row["bits_follow_late"] = a->bits_follow_late();
    out.append(row);
  }
  return out;
}

void bind_names(nb::module_& m) {
  m.def("collectives", [] { return names_below<Collective>(kCollectives); });
  m.def("ops", [] { return names_below<Op>(kOps); });
  m.def("types", [] {
    nb::dict bytes;
    for (int i = 0; i < kTypes; ++i) bytes[text(name_of(Type(i))).c_str()] = size_of(Type(i));
    return bytes;
  }, "Element types: name -> bytes.");
  m.def("is_defined", [](const std::string& op, const std::string& type) {
    return is_defined(op_from(op), type_from(type));
  }, "op"_a, "type"_a);
  m.def("has_root", [](const std::string& c) { return has_root(collective_from(c)); });
  m.def("has_op", [](const std::string& c) { return has_op(collective_from(c)); });
  m.def("kernel_targets", [] {
    nb::list names;
    for (const Target target : targets()) names.append(text(name_of(target)));
    return names;
  }, "Instruction sets that this processor runs; the last is the best, and in use.");
  m.def("algorithms", &algorithms, "ranks"_a = 4, "ranks_per_node"_a = 1,
        "Every algorithm with its cost; volume and reduced are multiples of the message, near_...\n"
        "are inside nodes. access: how a rank gets at its peers' data; nodes: by messages between\n"
        "several nodes, some with several ranks.");
}

nb::dict described(const Choice& choice) {
  nb::dict out;
  out["algorithm"] = choice.algorithm->name;
  out["segments"] = choice.cut.segments;
  out["window"] = choice.cut.window;
  out["radix"] = choice.cut.knobs.radix;
  out["blocks"] = choice.cut.knobs.blocks;
  out["in_step"] = choice.cut.in_step;
  out["whole_tail"] = choice.cut.whole_tail;
  out["why"] = choice.why;
  out["expected_s"] = choice.expected_s;
  return out;
}

// Returns the machine with as many ranks a node as the largest node has, as a communicator does.
Machine machine_on(const std::string& name, const std::vector<int>& nodes, int ranks) {
  check_nodes("choose", nodes, ranks);
  Machine machine = machine_from(name);
  if (!nodes.empty()) machine.ranks_per_node = 1;
  for (int node : nodes) {
    const auto there = std::count(nodes.begin(), nodes.end(), node);
    machine.ranks_per_node = std::max(machine.ranks_per_node, static_cast<int>(there));
  }
  return machine;
}

// Sets what the result's bits may depend on; empty: as the option says.
void take_numbers(Problem& problem, const std::string& wanted) {
  const std::string mode = wanted.empty()
                               ? text_of(Option::numbers)
                               : checked(row_of(Option::numbers), wanted, "choose: numbers");
  problem.canonical = has_op(problem.collective) && mode == "canonical";
  problem.fast = !has_op(problem.collective) || mode == "fast";
}

// Returns the choice of a call of this size, and why; a wish that cannot be met is an error.
nb::dict chosen(const std::string& collective, int ranks, std::size_t bytes,
                const std::string& algorithm, nb::handle segments, int window, int radix,
                int blocks, const std::string& machine, bool attach,
                const std::vector<int>& late, const std::vector<int>& nodes,
                const std::string& numbers) {
  Problem problem;
  problem.collective = collective_from(collective);
  problem.ranks = ranks;
  problem.late = late;
  check_late(problem);
  // Options apply to what the call does not ask for, as in a communicator.
  Overrides wish{algorithm.empty() ? word_for(Option::algorithm, collective) : algorithm,
                 cut_from(segments, "choose")};
  if (wish.cut == Cut{}) wish.cut = cut_from(nb::str(text_of(Option::segments).c_str()), "choose");
  wish.cut.window = window ? window : static_cast<int>(number_of(Option::window));
  wish.cut.knobs = {radix, blocks};
  take_numbers(problem, numbers);
  const Machine model = machine_on(machine, nodes, ranks);
  const bool near = model.ranks_per_node >= ranks;
  problem.one_node = near && ranks > 1;
  problem.single_copy = attach && problem.one_node && text_of(Option::single_copy) == "auto";
  bool by_nodes = false;
  // A caller that asks for an algorithm on shared memory has such memory.
  if (!wish.algorithm.empty() && wish.algorithm != "auto") {
    const Algorithm& asked = find_algorithm(problem.collective, wish.algorithm);
    problem.symmetric = asked.uses(Access::symmetric);
    by_nodes = asked.by_nodes();
    problem.single_copy = problem.single_copy || asked.uses(Access::single_copy);
    problem.one_node = problem.one_node || asked.is_load_store();
    // The call's type is unknown here: exact sums allow it in any numbers but canonical.
    problem.fast = problem.fast || (asked.claims() && !problem.canonical);
  }
  if (!problem.one_node)
    problem.nodes = nodes.empty() || model.ranks_per_node == 1
                        ? nodes_of(ranks, model.ranks_per_node) : nodes;
  const bool on_nodes = !problem.nodes.empty();
  // A caller that asks for an algorithm that goes by nodes has several nodes.
  if (by_nodes) problem.nodes.resize(static_cast<std::size_t>(ranks));
  problem.node_staging = !problem.nodes.empty();
  const auto together = static_cast<std::size_t>(number_of(Option::stage_bytes));
  const int share = problem.one_node            ? ranks
                    : problem.node_staging ? std::max(model.ranks_per_node, 2) : 0;
  const Choice choice =
      choose(problem, {bytes, model, share > 0 ? stage_bytes(together, share) : 0}, wish);
  nb::dict out = described(choice);
  out["group"] = on_nodes && nodes.empty() ? model.ranks_per_node : 0;   // else `nodes` says
  out["on_nodes"] = on_nodes;
  out["one_node"] = near;
  out["canonical"] = problem.canonical;
  return out;
}

// Returns why the system refuses huge pages in a folder of shared memory; empty: it grants them.
std::string trouble_with_huge_pages(const std::string& folder) try {
  const int error = SharedFile::create(folder, kHugePage).use_huge_pages();
  return error == 0 ? "" : std::strerror(error);
} catch (const Error& error) {
  return error.what();
}

void bind_choice(nb::module_& m) {
  m.def("choose", &chosen, "collective"_a, "ranks"_a, "bytes"_a, "algorithm"_a = "",
        "segments"_a = 0, "window"_a = 0, "radix"_a = 0, "blocks"_a = 0,
        "machine"_a = usual_machine().name, "attach"_a = true,
        "late"_a = std::vector<int>(), "nodes"_a = std::vector<int>(), "numbers"_a = "",
        "The choice for a message of `bytes` bytes on a machine, and the reason.\n"
        "`attach`: True if the system copies between the memory of ranks. one_node: True if all\n"
        "ranks are on one node. `late`: ranks predicted to be late, the latest last. `nodes`:\n"
        "the node of each rank; empty: as the machine says. `numbers`: empty: as\n"
        "PACELINE_NUMBERS says.");
  m.def("machines", [] {
    nb::list rows;
    for (const Machine& machine : known_machines())
      rows.append(nb::make_tuple(machine.name, describe(machine)));
    return rows;
  }, "Known machine models: (name, description).");
  m.def("machine", [](const std::string& machine) { return describe(machine_from(machine)); },
        "machine"_a, "Checks a machine model and describes it.");
  m.def("machine_settings", [](const std::string& machine) {
    return settings_of(machine_from(machine));
  }, "machine"_a, "All settings of a machine model: alpha_us=1.5,gbit_per_s=100,...");
  m.def("assumed_machine", [] { return describe(assumed_by(text_of(Option::machine))); },
        "The machine that choices between nodes assume before a measurement, and the reason.");
  m.def("machine_file", [] {
    const MachineFile file = read_machine_file(machine_folder());
    nb::list machines;
    for (const MeasuredMachine& one : file.machines) {
      nb::dict row;
      row["ranks"] = one.ranks;
      row["nodes"] = one.nodes;
      row["day"] = one.day;
      row["settings"] = one.settings;
      machines.append(row);
    }
    nb::dict out;
    out["path"] = file.path;
    out["trouble"] = file.trouble;
    out["machines"] = machines;
    return out;
  }, "The file of measured figures: path, trouble (empty: none), machines, newest first.");
  m.def("bound_s", [](const std::string& collective, int ranks, double bytes,
                      const std::string& machine) {
    return bound_s(machine_from(machine), collective_from(collective), ranks, bytes);
  }, "collective"_a, "ranks"_a, "bytes"_a, "machine"_a,
        "A lower bound for every algorithm on this machine, in seconds; 0: unknown.");
  m.def("trouble_with_huge_pages", &trouble_with_huge_pages, "folder"_a,
        "Returns the reason why shared memory in `folder` gets no huge pages; empty if it does.");
}

}  // namespace

void bind_tools(nb::module_& m) {
  bind_names(m);
  bind_options(m);
  bind_predictor(m);
  bind_choice(m);
  bind_traces(m);
  bind_traffic(m);
  bind_worlds(m);
  bind_sweeps(m);
}

}  // namespace paceline::binding
