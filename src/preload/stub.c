/* What LD_PRELOAD puts into every process, also into mpiexec and shells: so it is small, needs no
   MPI, and does nothing until one of its calls is made. At the first one it finds the MPI of the
   process and loads the library beside it, which serves the calls; where that cannot be, all of
   them pass through.

   Its calls are those of the tables mpi_calls.def and mpi_requests.def, and what begins MPI.

   It knows no mpi.h, since it may find itself under any MPI: a handle is a number or an address,
   and either is passed on as it comes, in a register or a place of eight bytes on the stack. */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr, RTLD_NEXT, environ */
#include "stub.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVES "libpaceline_mpi_calls.so"
#define EXPORTED __attribute__((visibility("default")))

typedef uintptr_t handle;

/* In Fortran a name is lower case with an underscore behind it: GNU's, Intel's and LLVM's compilers
   agree there. Those names are not MPI's own but of the library that wraps it. */
static const struct {
  const char* name;
  int is_fortran;
} names[PACELINE_STUB_CALLS] = {
#define OF_C(name, nonblocking, tail) \
  {"PMPI_" name tail, 0}, {"PMPI_" nonblocking tail, 0}, {"PMPI_" name "_init" tail, 0}
#define OF_FORTRAN(name, tail) \
  {"mpi_" name tail, 1}, {"mpi_i" name tail, 1}, {"mpi_" name "_init" tail, 1}
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                    \
  OF_C(#name, #nonblocking, ""), OF_C(#name, #nonblocking, "_c"), OF_FORTRAN(#fortran, "_"),    \
      OF_FORTRAN(#fortran, "_f08_"), OF_FORTRAN(#fortran, "_f08ts_"),
#include "mpi_calls.def"
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  {"PMPI_" #name, 0}, {"mpi_" #fortran "_", 1}, {"mpi_" #fortran "_f08_", 1},
#include "mpi_requests.def"
};

static paceline_function table[PACELINE_STUB_CALLS];
static paceline_mpi_begins_t* begins;
static atomic_int is_filled;

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
  if (!dladdr(&is_filled, &here) || !here.dli_fname) return NULL;
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

/* What a name of that library means to the program when this one is not there. */
static paceline_function next_of(const char* name) { return function_of(dlsym(RTLD_NEXT, name)); }

/* What the call would be without this library; null where this MPI does not have it. */
static paceline_function host_of(void* mpi, int which) {
  if (names[which].is_fortran) return next_of(names[which].name);
  return mpi ? function_of(dlsym(mpi, names[which].name)) : NULL;
}

static void fill_table(void) {
  void* mpi = find_mpi();
  paceline_function served[PACELINE_STUB_CALLS];
  for (int i = 0; i < PACELINE_STUB_CALLS; ++i) table[i] = host_of(mpi, i);
  memcpy(served, table, sizeof served);
  char why[512] = "";
  void* calls = load_calls();
  paceline_fill_stub_t* fill = NULL;
  if (calls) {
    const paceline_function symbol = function_of(dlsym(calls, "paceline_fill_stub"));
    const paceline_function begin = function_of(dlsym(calls, "paceline_mpi_begins"));
    memcpy(&fill, &symbol, sizeof fill);
    memcpy(&begins, &begin, sizeof begins);
  } else {
    const char* error = dlerror();
    snprintf(why, sizeof why, SERVES " cannot be loaded into this process (%s)",
             error ? error : "its path is not known");
  }
  if (fill && fill(served, why, sizeof why)) {
    memcpy(table, served, sizeof table);
  } else {
    begins = NULL;
    fprintf(stderr,
            "paceline: preload: %s; all calls pass through to the host MPI. For its library say: "
            "./dev build --mpicc PATH, and LD_PRELOAD=$(paceline preload --mpicc PATH).\n",
            why);
  }
  atomic_store_explicit(&is_filled, 1, memory_order_release);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static paceline_function call(enum paceline_stub_call which) {
  if (!atomic_load_explicit(&is_filled, memory_order_acquire)) pthread_once(&once, fill_table);
  if (!table[which]) lacks(names[which].name);
  return table[which];
}

/* The stubs. What they do last is a jump: whoever records a call sees who has made it. */
#define UNWRAP(...) __VA_ARGS__
#define STUB(symbol, which, types, values)                                   \
  EXPORTED int symbol types;                                                 \
  int symbol types {                                                         \
    typedef int function types;                                              \
    return ((function*)call(PACELINE_STUB_##which))values;                   \
  }

#define IN const void*
#define OUT void*
#define OP handle
#define TYPE handle
#define TYPES const void*
#define ROOT int

/* Those that are begun by a request: non-blocking and persistent. */
#define STUBS_OF_REQUESTS(name, nonblocking, suffix, types, values)                            \
  STUB(MPI_##nonblocking##suffix, I##name##suffix, (UNWRAP types handle comm, void* request),  \
       (UNWRAP values comm, request))                                                          \
  STUB(MPI_##name##_init##suffix, name##_init##suffix,                                         \
       (UNWRAP types handle comm, handle info, void* request),                                 \
       (UNWRAP values comm, info, request))
#define AINTS const intptr_t*

#define COUNT int
#define COUNTS const int*
#define DISPLS const int*
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                    \
  STUB(MPI_##name, name, (UNWRAP types handle comm), (UNWRAP values comm))                      \
  STUBS_OF_REQUESTS(name, nonblocking, , types, values)
#include "mpi_calls.def"
#undef COUNT
#undef COUNTS
#undef DISPLS

/* The same calls with long counts; barriers have none. Of those that the drop-in serves the
   blocking ones follow below. */
#define COUNT int64_t
#define COUNTS const int64_t*
#define DISPLS const intptr_t*
#define LONG_SERVED(name, types, values)
#define LONG_HOST(name, types, values) STUB(MPI_##name##_c, name##_c, types, values)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                    \
  LONG_##kind(name, (UNWRAP types handle comm), (UNWRAP values comm))                           \
  STUBS_OF_REQUESTS(name, nonblocking, _c, types, values)
#include "mpi_calls.def"
#undef COUNT
#undef COUNTS
#undef DISPLS

#define REQUESTS void*
#define STATUSES void*
#define LENGTH int
#define INTS int*
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  STUB(MPI_##name, name, types, values)
#include "mpi_requests.def"
#undef LENGTH
#undef INTS

/* A count that fits an int is an ordinary one; a longer one is the host's. Ranks may describe the
   same data by other datatypes, such that the count fits on some of them only: those see more than
   2 GiB, which they leave to the host as well. */
static int fits(int64_t count) { return INT_MIN <= count && count <= INT_MAX; }

#define PACELINE_PASS_LONG(name, types, is_short, values)                    \
  EXPORTED int MPI_##name##_c types;                                         \
  int MPI_##name##_c types {                                                 \
    typedef int function types;                                              \
    if (is_short) return MPI_##name values;                                  \
    return ((function*)call(PACELINE_STUB_##name##_c))values;                \
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

#undef IN
#undef OUT
#undef OP
#undef TYPE
#undef TYPES
#undef ROOT
#undef AINTS

/* Fortran: everything is an address, the last one that of the error code. mpi_f08 passes the same,
   and where its buffers are described, descriptions of them. */
#define IN void*
#define OUT void*
#define OP void*
#define TYPE void*
#define TYPES void*
#define ROOT void*
#define COUNT void*
#define COUNTS void*
#define DISPLS void*
#define AINTS void*
#define LENGTH void*
#define INTS void*
#define STUBS_OF_FORTRAN(name, fortran, tail, suffix, types, values)                            \
  STUB(mpi_##fortran##tail, name##suffix, (UNWRAP types void* comm, void* error),               \
       (UNWRAP values comm, error))                                                             \
  STUB(mpi_i##fortran##tail, I##name##suffix,                                                   \
       (UNWRAP types void* comm, void* request, void* error),                                   \
       (UNWRAP values comm, request, error))                                                    \
  STUB(mpi_##fortran##_init##tail, name##_init##suffix,                                         \
       (UNWRAP types void* comm, void* info, void* request, void* error),                       \
       (UNWRAP values comm, info, request, error))
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  STUBS_OF_FORTRAN(name, fortran, _, _f, types, values)                      \
  STUBS_OF_FORTRAN(name, fortran, _f08_, _f08, types, values)                \
  STUBS_OF_FORTRAN(name, fortran, _f08ts_, _f08ts, types, values)
#include "mpi_calls.def"
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests)                  \
  STUB(mpi_##fortran##_, name##_f, (UNWRAP types, void* error), (UNWRAP values, error)) \
  STUB(mpi_##fortran##_f08_, name##_f08, (UNWRAP types, void* error), (UNWRAP values, error))
#include "mpi_requests.def"

/* MPI begins: where calls are recorded, ranks compare their clocks now. That is the only use of
   these calls, and nothing is loaded for it where nobody has asked for a profile. */
static int is_profiled(void) {
  for (char** variable = environ; variable && *variable; ++variable)
    if (strncmp(*variable, "PACELINE_PROFILE=", 17) == 0) return (*variable)[17] != 0;
  return 0;
}

static void has_begun(void) {
  if (!is_profiled()) return;
  pthread_once(&once, fill_table);
  if (begins) begins();
}

static paceline_function host_call(const char* name) {
  void* mpi = find_mpi();
  void* found = mpi ? dlsym(mpi, name) : NULL;
  if (!found) lacks(name);
  return function_of(found);
}

EXPORTED int MPI_Init(int* argc, char*** argv);
int MPI_Init(int* argc, char*** argv) {
  typedef int function(int*, char***);
  const int status = ((function*)host_call("PMPI_Init"))(argc, argv);
  if (status == 0) has_begun();
  return status;
}

EXPORTED int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  typedef int function(int*, char***, int, int*);
  const int status =
      ((function*)host_call("PMPI_Init_thread"))(argc, argv, required, provided);
  if (status == 0) has_begun();
  return status;
}

static paceline_function fortran_call(const char* name) {
  const paceline_function found = next_of(name);
  if (!found) lacks(name);
  return found;
}

/* mpi_f08 may leave the error code out. */
#define FORTRAN_BEGIN(symbol, types, values)      \
  EXPORTED void symbol types;                     \
  void symbol types {                             \
    typedef void function types;                  \
    int own = 0;                                  \
    if (!error) error = &own;                     \
    ((function*)fortran_call(#symbol))values;     \
    if (*error == 0) has_begun();                 \
  }

FORTRAN_BEGIN(mpi_init_, (int* error), (error))
FORTRAN_BEGIN(mpi_init_f08_, (int* error), (error))
FORTRAN_BEGIN(mpi_init_thread_, (int* required, int* provided, int* error),
              (required, provided, error))
FORTRAN_BEGIN(mpi_init_thread_f08_, (int* required, int* provided, int* error),
              (required, provided, error))
