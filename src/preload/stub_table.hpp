// Puts functions into the stub's table.
#pragma once

#include "stub.h"

namespace paceline::preload {

// Replaces a function; one that this MPI lacks stays null.
template <class Function>
void put(paceline_function table[], int which, Function* function) {
  if (table[which]) table[which] = reinterpret_cast<paceline_function>(function);
}

// The functions of a row's three forms, by macros of the file that includes this.
#define SERVE_ALL(suffix, name, nonblocking, types, values) \
  SERVE(suffix, name, types, values)                        \
  SERVE_STARTED(suffix, name, nonblocking, types, values)   \
  SERVE_PERSISTENT(suffix, name, types, values)

// The blocking, the non-blocking and the persistent form of a row of mpi_calls.def, from functions
// NAME, INAME and NAME_init with this suffix.
#define PACELINE_PUT(name, suffix)                         \
  put(table, PACELINE_STUB_##name##suffix, name##suffix);  \
  put(table, PACELINE_STUB_I##name##suffix, I##name##suffix);
#ifdef PACELINE_MPI_HAS_PERSISTENT
#define PACELINE_PUT_FORMS(name, suffix) \
  PACELINE_PUT(name, suffix)             \
  put(table, PACELINE_STUB_##name##_init##suffix, name##_init##suffix);
#else
#define PACELINE_PUT_FORMS PACELINE_PUT
#endif

}  // namespace paceline::preload
