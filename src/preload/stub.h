/* The stub: which calls of MPI the drop-in library takes, between stub.c and what serves them. */
#ifndef PACELINE_PRELOAD_STUB_H
#define PACELINE_PRELOAD_STUB_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of the calls: those of the table mpi_calls.def in each of their forms, and those of
   requests. _c: with long counts; _f: in Fortran; _f08: of its module mpi_f08, whose names for
   buffers that are described end in _f08ts. */
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
  PACELINE_STUB_CALLS
};

typedef void (*paceline_function)(void); /* of whatever type */

/* `table` holds the functions of the host MPI: null where it has none, and for Fortran those that a
   program would reach without us. What serves or records a call takes its place; returns 1. Where
   the MPI of this process is not that which it was compiled for, returns 0 and writes into `why`,
   of `length` bytes, which both are. `calls` counts, for each, how often the program calls it. */
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
