// Communicators, requests and plans for Python; a user sees python/paceline/communicator.py.
#include "runtime/communicator.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "base/options.hpp"
#include "binding.hpp"
#include "bootstrap/open_world.hpp"
#include "bootstrap/profiled_world.hpp"
#include "on_device.hpp"
#include "pending.hpp"
#include "runtime/diagnostics/profile.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/shared_memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

Seat seat_of(const Communicator& communicator) {
  return {communicator.rank(), communicator.size(), Accepts::devices};
}

// Makes the call, with the place of its buffers.
Call placed_call(const Communicator& self, const Arguments& arguments, Kept& kept) {
  Call call = call_from(arguments, seat_of(self), kept);
  call.device = place_of(kept);
  return call;
}

void run(Communicator& self, std::string_view collective, nb::handle input, nb::handle output,
         nb::handle op, nb::handle root, nb::handle counts, nb::handle received, nb::handle knobs) {
  bury_orphans();
  Kept kept;
  const Call call = placed_call(
      self, {collective, input, output, op, root, counts, received, knobs}, kept);
  try {
    const nb::gil_scoped_release unlocked;
    self.run(call);
  } catch (const nb::python_error&) {
    // Ctrl-C: the collective goes on without the caller, and its end is unknown: the buffers stay.
    new Kept(std::move(kept));
    throw;
  }
}

Pending* begin(Communicator& self, std::string_view collective, nb::handle input, nb::handle output,
               nb::handle op, nb::handle root, nb::handle counts, nb::handle received,
               nb::handle knobs, nb::object result) {
  bury_orphans();
  Kept kept;
  const Call call = placed_call(
      self, {collective, input, output, op, root, counts, received, knobs}, kept);
  auto request = [&] {
    const nb::gil_scoped_release unlocked;
    return self.start(call);
  }();
  return new Pending(std::move(request), std::move(kept), std::move(result));
}

PendingPlan* plan(Communicator& self, std::string_view collective, nb::handle input,
                  nb::handle output, nb::handle op, nb::handle root, nb::handle counts,
                  nb::handle received, nb::handle knobs, nb::object result) {
  Kept kept;
  const Call call = placed_call(
      self, {collective, input, output, op, root, counts, received, knobs}, kept);
  auto made = [&] {
    const nb::gil_scoped_release unlocked;
    return self.plan(call);
  }();
  return new PendingPlan(std::move(made), std::move(kept), std::move(result));
}

std::string explain(Communicator& self, std::string_view collective, nb::handle input,
                    nb::handle output, nb::handle op, nb::handle root, nb::handle counts,
                    nb::handle received, nb::handle knobs) {
  Kept kept;
  const Call call = placed_call(
      self, {collective, input, output, op, root, counts, received, knobs}, kept);
  const nb::gil_scoped_release unlocked;
  return self.explain(call);
}

std::optional<Communicator> split(Communicator& self, int colour, int key) {
  const nb::gil_scoped_release unlocked;
  Communicator part = self.split(colour, key);
  if (!part.valid()) return {};
  return part;
}

using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

// Returns zeroed bytes in a numpy array that holds them, true if all ranks reach them, and on one
// rank the reason if they do not.
std::tuple<Bytes, bool, std::string> allocate(Communicator& self, std::size_t bytes) {
  auto memory = [&] {
    const nb::gil_scoped_release unlocked;
    return self.allocate(bytes);
  }();
  auto* data = reinterpret_cast<std::uint8_t*>(memory->data());
  const bool shared = memory->is_shared();
  std::string trouble = memory->trouble();
  auto* held = new std::shared_ptr<SharedMemory>(std::move(memory));
  const nb::capsule owner(held, [](void* p) noexcept {
    delete static_cast<std::shared_ptr<SharedMemory>*>(p);
  });
  return {Bytes(data, {bytes}, owner), shared, std::move(trouble)};
}

void bind_request(nb::module_& m) {
  nb::class_<Pending>(m, "Request", "A collective under way.")
      .def("test", &Pending::test,
           "Makes progress. Returns True once the collective is complete.")
      .def("wait_for", &Pending::wait_for, "milliseconds"_a,
           "Waits for at most `milliseconds`. Returns True once the collective is complete. If it\n"
           "is not complete, it goes on.")
      .def("sleep_for", &Pending::sleep_for, "milliseconds"_a,
           "Like wait_for(), beside a program that computes: uses no core, and returns early when\n"
           "another collective is complete.")
      .def("wait", &Pending::wait, "timeout_ms"_a = 0,
           "Returns the result once the collective is complete. Raises TimeoutError after "
           "timeout_ms\n"
           "milliseconds (0: the communicator's time-out), MismatchError or RankLost.")
      .def("join", &Pending::join, "stream"_a,
           "For a call on memory of a CUDA device: makes later work on the stream (a CUstream)\n"
           "start after the call. The host does not wait.")
      .def_prop_ro("is_on_device", &Pending::is_on_device)
      .def_prop_ro("result", &Pending::result,
                   "The array that holds the result after wait(), or None.");
  nb::class_<PendingPlan>(m, "Plan", "A collective that is set up once and started many times.")
      .def("start", &PendingPlan::start,
           "Starts the collective. Call wait() before the next start().")
      .def("test", &PendingPlan::test,
           "Makes progress. Returns True once this start is complete.")
      .def("wait", &PendingPlan::wait, "timeout_ms"_a = 0,
           "Returns the result once this start is complete. Raises the errors of Request.wait().");
}

}  // namespace

void bind_communicator(nb::module_& m) {
  m.attr("REFUSED") = std::string(kRefused);
  nb::class_<Communicator>(m, "Communicator",
                           "Ranks that call collectives together, in the same order.")
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def_prop_ro("nodes", &Communicator::nodes)
      .def_prop_ro("broken", &Communicator::broken, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_rw("timeout_ms", &Communicator::timeout_ms, &Communicator::set_timeout,
                   nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("machine", [](const Communicator& self) {
        return settings_of(self.assumed().machine);
      })
      .def("run", run, "collective"_a, "input"_a.none(), "output"_a.none(), "op"_a.none(),
           "root"_a.none(), "counts"_a.none(), "received"_a.none(), "knobs"_a.none())
      .def("start", begin, "collective"_a, "input"_a.none(), "output"_a.none(), "op"_a.none(),
           "root"_a.none(), "counts"_a.none(), "received"_a.none(), "knobs"_a.none(),
           "result"_a.none())
      .def("plan", plan, "collective"_a, "input"_a.none(), "output"_a.none(), "op"_a.none(),
           "root"_a.none(), "counts"_a.none(), "received"_a.none(), "knobs"_a.none(),
           "result"_a.none())
      .def("explain", explain, "collective"_a, "input"_a.none(), "output"_a.none(), "op"_a.none(),
           "root"_a.none(), "counts"_a.none(), "received"_a.none(), "knobs"_a.none())
      .def("allocate", allocate, "bytes"_a)
      .def("leave_out_sums", &Communicator::leave_out_sums)
      .def("split", split, "colour"_a, "key"_a)
      .def("subgroup", &Communicator::subgroup, "ranks"_a, "tag"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("is_called", &Communicator::is_called, nb::call_guard<nb::gil_scoped_release>())
      .def("record", [](const Communicator& self, const std::string& reason) {
        return json_of(self.record(reason));
      }, "reason"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("write_record", [](const Communicator& self, const std::string& reason,
                              const std::string& folder) {
        return write_record(self.record(reason), folder);
      }, "reason"_a, "folder"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("begin_profile", [](Communicator& self, const std::string& folder, std::size_t bytes) {
        begin_profile(self, {.folder = folder, .node = text_of(Option::node), .bytes = bytes});
      }, "folder"_a, "bytes"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("end_profile", &end_profile, nb::call_guard<nb::gil_scoped_release>())
      .def("label_calls", [](Communicator& self, const std::string& label) {
        self.profile().label(label);
      }, "label"_a)
      .def("abort", &Communicator::abort, "why"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("complete", &Communicator::complete, nb::call_guard<nb::gil_scoped_release>())
      .def("leave", [](Communicator& self, bool is_interrupted) {
        leave_world(self, is_interrupted ? Leaving::interrupted : Leaving::ended);
      }, "is_interrupted"_a = false, nb::call_guard<nb::gil_scoped_release>());
  bind_request(m);
}

}  // namespace paceline::binding
