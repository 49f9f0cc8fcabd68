#include "binding.hpp"

NB_MODULE(_core, m) {
  using namespace paceline::binding;
  m.doc() = "The compiled core of Paceline. Use it through the package `paceline`.";
  bind_errors(m);
  bind_communicator(m);
  bind_world(m);
  bind_mpi(m);
  bind_native(m);
  bind_engine(m);
  bind_store(m);
  bind_device(m);
  bind_device_ranks(m);
  bind_tools(m);
  // At exit, variables of a script may still hold requests. Tests turn the warnings on.
  nanobind::set_leak_warnings(false);
  m.def("warn_of_leaks", [] { nanobind::set_leak_warnings(true); });
}
