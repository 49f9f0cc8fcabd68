/* The stub's calls of MPI, shared by stub.c and the library that serves them. */
#ifndef PACELINE_PRELOAD_STUB_H
#define PACELINE_PRELOAD_STUB_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of the calls: those of mpi_calls.def in each form, then those of the other tables.
   _c: with long counts; _f: in Fortran; _f08: of its module mpi_f08; _f08ts: of that module, with
   descriptors of buffers. */
#define PACELINE_STUB_FORMS(name, suffix)                                               \
  PACELINE_STUB_##name##suffix, PACELINE_STUB_I##name##suffix, PACELINE_STUB_##name##_init##suffix
enum paceline_stub_call {
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)           \
  PACELINE_STUB_FORMS(name, ), PACELINE_STUB_FORMS(name, _c), PACELINE_STUB_FORMS(name, _f), \
      PACELINE_STUB_FORMS(name, _f08), PACELINE_STUB_FORMS(name, _f08ts),
#include "mpi_calls.def"
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  PACELINE_STUB_##name, PACELINE_STUB_##name##_f, PACELINE_STUB_##name##_f08,
#include "mpi_requests.def"
#define PACELINE_ROW(name, fortran, from, types, values) \
  PACELINE_STUB_##name, PACELINE_STUB_##name##_f, PACELINE_STUB_##name##_f08,
#include "mpi_comms.def"
  PACELINE_STUB_CALLS
};

typedef void (*paceline_function)(void); /* cast to the call's type */

/* `table` holds the host MPI's functions, null for those it lacks; for Fortran, those that a
   program would reach without the stub. Replaces those that are served or recorded and returns 1.
   If this process has another MPI than the one compiled for, or an option is wrong, returns 0 and
   writes the reason into `why`, of `length` bytes. `calls` counts the program's calls of each. */
typedef int paceline_fill_stub_t(paceline_function table[PACELINE_STUB_CALLS],
                                 const unsigned long calls[PACELINE_STUB_CALLS], char* why,
                                 size_t length);
__attribute__((visibility("default"))) paceline_fill_stub_t paceline_fill_stub;

/* MPI_Init has returned, on this rank and soon on all others. */
typedef void paceline_mpi_begins_t(void);
__attribute__((visibility("default"))) paceline_mpi_begins_t paceline_mpi_begins;

#ifdef __cplusplus
}
#endif

#endif
