/* The library that LD_PRELOAD puts into every process, also into mpiexec and shells. It is small,
   needs no MPI, and does nothing until MPI begins. It then finds the process's MPI and
   loads the library beside itself, which serves the calls; if that fails, all calls pass through.

   Its calls are those of the tables mpi_calls.def, mpi_requests.def and mpi_comms.def, and what
   begins MPI. Under an MPI that lacks some of them, since it is not that for which the stub was
   built, narrow.c makes those with long counts, and the others are errors.

   It knows no mpi.h, since it may find itself under any MPI: a handle is a number or an address,
   and either is passed on as it comes, in a register or a place of eight bytes on the stack. */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr, RTLD_NEXT */
#include "narrow.h"

#include <dlfcn.h>
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

/* A program that tests by a weak symbol for a call gets the answer that it would get without the
   stub: built for an MPI without persistent collectives or long counts, the stub hides them. */
#define SHOWN_ EXPORTED
#ifdef PACELINE_MPI_HAS_PERSISTENT
#define SHOWN__init EXPORTED
#else
#define SHOWN__init
#endif
#ifdef PACELINE_MPI_HAS_LONG_COUNTS
#define SHOWN__c EXPORTED
#define SHOWN__init_c SHOWN__init
#else
#define SHOWN__c
#define SHOWN__init_c
#endif

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
#define PACELINE_ROW(name, fortran, from, types, values) \
  {"PMPI_" #name, 0}, {"mpi_" #fortran "_", 1}, {"mpi_" #fortran "_f08_", 1},
#include "mpi_comms.def"
};

static paceline_function table[PACELINE_STUB_CALLS];
static unsigned long call_counts[PACELINE_STUB_CALLS];
static paceline_mpi_begins_t* begins;
static atomic_int is_filled;

/* ISO C has no cast from an object's address to a function's; POSIX says that they are alike. */
static paceline_function function_of(void* address) {
  paceline_function function;
  memcpy(&function, &address, sizeof function);
  return function;
}

static int is_of_mpi(const struct dl_phdr_info* object) {
  const char* slash = strrchr(object->dlpi_name, '/');
  return strncmp(slash ? slash + 1 : object->dlpi_name, "libmpi", 6) == 0;
}

/* Python extensions load their MPI with local symbols. This makes them global, so that the library
   that serves the calls finds them. */
static int show(struct dl_phdr_info* object, size_t size, void* found) {
  (void)size;
  if (!is_of_mpi(object)) return 0;
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

/* Such an extension may also load the Fortran wrapper, whose symbols stay local. */
struct looked_for {
  const char* name;
  void* found;
};

static int look_in(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct looked_for* looked_for = data;
  if (!is_of_mpi(object)) return 0;
  void* library = dlopen(object->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
  looked_for->found = library ? dlsym(library, looked_for->name) : NULL;
  return looked_for->found != NULL;
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

/* Without the stub the dynamic linker would have ended the process, before its start or now. */
_Noreturn static void lacks(const char* name) {
  fprintf(stderr,
          "paceline: preload: this process calls MPI, but it has no %s. Preload the library into "
          "programs that are linked with an MPI that has it.\n",
          name);
  _exit(127);
}

/* Returns the function that the program would get without the stub. */
static paceline_function next_of(const char* name) {
  struct looked_for looked_for = {name, dlsym(RTLD_NEXT, name)};
  if (!looked_for.found) dl_iterate_phdr(look_in, &looked_for);
  return function_of(looked_for.found);
}

/* Returns the host's function of a call; null if this MPI lacks it. */
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
  if (fill && fill(served, call_counts, why, sizeof why)) {
    memcpy(table, served, sizeof table);
  } else {
    begins = NULL;
    fprintf(stderr,
            "paceline: preload: %s; all calls pass through to the host MPI. For its library run: "
            "LD_PRELOAD=$(paceline preload --mpicc PATH).\n",
            why);
  }
  atomic_store_explicit(&is_filled, 1, memory_order_release);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns null if this MPI lacks the call. Counts the call; simultaneous calls of several threads
   may count once. */
static paceline_function call(enum paceline_stub_call which) {
  unsigned long* const count = &call_counts[which];
  __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
  if (!atomic_load_explicit(&is_filled, memory_order_acquire)) pthread_once(&once, fill_table);
  return table[which];
}

paceline_function paceline_host_call(const char* name) {
  void* mpi = find_mpi();
  return mpi ? function_of(dlsym(mpi, name)) : NULL;
}

int paceline_refuse(const char* name, const char* why, handle comm) {
  enum { MPI_ERR_COUNT = 2 }; /* in every MPI */
  typedef int function(handle, int);
  const paceline_function tell = paceline_host_call("PMPI_Comm_call_errhandler");
  if (!tell) lacks(name);
  fprintf(stderr, "paceline: preload: %s: %s.\n", name, why);
  ((function*)tell)(comm, MPI_ERR_COUNT);
  return MPI_ERR_COUNT;
}

/* The stubs. Each ends with a jump, so that the recording function sees its caller's address.
   `otherwise` is evaluated if this MPI lacks the call. */
#define STUB(shown, symbol, which, types, values, otherwise)                 \
  shown int symbol types;                                                    \
  int symbol types {                                                         \
    typedef int function types;                                              \
    const paceline_function host = call(PACELINE_STUB_##which);              \
    if (!host) return otherwise;                                             \
    return ((function*)host)values;                                          \
  }
#define LONG(count) count
#define LONGS(counts, length) counts

#define COUNT int
#define COUNTS const int*
#define DISPLS const int*
#define SHORT_STUB(form, symbol, which, types, values) \
  STUB(SHOWN_##form, symbol, which, types, values,     \
       paceline_refuse(#symbol, PACELINE_NO_CALL, comm))
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                    \
  SHORT_STUB(, MPI_##name, name, (UNWRAP types handle comm), (UNWRAP values comm))                \
  PACELINE_BEGUN(SHORT_STUB, name, nonblocking, , types, values)
#include "mpi_calls.def"
#undef COUNT
#undef COUNTS
#undef DISPLS

/* The same calls with long counts. */
#define COUNT int64_t
#define COUNTS const int64_t*
#define DISPLS const intptr_t*
#define LONG_STUB(form, symbol, which, types, values) \
  STUB(SHOWN_##form##_c, symbol, which, types, values, paceline_narrow_##which values)
#define LONG_WITHOUT_COUNTS(name, nonblocking, types, values)
#define LONG_SERVED(name, nonblocking, types, values)                                        \
  LONG_STUB(, MPI_##name##_c, name##_c, (UNWRAP types handle comm), (UNWRAP values comm))    \
  PACELINE_BEGUN(LONG_STUB, name, nonblocking, _c, types, values)
#define LONG_HOST LONG_SERVED
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                    \
  LONG_##kind(name, nonblocking, types, values)
#include "mpi_calls.def"
#undef COUNT
#undef COUNTS
#undef DISPLS

#define REQUESTS void*
#define REQUEST handle
#define STATUSES void*
#define LENGTH int
#define INTS int*
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  STUB(EXPORTED, MPI_##name, name, types, values, (lacks("MPI_" #name), 0))
#include "mpi_requests.def"
#define COMM handle
#define COMMS void*
#define INFO handle
#define GROUP handle
#define PACELINE_ROW(name, fortran, from, types, values) \
  STUB(EXPORTED, MPI_##name, name, types, values, (lacks("MPI_" #name), 0))
#include "mpi_comms.def"
#undef LENGTH
#undef INTS
#undef REQUEST
#undef COMM
#undef COMMS
#undef INFO
#undef GROUP

#undef IN
#undef OUT
#undef OP
#undef TYPE
#undef TYPES
#undef ROOT
#undef AINTS

/* Fortran: all arguments are addresses, the last one of the error code. mpi_f08 passes the same, or
   descriptors of its buffers. */
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
#define REQUEST void*
#define FORTRAN_STUB(symbol, which, types, values) \
  STUB(EXPORTED, symbol, which, types, values, (lacks(#symbol), 0))
#define STUBS_OF_FORTRAN(name, fortran, tail, suffix, types, values)                            \
  FORTRAN_STUB(mpi_##fortran##tail, name##suffix, (UNWRAP types void* comm, void* error), \
       (UNWRAP values comm, error))                                                             \
  FORTRAN_STUB(mpi_i##fortran##tail, I##name##suffix, \
       (UNWRAP types void* comm, void* request, void* error),                                   \
       (UNWRAP values comm, request, error))                                                    \
  FORTRAN_STUB(mpi_##fortran##_init##tail, name##_init##suffix, \
       (UNWRAP types void* comm, void* info, void* request, void* error),                       \
       (UNWRAP values comm, info, request, error))
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  STUBS_OF_FORTRAN(name, fortran, _, _f, types, values)                      \
  STUBS_OF_FORTRAN(name, fortran, _f08_, _f08, types, values)                \
  STUBS_OF_FORTRAN(name, fortran, _f08ts_, _f08ts, types, values)
#include "mpi_calls.def"
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests)                  \
  FORTRAN_STUB(mpi_##fortran##_, name##_f, (UNWRAP types, void* error), (UNWRAP values, error)) \
  FORTRAN_STUB(mpi_##fortran##_f08_, name##_f08, (UNWRAP types, void* error),          \
               (UNWRAP values, error))
#include "mpi_requests.def"

#define COMM void*
#define COMMS void*
#define INFO void*
#define GROUP void*
#define PACELINE_ROW(name, fortran, from, types, values)                                        \
  FORTRAN_STUB(mpi_##fortran##_, name##_f, (UNWRAP types, void* error), (UNWRAP values, error)) \
  FORTRAN_STUB(mpi_##fortran##_f08_, name##_f08, (UNWRAP types, void* error),                   \
               (UNWRAP values, error))
#include "mpi_comms.def"

/* At MPI's start the ranks find out whether all of them have the library, and those of a profiled
   program compare their clocks. */
static void has_begun(void) {
  pthread_once(&once, fill_table);
  if (begins) begins();
}

static paceline_function first_call(const char* name) {
  const paceline_function found = paceline_host_call(name);
  if (!found) lacks(name);
  return found;
}

EXPORTED int MPI_Init(int* argc, char*** argv);
int MPI_Init(int* argc, char*** argv) {
  typedef int function(int*, char***);
  const int status = ((function*)first_call("PMPI_Init"))(argc, argv);
  if (status == 0) has_begun();
  return status;
}

EXPORTED int MPI_Init_thread(int* argc, char*** argv, int required, int* provided);
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  typedef int function(int*, char***, int, int*);
  const int status =
      ((function*)first_call("PMPI_Init_thread"))(argc, argv, required, provided);
  if (status == 0) has_begun();
  return status;
}

static paceline_function fortran_call(const char* name) {
  const paceline_function found = next_of(name);
  if (!found) lacks(name);
  return found;
}

/* mpi_f08 may omit the error code. */
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
