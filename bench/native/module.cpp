// paceline_bench._native: calls of Paceline and of an MPI, timed in turn without Python between.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "native_function.hpp"
#include "peer.hpp"
#include "probes.hpp"
#include "series.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::measure {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::c_contig, nb::device::cpu>;

// Ctrl-C ends a wait.
void look_for_signals() {
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

// A start line in memory that Python has mapped, and keeps.
class HeldLine : public StartLine {
 public:
  HeldLine(Bytes memory, int rank, int ranks, bool oversubscribed)
      : StartLine(memory.data(), rank, ranks, oversubscribed, look_for_signals),
        memory_(std::move(memory)) {}

 private:
  Bytes memory_;
};

void make_line(HeldLine* self, Bytes memory, int rank, int ranks, bool oversubscribed) {
  if (rank < 0 || rank >= ranks || memory.size() < StartLine::bytes(ranks))
    fail(Fault::usage, "StartLine: rank ", rank, " of ", ranks, " in ", memory.size(),
         " bytes; it takes a rank below ranks, and ", StartLine::bytes(ranks), " bytes.");
  new (self) HeldLine(std::move(memory), rank, ranks, oversubscribed);
}

// The function that paceline._core has prepared.
std::function<void()> function_of(nb::handle native) {
  const nb::object capsule = native.attr("capsule");
  const void* found = PyCapsule_GetPointer(capsule.ptr(), binding::kNativeCapsule);
  if (!found) nb::raise_python_error();
  const auto function = *static_cast<const binding::NativeFunction*>(found);
  return [function] { function.run(function.self); };
}

// A call with all that it needs, ready to be made any number of times.
struct Timed {
  nb::list kept;
  Side side;

  void rewrite_by(std::optional<nb::object> native) {
    if (!native) return;
    side.rewrite = function_of(*native);
    kept.append(*native);
  }
};

Timed* timed(nb::handle call, std::optional<nb::object> rewrite) {
  auto made = std::make_unique<Timed>();
  made->side.call = function_of(call);
  made->kept.append(call);
  made->rewrite_by(std::move(rewrite));
  return made.release();
}

// The ranks of an MPI; `owner` keeps its communicator.
class HeldPeer {
 public:
  HeldPeer(std::string_view abi, const std::string& path, nb::object owner)
      : owner_(std::move(owner)),
        peer_(peers::Peer::open(abi, path, reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(
                                               owner_.attr("communicator"))))) {}
  const peers::Peer& peer() const { return *peer_; }

 private:
  nb::object owner_;
  std::unique_ptr<peers::Peer> peer_;
};

// The memory of an array; None: null.
void* data_of(const nb::object& array) {
  return array.is_none() ? nullptr : nb::cast<Array>(array).data();
}

Timed* mpi_call(nb::handle owner, const std::string& collective, const nb::object& input,
                const nb::object& output, std::size_t count, const std::string& type,
                const std::string& op, int root, std::string_view form, std::size_t parts,
                std::optional<nb::object> rewrite) {
  auto made = std::make_unique<Timed>();
  peers::MpiCall call{collective, type, op, root, data_of(input), data_of(output), count};
  for (const nb::object& array : {input, output})
    if (!array.is_none()) call.element = nb::cast<Array>(array).itemsize();
  call.form = peers::form_from(form);
  call.parts = parts;
  made->side.call = nb::cast<HeldPeer&>(owner).peer().prepared(call);
  for (const nb::handle one : {owner, nb::handle(input), nb::handle(output)})
    made->kept.append(one);
  made->rewrite_by(std::move(rewrite));
  return made.release();
}

std::vector<std::vector<double>> alternate_in(HeldLine& line, const nb::list& calls, int warm_up,
                                              int repeats, const std::vector<int>& batches) {
  if (batches.size() != calls.size() || std::ranges::any_of(batches, [](int n) { return n < 1; }))
    fail(Fault::usage, "alternate: ", batches.size(), " batches for ", calls.size(),
         " calls; there must be one for each, of at least 1 call.");
  std::vector<Side> sides;
  for (const nb::handle call : calls) {
    sides.push_back(nb::cast<Timed&>(call).side);
    sides.back().batch = batches[sides.size() - 1];
  }
  try {
    const nb::gil_scoped_release unlocked;
    return alternate(line, sides, {warm_up, repeats});
  } catch (const nb::python_error&) {
    // Ctrl-C: a collective goes on without the caller, and may end at any time.
    for (const nb::handle call : calls) call.inc_ref();
    throw;
  }
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Timing without Python between, for paceline_bench.";
  nb::module_::import_("paceline._core");  // it knows how errors of C++ become Paceline's
  nb::class_<HeldLine>(m, "StartLine", "Meeting place of a benchmark's ranks before each call.")
      .def("__init__", make_line, "memory"_a, "rank"_a, "ranks"_a, "oversubscribed"_a,
           "memory: bytes_for(ranks) bytes that all ranks map, zeroed at first, aligned to 128.\n"
           "oversubscribed: ranks outnumber cores, so that none may spin.")
      .def_static("bytes_for", &StartLine::bytes, "ranks"_a, "Bytes of memory that it takes.")
      .def("barrier", &StartLine::barrier, Unlocked(),
           "Returns once every rank has called it as often as this one. Raises TimeoutError.")
      .def("start", &StartLine::start, Unlocked(),
           "Waits for all ranks, then for a moment that they agree on, and returns it:\n"
           "nanoseconds of time.monotonic_ns().");
  nb::class_<Timed>(m, "Timed", "A collective that is made without Python between.")
      .def("__call__", [](const Timed& self) { self.side.call(); }, Unlocked());
  nb::class_<HeldPeer>(m, "Peer", "An MPI's own collectives.")
      .def(nb::init<std::string_view, const std::string&, nb::object>(), "abi"_a, "path"_a,
           "world"_a,
           "abi: as Mpi.abi has it. path: of the library, which this process has loaded.\n"
           "world: an MpiWorld.");
  m.def("timed", timed, "call"_a, "rewrite"_a = nb::none(),
        "A Native of paceline._core, timed; alternate() makes `rewrite`, another one, before it.");
  m.def("mpi_call", mpi_call, "peer"_a, "collective"_a, "input"_a.none(), "output"_a.none(),
        "count"_a, "type"_a = "uint8", "op"_a = "sum", "root"_a = 0, "form"_a = "blocking",
        "parts"_a = 1, "rewrite"_a = nb::none(),
        "A call of the MPI's own, on numpy arrays; count: elements of a unit, which is what a\n"
        "rank sends to one other, or the whole vector. form: blocking; concurrent, the message in\n"
        "`parts` non-blocking collectives and a wait for all; sendrecv_ring, a ring of its\n"
        "Sendrecv. Raises RefusalError for types and operations that MPI does not have.");
  m.def("alternate", alternate_in, "line"_a, "calls"_a, "warm_up"_a, "repeats"_a, "batches"_a,
        nb::sig("def alternate(line: StartLine, calls: list[Timed], warm_up: int, "
                "repeats: int, batches: Sequence[int]) -> list[list[float]]"),
        "Times the calls in turn, `repeats` batches of each after `warm_up` that do not count;\n"
        "batches: how many calls each of them has between two looks at the clock. Returns\n"
        "seconds per call on this rank, by call and batch. Collective.");
  m.def("round_trip_ns", [](HeldLine& line) { return round_trip_ns(line); }, "line"_a, Unlocked(),
        "Nanoseconds that a flag takes from rank 0 to rank 1 and back; 0 elsewhere, and where\n"
        "ranks take turns on the cores. Collective.");
  m.def("rate", [](HeldLine& line, std::size_t bytes, nb::handle native) {
    const auto action = function_of(native);
    const nb::gil_scoped_release unlocked;
    return rate(line, bytes, action);
  }, "line"_a, "bytes"_a, "native"_a,
        "Bytes/s of a Native that reads and writes so many, while all ranks do the same.\n"
        "Collective.");
}

}  // namespace paceline::measure
