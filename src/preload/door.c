/* What LD_PRELOAD puts into every process, also into mpiexec and shells: so it is small, needs no
   MPI, and does nothing until one of its calls is made. At the first one it finds the MPI of the
   process and loads the library beside it, which serves the calls; where that cannot be, all of
   them pass through.

   It knows no mpi.h, since it may find itself under any MPI: a handle is a number or an address,
   and either is passed on as it comes, in a register or a place of eight bytes on the stack. */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#include "door.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVES "libpaceline_mpi_calls.so"
#define EXPORTED __attribute__((visibility("default")))

typedef uintptr_t handle;

static const char* const names[PACELINE_DOOR_CALLS] = {
#define PACELINE_NAME(name) "PMPI_" #name,
    PACELINE_DOOR(PACELINE_NAME)
#undef PACELINE_NAME
};

static paceline_function table[PACELINE_DOOR_CALLS];
static atomic_int is_open;

/* ISO C has no cast from an object's address to a function's; POSIX says that they are alike. */
static paceline_function function_of(void* address) {
  paceline_function function;
  memcpy(&function, &address, sizeof function);
  return function;
}

/* Extensions of Python bring their MPI without showing it to others: then it is shown now, so that
   the library that serves the calls finds it. */
static int show(struct dl_phdr_info* object, size_t size, void* found) {
  (void)size;
  const char* slash = strrchr(object->dlpi_name, '/');
  if (strncmp(slash ? slash + 1 : object->dlpi_name, "libmpi", 6) != 0) return 0;
  void* library = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  if (!library || !dlsym(library, "PMPI_Init_thread")) return 0;
  *(void**)found = library;
  return 1;
}

static void* find_mpi(void) {
  void* all = dlopen(NULL, RTLD_NOW);
  if (all && dlsym(all, "PMPI_Init_thread")) return all;
  void* found = NULL;
  dl_iterate_phdr(show, &found);
  return found;
}

/* The library beside this one. */
static void* load_calls(void) {
  Dl_info here;
  char path[4096];
  if (!dladdr(&is_open, &here) || !here.dli_fname) return NULL;
  const char* slash = strrchr(here.dli_fname, '/');
  const int folder = slash ? (int)(slash - here.dli_fname) : 1;
  const char* start = slash ? here.dli_fname : ".";
  if (snprintf(path, sizeof path, "%.*s/" SERVES, folder, start) >= (int)sizeof path) return NULL;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

_Noreturn static void lacks(const char* name) {
  fprintf(stderr,
          "paceline: preload: this process calls MPI, but it has no %s. Preload the library into "
          "programs that are linked with an MPI that has it.\n",
          name);
  abort();
}

static void open_door(void) {
  void* mpi = find_mpi();
  for (int i = 0; i < PACELINE_DOOR_CALLS; ++i) {
    table[i] = mpi ? function_of(dlsym(mpi, names[i])) : NULL;
    if (!table[i]) lacks(names[i]);
  }
  char why[512] = "";
  paceline_function served[PACELINE_DOOR_CALLS];
  void* calls = load_calls();
  paceline_open_door_t* open = NULL;
  if (calls) {
    const paceline_function symbol = function_of(dlsym(calls, "paceline_open_door"));
    memcpy(&open, &symbol, sizeof open);
  } else {
    const char* error = dlerror();
    snprintf(why, sizeof why, SERVES " cannot be loaded into this process (%s)",
             error ? error : "its path is not known");
  }
  if (open && open(served, why, sizeof why))
    memcpy(table, served, sizeof table);
  else
    fprintf(stderr,
            "paceline: preload: %s; all calls pass through to the host MPI. For its library say: "
            "./dev build --mpicc PATH, and LD_PRELOAD=$(paceline preload --mpicc PATH).\n",
            why);
  atomic_store_explicit(&is_open, 1, memory_order_release);
}

static paceline_function call(enum paceline_door_call which) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!atomic_load_explicit(&is_open, memory_order_acquire)) pthread_once(&once, open_door);
  return table[which];
}

#define PACELINE_PASS(name, types, values)                                   \
  EXPORTED int MPI_##name types;                                             \
  int MPI_##name types {                                                     \
    typedef int function types;                                              \
    return ((function*)call(PACELINE_DOOR_##name))values;                    \
  }

PACELINE_PASS(Allreduce, (const void* in, void* out, int n, handle type, handle op, handle comm),
              (in, out, n, type, op, comm))
PACELINE_PASS(Bcast, (void* buffer, int n, handle type, int root, handle comm),
              (buffer, n, type, root, comm))
PACELINE_PASS(Reduce,
              (const void* in, void* out, int n, handle type, handle op, int root, handle comm),
              (in, out, n, type, op, root, comm))
PACELINE_PASS(Reduce_scatter_block,
              (const void* in, void* out, int n, handle type, handle op, handle comm),
              (in, out, n, type, op, comm))
PACELINE_PASS(Allgather,
              (const void* in, int n, handle type, void* out, int m, handle into, handle comm),
              (in, n, type, out, m, into, comm))
PACELINE_PASS(Barrier, (handle comm), (comm))

/* The same calls with long counts. A count that fits an int is an ordinary one; a longer one is the
   host's. Ranks may describe the same data by other datatypes, such that the count fits on some of
   them only: those see more than 2 GiB, which they leave to the host as well. */
static paceline_function long_call(const char* name) {
  void* mpi = find_mpi();
  void* found = mpi ? dlsym(mpi, name) : NULL;
  if (!found) lacks(name);
  return function_of(found);
}

static int fits(int64_t count) { return INT_MIN <= count && count <= INT_MAX; }

#define PACELINE_PASS_LONG(name, types, is_short, values)                    \
  EXPORTED int MPI_##name##_c types;                                         \
  int MPI_##name##_c types {                                                 \
    typedef int function types;                                              \
    if (is_short) return MPI_##name values;                                  \
    return ((function*)long_call("PMPI_" #name "_c"))values;                 \
  }

PACELINE_PASS_LONG(Allreduce,
                   (const void* in, void* out, int64_t n, handle type, handle op, handle comm),
                   fits(n), (in, out, n, type, op, comm))
PACELINE_PASS_LONG(Bcast, (void* buffer, int64_t n, handle type, int root, handle comm), fits(n),
                   (buffer, n, type, root, comm))
PACELINE_PASS_LONG(Reduce,
                   (const void* in, void* out, int64_t n, handle type, handle op, int root,
                    handle comm),
                   fits(n), (in, out, n, type, op, root, comm))
PACELINE_PASS_LONG(Reduce_scatter_block,
                   (const void* in, void* out, int64_t n, handle type, handle op, handle comm),
                   fits(n), (in, out, n, type, op, comm))
PACELINE_PASS_LONG(Allgather,
                   (const void* in, int64_t n, handle type, void* out, int64_t m, handle into,
                    handle comm),
                   fits(n) && fits(m), (in, n, type, out, m, into, comm))
