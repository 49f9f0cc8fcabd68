#include "native.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include <string_view>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "base/error.hpp"
#include "binding.hpp"
#include "kernels/kernels.hpp"
#include "runtime/communicator.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

Native* call_of(nb::handle owner, std::string_view collective, nb::handle input, nb::handle output,
                nb::handle op, nb::handle root, nb::handle knobs) {
  auto& communicator = nb::cast<Communicator&>(owner);
  const nb::none none;
  Kept kept;
  const Call call = call_from({collective, input, output, op, root, none, none, knobs},
                              {communicator.rank(), communicator.size()}, kept);
  std::vector<Buffer> buffers;
  buffers.push_back(std::move(kept.input));
  buffers.push_back(std::move(kept.output));
  return new Native(nb::borrow(owner), std::move(buffers),
                    [&communicator, call] { communicator.run(call); });
}

// Uses the kernels of the collectives. Their stores are ordinary ones, as a program's are; those of
// memcpy bypass the cache if it is long.
Native* combination_of(nb::handle target, const nb::list& sources, std::string_view op) {
  Buffer output(target, {"native_combine", "target"});
  if (output.read_only()) fail(Fault::usage, "native_combine: target is read-only.");
  std::vector<Buffer> buffers;
  std::vector<const void*> from;
  for (const nb::handle source : sources) {
    const Buffer& one = buffers.emplace_back(source, Where{"native_combine", "sources"});
    if (one.type() != output.type() || one.count() != output.count())
      fail(Fault::usage, "native_combine: a source has ", one.count(), " elements of ",
           name_of(one.type()), ", target ", output.count(), " of ", name_of(output.type()),
           "; they must be equal.");
    from.push_back(one.data());
  }
  if (from.empty()) fail(Fault::usage, "native_combine: there are no sources.");
  const Reduce kernel = reduce_kernel(output.type(), op_from(op));
  const auto combine = [=, to = output.data(), n = output.count()] {
    kernel(to, from.data(), int(from.size()), n);
  };
  buffers.push_back(std::move(output));
  return new Native(nb::none(), std::move(buffers), combine);
}

}  // namespace

void bind_native(nb::module_& m) {
  nb::class_<Native>(m, "Native", "A prepared call of the core, for other extension modules.")
      .def("__call__", &Native::run, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("capsule", &Native::capsule,
                   "Entry point for such a module, without Python: python/binding/native.hpp.");
  m.def("native_call", call_of, "communicator"_a, "collective"_a, "input"_a.none(),
        "output"_a.none(), "op"_a.none(), "root"_a.none(), "knobs"_a.none(),
        nb::sig("def native_call(communicator: Communicator, collective: str, input: object | None,"
                " output: object | None, op: str, root: int, knobs: object | None) -> Native"),
        "A call of Communicator.run with these arguments.");
  m.def("native_combine", combination_of, "target"_a, "sources"_a, "op"_a,
        nb::sig("def native_combine(target: object, sources: list[object], op: str) -> Native"),
        "Combines the sources by `op` into target, element by element. A single source is copied.\n"
        "All arrays have the same type and length.");
}

}  // namespace paceline::binding
