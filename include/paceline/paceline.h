// Paceline's C interface: collectives among ranks; blocking, non-blocking and persistent.
//
//   paceline_comm* world;
//   if (paceline_init(&world) != PACELINE_OK) { puts(paceline_error()); return 1; }
//   float x[4] = {1, 2, 3, 4};
//   paceline_allreduce(world, x, x, 4, PACELINE_F32, PACELINE_SUM);
//   paceline_finalize(&world);
//
// Counts are numbers of elements, times are milliseconds, ranks go from 0 to size - 1. All ranks
// of a communicator make the same calls on it in the same order. Different threads may use
// different communicators, requests and plans at the same time. Two threads may not use the same
// one at the same time.
//
// Every function that can fail returns a paceline_status; paceline_error() returns the message.
// After PACELINE_USAGE and PACELINE_REFUSAL nothing has been sent, and the rank can call again.
// After PACELINE_MISMATCH, PACELINE_TIMEOUT and PACELINE_LOST the communicator is broken on all its
// ranks: all its calls return that error from then on.
//
// Functions that free an object take the address of its handle, and set the handle to NULL. Copies
// of a freed handle, and addresses that were never handles, give a usage error where the library
// can detect it; do not rely on it.
//
// The environment variables that `paceline options` lists apply.
#ifndef PACELINE_PACELINE_H
#define PACELINE_PACELINE_H

#include <stddef.h>
#include <stdint.h>

#define PACELINE_VERSION "0.1.0"
// Grows with each change that breaks programs compiled with an older header. The file name of the
// library has this number, so that such a program never loads the new library.
#define PACELINE_ABI 1

#if defined(__GNUC__)
#define PACELINE_API __attribute__((visibility("default")))
#else
#define PACELINE_API
#endif

#ifdef __cplusplus
#define PACELINE_ENUM(name) enum name : int  // as wide as C's, and any number may arrive in one
extern "C" {
#else
#define PACELINE_ENUM(name) enum name
#endif

// --- what can go wrong, types, operations ------------------------------------------------------
// No collective, type or operation is 0, so that a missing value is an error.

typedef PACELINE_ENUM(paceline_status) {
  PACELINE_OK = 0,
  PACELINE_USAGE,     // the caller passed a wrong argument
  PACELINE_REFUSAL,   // this algorithm, transport or build cannot serve the call
  PACELINE_MISMATCH,  // ranks make different calls
  PACELINE_TIMEOUT,   // a rank did not make its call in time
  PACELINE_LOST,      // a rank died or left
  PACELINE_RESOURCE,  // the machine lacks memory, room in /dev/shm, or file descriptors
  PACELINE_INTERNAL   // a bug in Paceline
} paceline_status;

typedef PACELINE_ENUM(paceline_collective) {
  PACELINE_ALLREDUCE = 1,
  PACELINE_BROADCAST,
  PACELINE_REDUCE,
  PACELINE_REDUCE_SCATTER,
  PACELINE_ALLGATHER,
  PACELINE_ALLTOALL,
  PACELINE_GATHER,
  PACELINE_SCATTER,
  PACELINE_BARRIER
} paceline_collective;

typedef PACELINE_ENUM(paceline_type) {
  PACELINE_F64 = 1,
  PACELINE_F32,
  PACELINE_F16,   // IEEE binary16, in 2 bytes; summed in F32
  PACELINE_BF16,  // the upper half of an F32; summed in F32
  PACELINE_I8,
  PACELINE_U8,
  PACELINE_I16,
  PACELINE_U16,
  PACELINE_I32,
  PACELINE_U32,
  PACELINE_I64,
  PACELINE_U64,
  PACELINE_BOOL   // one byte, 0 or 1
} paceline_type;

// Bitwise operations take integers and BOOL. AVERAGE takes all types but BOOL. The others take all.
typedef PACELINE_ENUM(paceline_op) {
  PACELINE_SUM = 1,
  PACELINE_PRODUCT,
  PACELINE_MIN,
  PACELINE_MAX,
  // The sum divided by the number of ranks, of integers rounded towards 0. A sum of integers wraps,
  // and one of float16 above 65504 is infinite.
  PACELINE_AVERAGE,
  PACELINE_BIT_AND,
  PACELINE_BIT_OR,
  PACELINE_BIT_XOR,
  PACELINE_LOGICAL_AND,
  PACELINE_LOGICAL_OR,
  PACELINE_LOGICAL_XOR
} paceline_op;

typedef struct paceline_comm paceline_comm;        // a group of ranks that this process belongs to
typedef struct paceline_request paceline_request;  // a collective under way
typedef struct paceline_plan paceline_plan;        // a collective that can be started many times

// Returns the message of this thread's last failed call: one line, with values and a remedy; ""
// before the first. It stays valid until the thread's next failed call.
PACELINE_API const char* paceline_error(void);

PACELINE_API const char* paceline_version(void);  // of the library; PACELINE_VERSION: of the header
PACELINE_API int paceline_abi_version(void);      // of the library; PACELINE_ABI: of the header

// --- worlds and communicators ------------------------------------------------------------------

// Joins the world that this process was started in, and makes the communicator of all its ranks.
// The ranks are those that `paceline run` started, or that have PACELINE_RANK, PACELINE_RANKS and
// PACELINE_STORE from elsewhere. Without these variables they are all processes of MPI, if MPI is
// initialised; else this process is the only rank. Returns when every rank has called it. After
// PACELINE_START_TIMEOUT_MS it returns PACELINE_TIMEOUT; if MPI waits for a rank and cannot be
// stopped, it prints a message and ends the process. On failure *comm is NULL, in this function and
// those below.
PACELINE_API paceline_status paceline_init(paceline_comm** comm);

// Joins a world of `ranks` processes or threads of one machine. They meet in a folder that all of
// them can write to; it must be empty, and new for each world. With 1 rank it may be NULL.
PACELINE_API paceline_status paceline_init_store(const char* folder, int rank, int ranks,
                                                 paceline_comm** comm);

// Joins a world of the processes of an MPI communicator. Collective over it. `communicator` is the
// address of an MPI_Comm of the initialised MPI in this process; NULL stands for all processes of
// MPI. Ranks of one machine use shared memory, others MPI. Unless MPI provides MPI_THREAD_MULTIPLE,
// requests progress only in test, wait and wait_for. Leave the world before MPI_Finalize.
PACELINE_API paceline_status paceline_init_mpi(const void* communicator, paceline_comm** comm);

// Leaves the world of this communicator, and frees the handle. Ranks that still wait for this rank
// get an error. Calls on other objects of this world fail from now on; the objects must still be
// freed. A process that ends without this call counts as lost. *comm may be NULL.
PACELINE_API paceline_status paceline_finalize(paceline_comm** comm);

// Writes the last calls of this process in all communicators of this world, and those under way, to
// rank-<rank>.json and rank-<rank>.txt in `folder`, for `paceline doctor --record`. Sends nothing,
// and works on a broken communicator, too.
PACELINE_API paceline_status paceline_record(const paceline_comm* comm, const char* folder);

// Frees a communicator. Its requests and plans stay valid. The rank leaves the world when it frees
// the last handle of it. *comm may be NULL.
PACELINE_API paceline_status paceline_free(paceline_comm** comm);

PACELINE_API int paceline_rank(const paceline_comm* comm);  // -1 if it is no communicator
PACELINE_API int paceline_size(const paceline_comm* comm);  // -1 if it is no communicator

// Sets this rank's time-out, at least 1 ms, for calls on `comm` that have none of their own. The
// world's communicator begins with PACELINE_TIMEOUT_MS. Communicators made from `comm` later begin
// with its time-out. Calls under way take it when they next make progress.
PACELINE_API paceline_status paceline_set_timeout(paceline_comm* comm, int timeout_ms);

// Collective. Ranks of equal colour form a new communicator, ordered by key, then by rank. A rank
// with a negative colour gets *part == NULL.
PACELINE_API paceline_status paceline_split(paceline_comm* comm, int colour, int key,
                                            paceline_comm** part);
// Collective. Makes a communicator of the same ranks, with calls of its own.
PACELINE_API paceline_status paceline_dup(paceline_comm* comm, paceline_comm** copy);

// --- blocking collectives ----------------------------------------------------------------------
// `count` is the number of elements that one rank contributes or receives. Buffers marked [size]
// hold `count` elements for each rank, in rank order. A buffer that the rank does not need, or that
// has 0 elements, may be NULL. In place: input == output; if one of the two is longer, the shorter
// one is the rank's own piece in it. Any other overlap is an error.

PACELINE_API paceline_status paceline_allreduce(paceline_comm* comm, const void* input,
                                                void* output, size_t count, paceline_type type,
                                                paceline_op op);
PACELINE_API paceline_status paceline_broadcast(paceline_comm* comm, void* buffer, size_t count,
                                                paceline_type type, int root);
PACELINE_API paceline_status paceline_reduce(paceline_comm* comm, const void* input,
                                             void* output /* at the root */, size_t count,
                                             paceline_type type, paceline_op op, int root);
PACELINE_API paceline_status paceline_reduce_scatter(paceline_comm* comm,
                                                     const void* input /* [size] */, void* output,
                                                     size_t count, paceline_type type,
                                                     paceline_op op);
PACELINE_API paceline_status paceline_allgather(paceline_comm* comm, const void* input,
                                                void* output /* [size] */, size_t count,
                                                paceline_type type);
PACELINE_API paceline_status paceline_alltoall(paceline_comm* comm, const void* input /* [size] */,
                                               void* output /* [size] */, size_t count,
                                               paceline_type type);
PACELINE_API paceline_status paceline_gather(paceline_comm* comm, const void* input,
                                             void* output /* [size], at the root */, size_t count,
                                             paceline_type type, int root);
PACELINE_API paceline_status paceline_scatter(paceline_comm* comm,
                                              const void* input /* [size], at the root */,
                                              void* output, size_t count, paceline_type type,
                                              int root);
PACELINE_API paceline_status paceline_barrier(paceline_comm* comm);

// --- one call, in full -------------------------------------------------------------------------

// Describes any of the calls above, with all parameters. Omitted members are 0:
//
//   paceline_call call = {.size = sizeof call, .collective = PACELINE_ALLREDUCE, .input = x,
//                         .output = x, .count = n, .type = PACELINE_F32, .op = PACELINE_SUM,
//                         .algorithm = "ring"};
//
// Pieces of different lengths (the v-forms): `counts` has the length of each rank's piece, and the
// pieces lie one after the other. For allgather and reduce_scatter it is equal on all ranks. For
// gather and scatter only the root has it; the other ranks set `uneven`, and the length of their
// own piece in `count`. For alltoall it has the lengths that go to each rank, and counts_received
// those that come from each. The library reads the arrays only during the call.
//
// algorithm, segments, window, radix and blocks are equal on all ranks; NULL or 0: the library
// chooses.
typedef struct paceline_call {
  size_t size;  // sizeof(paceline_call): later versions may append members
  paceline_collective collective;
  paceline_type type;  // barrier: not used
  paceline_op op;      // of allreduce, reduce and reduce_scatter
  int root;            // of broadcast, reduce, gather and scatter
  const void* input;   // broadcast: not used
  void* output;
  size_t count;  // with counts: 0, or this rank's count
  const size_t* counts;
  const size_t* counts_received;
  const char* algorithm;  // a name that `paceline explain` lists; NULL: chosen
  int segments;           // number of pipeline segments; 0: chosen
  int window;             // number of segments under way at a time; 0: chosen
  int radix, blocks;      // parameters of a named algorithm that has them; 0: chosen
  int uneven;             // 1: a v-form of which this rank does not know the counts
  int timeout_ms;         // time-out of the call; 0: the communicator's
  uint64_t tag;           // tag of the data; if tags differ, ranks get an error; 0: none
  // Of the calls under way, the one with the highest priority goes first. From -2^20 to 2^20, equal
  // on all ranks.
  int priority;
  int reserved;           // 0
} paceline_call;

PACELINE_API paceline_status paceline_run(paceline_comm* comm, const paceline_call* call);

// --- non-blocking ------------------------------------------------------------------------------
// The buffers belong to the collective until its request has ended. The call that finds a request
// complete or failed ends it: it frees the request, and sets the handle to NULL. Every request has
// to be ended.

// Starts a collective, and returns at once. On failure *request is NULL.
PACELINE_API paceline_status paceline_start(paceline_comm* comm, const paceline_call* call,
                                            paceline_request** request);

// Makes progress. Sets *done to 1 if the collective is complete or has failed, else to 0.
PACELINE_API paceline_status paceline_test(paceline_request** request, int* done);

// Returns when the collective is complete or has failed.
PACELINE_API paceline_status paceline_wait(paceline_request** request);

// Waits for at most `milliseconds`. If the collective is not complete then, it goes on; this is no
// error.
PACELINE_API paceline_status paceline_wait_for(paceline_request** request, int milliseconds,
                                               int* done);

// --- persistent --------------------------------------------------------------------------------

// Sets up a call that can be started many times. Algorithm, memory and buffers are fixed; the
// contents of the buffers may change.
PACELINE_API paceline_status paceline_plan_create(paceline_comm* comm, const paceline_call* call,
                                                  paceline_plan** plan);

// Starts the call once more. Its request must end before the next start.
PACELINE_API paceline_status paceline_plan_start(paceline_plan* plan, paceline_request** request);

// Frees the plan. A request of it may still be under way. *plan may be NULL.
PACELINE_API paceline_status paceline_plan_free(paceline_plan** plan);

#ifdef __cplusplus
}
#endif

#endif
