// Timing without Python between: calls of ours and of an MPI, in turn, for paceline.bench.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "binding.hpp"
#include "measure/probes.hpp"
#include "measure/series.hpp"
#include "peers/mpi_calls.hpp"
#include "pending.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

using measure::StartLine;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// A start line in memory that Python has mapped, and keeps.
class HeldLine : public StartLine {
 public:
  HeldLine(Buffer memory, int rank, int ranks, bool oversubscribed)
      : StartLine(memory.data(), rank, ranks, oversubscribed, look_for_signals),
        memory_(std::move(memory)) {}

 private:
  Buffer memory_;
};

void make_line(HeldLine* self, nb::handle memory, int rank, int ranks, bool oversubscribed) {
  Buffer held(memory, {"StartLine", "memory"});
  const std::size_t bytes = held.count() * size_of(held.type());
  if (rank < 0 || rank >= ranks || bytes < StartLine::bytes(ranks))
    fail(Fault::usage, "StartLine: rank ", rank, " of ", ranks, " in ", bytes,
         " bytes; it takes a rank below ranks, and ", StartLine::bytes(ranks), " bytes.");
  new (self) HeldLine(std::move(held), rank, ranks, oversubscribed);
}

// A call with all that it needs, checked and ready to be made any number of times.
struct NativeCall {
  nb::object owner;
  Kept kept;
  Buffer input, pattern;
  measure::Side side;
};

void keep(NativeCall& call, nb::handle owner, nb::handle input, nb::handle pattern) {
  call.owner = nb::borrow(owner);
  call.input = Buffer(input, {"NativeCall", "rewritten"});
  call.pattern = Buffer(pattern, {"NativeCall", "pattern"});
  const auto bytes = [](const Buffer& b) { return b.count() * size_of(b.type()); };
  if (bytes(call.input) != bytes(call.pattern))
    fail(Fault::usage, "NativeCall: rewritten has ", bytes(call.input), " bytes and pattern ",
         bytes(call.pattern), "; they must be equal.");
  call.side.input = call.input.data();
  call.side.pattern = call.pattern.data();
  call.side.bytes = bytes(call.input);
}

NativeCall* of_communicator(nb::handle owner, std::string_view collective, nb::handle input,
                            nb::handle output, std::string_view op, int root, nb::handle knobs,
                            nb::handle rewritten, nb::handle pattern) {
  auto made = std::make_unique<NativeCall>();
  keep(*made, owner, rewritten, pattern);
  auto& communicator = nb::cast<Communicator&>(owner);
  const nb::none none;
  const Call call = call_from({collective, input, output, op, root, none, none, knobs},
                              {communicator.rank(), communicator.size()}, made->kept);
  made->side.call = [&communicator, call] { communicator.run(call); };
  return made.release();
}

NativeCall* of_mpi(nb::handle owner, std::string_view collective, nb::handle input,
                   nb::handle output, std::string_view op, int root, nb::handle rewritten,
                   nb::handle pattern, std::string_view form, std::size_t parts) {
  auto made = std::make_unique<NativeCall>();
  keep(*made, owner, rewritten, pattern);
  auto& world = nb::cast<MpiWorld&>(owner);
  const nb::none none;
  const Call call = call_from({collective, input, output, op, root, none, none, none},
                              {world.rank(), world.ranks()}, made->kept);
  made->side.call = [&world, call = MpiCall{call.collective, call.type, call.op, call.root,
                                            call.input, call.output, call.count,
                                            mpi_form_from(form), parts}] {
    call_mpi(world, call);
  };
  return made.release();
}

std::vector<std::vector<double>> alternate(HeldLine& line, const nb::list& calls, int warm_up,
                                           int repeats, const std::vector<int>& batches) {
  if (batches.size() != calls.size() || std::ranges::any_of(batches, [](int n) { return n < 1; }))
    fail(Fault::usage, "alternate: ", batches.size(), " batches for ", calls.size(),
         " calls; there must be one for each, of at least 1 call.");
  std::vector<measure::Side> sides;
  for (const nb::handle call : calls) {
    sides.push_back(nb::cast<NativeCall&>(call).side);
    sides.back().batch = batches[sides.size() - 1];
  }
  try {
    const nb::gil_scoped_release unlocked;
    return measure::alternate(line, sides, {warm_up, repeats});
  } catch (const nb::python_error&) {
    // Ctrl-C: a collective goes on without the caller, and nobody can tell when it ends.
    for (const nb::handle call : calls) call.inc_ref();
    throw;
  }
}

}  // namespace

void bind_measure(nb::module_& m) {
  nb::class_<HeldLine>(m, "StartLine", "Where the ranks of a benchmark meet before each call.")
      .def("__init__", make_line, "memory"_a, "rank"_a, "ranks"_a, "oversubscribed"_a,
           "memory: bytes_for(ranks) bytes that all ranks map, zeroed at first, aligned to 128.\n"
           "oversubscribed: ranks outnumber cores, so that nobody may spin.")
      .def_static("bytes_for", &StartLine::bytes, "ranks"_a, "How much memory it takes.")
      .def("barrier", &StartLine::barrier, Unlocked(),
           "Returns once every rank has called it as often as this one. Raises TimeoutError.")
      .def("start", &StartLine::start, Unlocked(),
           "Waits for everybody, then for a moment that all ranks agree on, and returns it:\n"
           "nanoseconds of time.monotonic_ns().");
  nb::class_<NativeCall>(m, "NativeCall", "A collective that is made without Python between.")
      .def("__call__", [](const NativeCall& self) { self.side.call(); }, Unlocked());
  m.def("native_call", of_communicator, "communicator"_a, "collective"_a, "input"_a.none(),
        "output"_a.none(), "op"_a, "root"_a, "knobs"_a.none(), "rewritten"_a.none(),
        "pattern"_a.none(),
        nb::sig("def native_call(communicator: Communicator, collective: str, input: object | None,"
                " output: object | None, op: str, root: int, knobs: object | None, "
                "rewritten: object | None, pattern: object | None) -> NativeCall"),
        "A call of Communicator.run with these arguments; alternate() writes `rewritten` anew\n"
        "from `pattern` before it.");
  m.def("native_mpi_call", of_mpi, "world"_a, "collective"_a, "input"_a.none(), "output"_a.none(),
        "op"_a, "root"_a, "rewritten"_a.none(), "pattern"_a.none(), "form"_a = "blocking",
        "parts"_a = 1,
        nb::sig("def native_mpi_call(world: MpiWorld, collective: str, input: object | None, "
                "output: object | None, op: str, root: int, rewritten: object | None, "
                "pattern: object | None, form: str = 'blocking', parts: int = 1) -> NativeCall"),
        "Likewise a call of MpiWorld.run; or, by `form`: concurrent, the message in `parts`\n"
        "non-blocking collectives and a wait for all; sendrecv_ring, a ring of its Sendrecv.");
  m.def("alternate", alternate, "line"_a, "calls"_a, "warm_up"_a, "repeats"_a,
        "batches"_a,
        nb::sig("def alternate(line: StartLine, calls: list[NativeCall], warm_up: int, "
                "repeats: int, batches: Sequence[int]) -> list[list[float]]"),
        "Times the calls in turn, `repeats` batches of each after `warm_up` that do not count;\n"
        "batches: how many calls each of them has between two looks at the clock. Returns\n"
        "seconds per call on this rank, by call and batch. Collective.");
  m.def("round_trip_ns", [](HeldLine& line) { return measure::round_trip_ns(line); }, "line"_a,
        Unlocked(),
        "Nanoseconds that a flag takes from rank 0 to rank 1 and back; 0 elsewhere, and where\n"
        "ranks take turns on the cores. Collective.");
  m.def("memory_rates", [](HeldLine& line, std::size_t bytes) {
    const measure::Rates rates = measure::memory_rates(line, bytes);
    return std::pair{rates.add, rates.copy};
  }, "line"_a, "bytes"_a, Unlocked(),
        "Bytes/s that this rank reads and writes while all ranks do the same: (add, copy) on\n"
        "arrays of so many bytes. Collective.");
}

}  // namespace paceline::binding
