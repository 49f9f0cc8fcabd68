#include "narrow.h"

#include <stdlib.h>

_Static_assert(sizeof(int64_t) == sizeof(intptr_t), "counts and places are copied alike");

/* Arguments of a call, evaluated twice: first to copy the arrays, then to pass the copies. */
struct narrowing {
  int fits, has_room;
  struct {
    const void* of;
    int length;
    int* counts;
  } copies[4]; /* a call has at most 4 arrays */
  int n;
};

static int narrow(struct narrowing* own, int64_t count) {
  if (count != (int)count) own->fits = 0;
  return (int)count;
}

static const int* narrow_all(struct narrowing* own, const void* values, int length) {
  if (!values || length <= 0) return NULL;
  for (int i = 0; i < own->n; ++i)
    if (own->copies[i].of == values && own->copies[i].length == length)
      return own->copies[i].counts;
  int* counts = malloc(sizeof(int) * (size_t)length);
  if (!counts) return own->has_room = 0, NULL;
  for (int i = 0; i < length; ++i) counts[i] = narrow(own, ((const int64_t*)values)[i]);
  own->copies[own->n].of = values;
  own->copies[own->n].length = length;
  own->copies[own->n++].counts = counts;
  return counts;
}

static void forget(struct narrowing* own) {
  while (own->n > 0) free(own->copies[--own->n].counts);
}

/* Does nothing; the caller evaluates the arguments. */
static void look(int first, ...) { (void)first; }

static int asked(const char* name, handle comm) {
  typedef int function(handle, int*);
  const paceline_function call = paceline_host_call(name);
  int answer = 0;
  if (call) ((function*)call)(comm, &answer);
  return answer;
}

/* Number of peers; of an intercommunicator, those of the remote group. */
static int peers_of(handle comm) {
  return asked(asked("PMPI_Comm_test_inter", comm) ? "PMPI_Comm_remote_size" : "PMPI_Comm_size",
               comm);
}

/* MPI_PROC_NULL is -1 or -2, and MPI_ROOT less, in all MPIs. */
static int peers_at_root(handle comm, int root) {
  const int is_root = asked("PMPI_Comm_test_inter", comm)
                          ? root < -2 : asked("PMPI_Comm_rank", comm) == root;
  return is_root ? peers_of(comm) : 0;
}

/* MPI_IN_PLACE is 1 in Open MPI, and -1 in others. */
static int peers_unless_in_place(handle comm, const void* in) {
  return (intptr_t)in == 1 || (intptr_t)in == -1 ? 0 : peers_of(comm);
}

/* Number of ranks that this one receives from, or sends to. */
static int neighbours_of(handle comm, int is_sending) {
  const int openmpi = paceline_host_call("ompi_mpi_init") != NULL;
  const int graph = openmpi ? 2 : 1, cartesian = openmpi ? 1 : 2, distributed = 3;
  const int topology = asked("PMPI_Topo_test", comm);
  if (topology == cartesian) return 2 * asked("PMPI_Cartdim_get", comm);
  if (topology == graph) {
    typedef int function(handle, int, int*);
    const paceline_function call = paceline_host_call("PMPI_Graph_neighbors_count");
    int n = 0;
    if (call) ((function*)call)(comm, asked("PMPI_Comm_rank", comm), &n);
    return n;
  }
  if (topology != distributed) return 0;
  typedef int function(handle, int*, int*, int*);
  const paceline_function call = paceline_host_call("PMPI_Dist_graph_neighbors_count");
  int from = 0, to = 0, is_weighted = 0;
  if (call) ((function*)call)(comm, &from, &to, &is_weighted);
  return is_sending ? to : from;
}

#define RANKS peers_of(comm)
#define AT_ROOT peers_at_root(comm, root)
#define SENT peers_unless_in_place(comm, in)
#define TO neighbours_of(comm, 1)
#define FROM neighbours_of(comm, 0)

/* Calls with counts of type int, which the stub has. */
#define COUNT int
#define COUNTS const int*
#define DISPLS const int*
#define DECLARED(form, symbol, which, types, values) int symbol types;
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)               \
  DECLARED(, MPI_##name, name, (UNWRAP types handle comm), (UNWRAP values comm))             \
  PACELINE_BEGUN(DECLARED, name, nonblocking, , types, values)
#include "mpi_calls.def"
#undef COUNT
#undef COUNTS
#undef DISPLS

#define COUNT int64_t
#define COUNTS const int64_t*
#define DISPLS const intptr_t*
#define LONG(count) narrow(&own, count)
#define LONGS(counts, length) narrow_all(&own, counts, length)
#define NARROW(symbol, which, types, values, IS_COMPLETE)                                \
  int paceline_narrow_##which##_c types {                                                \
    struct narrowing own = {.fits = 1, .has_room = 1, .n = 0};                           \
    int status = 0;                                                                      \
    look(0, UNWRAP values);                                                              \
    if (!own.fits) status = paceline_refuse(#symbol "_c", PACELINE_TOO_LONG, comm);      \
    else if (!own.has_room) status = paceline_refuse(#symbol "_c", "no memory", comm);   \
    else status = symbol values;                                                         \
    if (IS_COMPLETE || status) forget(&own);                                             \
    return status;                                                                       \
  }
/* MPI reads the copies until the request is complete. This file does not learn of that, so it never
   frees them. */
#define NARROW_BEGUN(form, symbol, which, types, values) \
  NARROW(symbol, which, types, values, 0)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                       \
  NARROW(MPI_##name, name, (UNWRAP types handle comm), (UNWRAP values comm), 1)                    \
  PACELINE_BEGUN(NARROW_BEGUN, name, nonblocking, , types, values)
#include "mpi_calls.def"
