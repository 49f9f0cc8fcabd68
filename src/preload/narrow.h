/* The stub's access to the host's calls without an mpi.h, and calls with long counts through int.

   If the stub was built for another MPI, a program may find a name in it that its own MPI lacks.
   The call with counts of type int then serves it. */
#ifndef PACELINE_PRELOAD_NARROW_H
#define PACELINE_PRELOAD_NARROW_H

#include <stdint.h>

#include "stub.h"

typedef uintptr_t handle; /* a number or an address, passed on as it comes */

/* Returns the function of this process's MPI; null if it has none of that name. */
paceline_function paceline_host_call(const char* name);

/* Prints why a call on this communicator is impossible and calls the communicator's error handler,
   as MPI does. Returns MPI_ERR_COUNT. */
int paceline_refuse(const char* name, const char* why, handle comm);

/* Reasons. The remedy, to preload this MPI's own library, was printed at the first call. */
#define PACELINE_NO_CALL "the MPI of this process has no such call"
#define PACELINE_TOO_LONG "a count exceeds 2147483647, the most that the MPI of this process takes"

/* The words of the tables except those of counts. */
#define UNWRAP(...) __VA_ARGS__
#define IN const void*
#define OUT void*
#define OP handle
#define TYPE handle
#define TYPES const void*
#define ROOT int
#define AINTS const intptr_t*

/* The calls of a row with a request: the non-blocking and the persistent form. */
#define PACELINE_BEGUN(DO, name, nonblocking, suffix, types, values)                             \
  DO(, MPI_##nonblocking##suffix, I##name##suffix, (UNWRAP types handle comm, void* request),    \
     (UNWRAP values comm, request))                                                              \
  DO(_init, MPI_##name##_init##suffix, name##_init##suffix,                                      \
     (UNWRAP types handle comm, handle info, void* request), (UNWRAP values comm, info, request))

#define COUNT int64_t
#define COUNTS const int64_t*
#define DISPLS const intptr_t*
#define PACELINE_NARROW(form, symbol, which, types, values) int paceline_narrow_##which types;
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                     \
  PACELINE_NARROW(, MPI_##name##_c, name##_c, (UNWRAP types handle comm), (UNWRAP values comm))    \
  PACELINE_BEGUN(PACELINE_NARROW, name, nonblocking, _c, types, values)
#include "mpi_calls.def"
#undef PACELINE_NARROW
#undef COUNT
#undef COUNTS
#undef DISPLS

#endif
