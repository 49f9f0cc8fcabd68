/* The door: which calls of MPI the drop-in library takes, between door.c and what serves them. */
#ifndef PACELINE_PRELOAD_DOOR_H
#define PACELINE_PRELOAD_DOOR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Function behind MPI_ and PMPI_, in the order of the table of functions. */
#define PACELINE_DOOR(CALL)                                                  \
  CALL(Allreduce) CALL(Bcast) CALL(Reduce) CALL(Reduce_scatter_block) CALL(Allgather) CALL(Barrier)

enum paceline_door_call {
#define PACELINE_NUMBER(name) PACELINE_DOOR_##name,
  PACELINE_DOOR(PACELINE_NUMBER)
#undef PACELINE_NUMBER
  PACELINE_DOOR_CALLS
};

typedef void (*paceline_function)(void); /* of whatever type */

/* Puts what serves each call into the table and returns 1. Where the MPI of this process is not
   that which it was compiled for, returns 0 and writes into `why`, of `length` bytes, which both
   are. */
typedef int paceline_open_door_t(paceline_function table[PACELINE_DOOR_CALLS], char* why,
                                 size_t length);
__attribute__((visibility("default"))) paceline_open_door_t paceline_open_door;

#ifdef __cplusplus
}
#endif

#endif
