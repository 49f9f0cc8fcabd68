// An MPI in this process, for Python: python/paceline/mpi.py finds and guards it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "binding.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/start_mpi.hpp"
#include "config.hpp"
#include "transport/mpi/library.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline::binding {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// mpi4py says where its MPI_Comm is; None means all processes.
const void* address_of(std::optional<std::uintptr_t> communicator) {
  return communicator ? reinterpret_cast<const void*>(*communicator) : nullptr;
}

Communicator join(MpiLibrary& self, std::optional<std::uintptr_t> communicator,
                  std::optional<int> timeout_ms, std::optional<int> start_timeout_ms) {
  const WorldConfig config = config_with(timeout_ms, start_timeout_ms);
  const nb::gil_scoped_release unlocked;
  return join_mpi(self, address_of(communicator), config);
}

}  // namespace

void bind_mpi(nb::module_& m) {
  nb::class_<MpiWorld>(m, "MpiWorld",
                       "All processes of an MPI, in a communicator of Paceline's own.")
      .def_prop_ro("rank", &MpiWorld::rank)
      .def_prop_ro("size", &MpiWorld::ranks)
      .def("wake_peers", &MpiWorld::wake_peers, Unlocked(),
           "Lets MPI send the messages that it still holds.")
      .def("allgather", &MpiWorld::allgather, "mine"_a, Unlocked(),
           "Returns the texts of all ranks, by rank. Collective.")
      .def_prop_ro("communicator", [](const MpiWorld& self) {
        return reinterpret_cast<std::uintptr_t>(self.communicator_address());
      }, "The address of its MPI_Comm, a duplicate; valid as long as this object is.");
  nb::class_<MpiLibrary>(m, "Mpi", "An MPI that has been loaded into this process.")
      .def_prop_ro("abi", [](const MpiLibrary& self) { return std::string(self.abi()); },
                   "Its binary interface: mpich, openmpi, or standard (MPI 5).")
      .def_prop_ro("version", &MpiLibrary::version)
      .def_prop_ro("is_initialized", &MpiLibrary::is_initialized)
      .def_prop_ro("is_finalized", &MpiLibrary::is_finalized)
      .def("init", [](MpiLibrary& self) { return std::string(name_of(init_mpi(self))); },
           Unlocked(),
           "Initialises it if needed. Returns its thread level.")
      .def("finalize", &MpiLibrary::finalize, Unlocked(),
           "Finalises it if init() initialised it. Collective.")
      .def("world", [](MpiLibrary& self) { return self.open(nullptr); }, Unlocked(),
           "All its processes. Collective.")
      .def("join", join, "communicator"_a.none() = nb::none(), "timeout_ms"_a.none() = nb::none(),
           "start_timeout_ms"_a.none() = nb::none(),
           "Joins the world of the processes of an MPI communicator, given by its address; None:\n"
           "of all processes. Initialises MPI if needed. Collective.");
  m.def("load_mpi", &MpiLibrary::load, "path"_a, Unlocked(),
        "Loads an MPI. An empty path stands for the MPI that the process has loaded already.");
  m.def("has_mpi", &MpiLibrary::is_in_process, "True if the process has loaded an MPI already.");
  m.def("finish_mpi", &finish_mpi, Unlocked(),
        "Finalises MPI if join() has started it. Collective.");
}

}  // namespace paceline::binding
