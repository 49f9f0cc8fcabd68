// Functions that the files of the Python module _core offer each other.
#pragma once

#include <nanobind/nanobind.h>

namespace paceline::binding {

void bind_errors(nanobind::module_& m);        // Error becomes a subclass of paceline.Error
void bind_communicator(nanobind::module_& m);  // communicators, requests, plans
void bind_world(nanobind::module_& m);         // joining and leaving a world
void bind_mpi(nanobind::module_& m);           // joining one through an MPI
void bind_native(nanobind::module_& m);         // calls for other extension modules
void bind_engine(nanobind::module_& m);          // tasks and what orders them: engine.cpp
void bind_store(nanobind::module_& m);          // arrays by key: store.cpp
void bind_device(nanobind::module_& m);         // groups of devices: device.cpp
void bind_device_ranks(nanobind::module_& m);   // processes with a device each: device_ranks.cpp
void bind_tools(nanobind::module_& m);         // what the command line shows: tools.cpp

}  // namespace paceline::binding
