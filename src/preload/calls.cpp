// The calls that the drop-in library serves: each becomes a call of Paceline, or passes to the
// host, the MPI of this process.
//
// The decision uses only what is equal on all ranks: the communicator's state and options, the
// length where all ranks know it, and for reductions the datatype and the operation, which MPI
// requires to be equal. The host reports wrong arguments. Each rank copies its own buffers on a
// GPU, after the check of their addresses.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/options.hpp"
#include "device.hpp"
#include "exchange.hpp"
#include "folds.hpp"
#include "fortran.hpp"
#include "join.hpp"
#include "presence.hpp"
#include "profiler.hpp"
#include "recovery.hpp"
#include "report.hpp"
#include "started.hpp"
#include "stub_table.hpp"
#include "summary.hpp"

namespace paceline::preload {
namespace {

// Runs `work`, which makes this call. If it fails, notes whether its input may be overwritten.
template <class Work>
void guard(CommState& state, const Call& call, Work&& work) {
  try {
    work();
  } catch (const Error&) {
    state.is_spoilt = has_op(call.collective) && call.input == call.output;
    throw;
  }
}

void run(CommState& state, const Call& call) {
  ++state.calls;
  state.communicator.run(call);
}

void serve(Exchange& x) {
  x.begin();
  guard(*x.state, x.call, [&] { x.op == MPI_OP_NULL ? run(*x.state, x.call) : run_fold(x); });
  x.end();
}

// Returns the call of this key if it needs no look at its arguments; else null.
const Repeat* find_repeat(const CommState& state, const std::optional<CallKey>& key) {
  return key && state.communicator.valid() && !has_driver() ? state.repeats.find(*key) : nullptr;
}

void serve_again(CommState& state, Row row, const Repeat& again) {
  const double began = is_summarised ? summary_clock() : 0;
  guard(state, again.call, [&] { run(state, again.call); });
  if (is_summarised) count_served(row, *again.algorithm, again.bytes, began);
}

// `key`: of a call that can repeat. `prepare` makes the exchange; if it returns false, `host` makes
// the call.
template <class Prepare, class Host>
int serve_or_pass(Row row, const char* name, MPI_Comm comm, const std::optional<CallKey>& key,
                  Prepare&& prepare, Host&& host) noexcept {
  CommState* state = nullptr;
  try {
    state = state_of(comm);
    if (const Repeat* const again = state ? find_repeat(*state, key) : nullptr)
      return serve_again(*state, row, *again), MPI_SUCCESS;
    if (state && (state->communicator.valid() || state->why == FallbackReason::differed)) {
      Exchange x = {state, comm, row};
      x.may_fold = true;
      if (prepare(x)) {
        serve(x);
        if (key && x.is_direct()) state->repeats.add(*key, x.call, x.bytes, x.algorithm);
        return MPI_SUCCESS;
      }
    } else if (state) {
      count_passed(row, state->why);
    }
  } catch (const Error& error) {
    if (!state || error.fault() != Fault::mismatch || !goes_on_by_host(*state, comm, error))
      return report(name, comm);
  } catch (...) {
    return report(name, comm);
  }
  return state ? by_host(row, host) : host();
}

// The same for a call that must not wait for others. `start` takes the exchange and the call's name
// and returns the request.
template <class Prepare, class Start, class Host>
int start_or_pass(Row row, const char* name, MPI_Comm comm, MPI_Request* request, Prepare&& prepare,
                  Start&& start, Host&& host) noexcept {
  CommState* state = nullptr;
  try {
    state = state_for_start(comm);
    if (state && state->communicator.valid() && state->drives_started) {
      Exchange x = {state, comm, row};
      if (prepare(x)) {
        x.call.is_one_of_many = true;
        *request = start(std::move(x), name);
        return MPI_SUCCESS;
      }
    } else if (state) {
      const bool is_valid = state->communicator.valid();
      count_passed(row, is_valid ? FallbackReason::thread : state->why);
    }
  } catch (...) {
    return report(name, comm);
  }
  return state ? by_host(row, host) : host();
}

#define UNWRAP(...) __VA_ARGS__
#define LONG(count) count
#define LONGS(counts, length) counts
#define IN const void*
#define OUT void*
#define ROOT int
#define OP MPI_Op
#define TYPE MPI_Datatype

#define SERVE(suffix, name, types, values)                                                   \
  int name##suffix(UNWRAP types MPI_Comm comm) noexcept {                                    \
    return serve_or_pass(                                                                    \
        Row::name, "MPI_" #name #suffix, comm, key_of(Row::name, UNWRAP values 0),           \
        [&](Exchange& x) { return prepare_##name(UNWRAP values x); },                        \
        [&] { return PMPI_##name##suffix(UNWRAP values comm); });                            \
  }
#define SERVE_STARTED(suffix, name, nonblocking, types, values)                              \
  int I##name##suffix(UNWRAP types MPI_Comm comm, MPI_Request* request) noexcept {           \
    return start_or_pass(                                                                    \
        Row::I##name, "MPI_" #nonblocking #suffix, comm, request,                            \
        [&](Exchange& x) { return prepare_##name(UNWRAP values x); }, start_call,            \
        [&] { return PMPI_##nonblocking##suffix(UNWRAP values comm, request); });            \
  }
#ifdef PACELINE_MPI_HAS_PERSISTENT
#define SERVE_PERSISTENT(suffix, name, types, values)                                        \
  int name##_init##suffix(UNWRAP types MPI_Comm comm, MPI_Info info,                         \
                          MPI_Request* request) noexcept {                                   \
    return start_or_pass(                                                                    \
        Row::name##_init, "MPI_" #name "_init" #suffix, comm, request,                       \
        [&](Exchange& x) { return prepare_##name(UNWRAP values x); }, make_persistent,       \
        [&] { return PMPI_##name##_init##suffix(UNWRAP values comm, info, request); });      \
  }
#else
#define SERVE_PERSISTENT(suffix, name, types, values)
#endif

#define COUNT int
#define COUNTS const int*
#define DISPLS const int*
#define SERVE_SERVED(name, nonblocking, types, values) SERVE_ALL(, name, nonblocking, types, values)
#define SERVE_WITHOUT_COUNTS SERVE_SERVED
#define SERVE_HOST(name, nonblocking, types, values)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  SERVE_##kind(name, nonblocking, types, values)
#include "mpi_calls.def"
#undef COUNT
#undef COUNTS
#undef DISPLS
#undef SERVE_SERVED
#undef SERVE_WITHOUT_COUNTS

#ifdef PACELINE_MPI_HAS_LONG_COUNTS
#define COUNT MPI_Count
#define COUNTS const MPI_Count*
#define DISPLS const MPI_Aint*
#define SERVE_SERVED(name, nonblocking, types, values) \
  SERVE_ALL(_c, name, nonblocking, types, values)
#define SERVE_WITHOUT_COUNTS(name, nonblocking, types, values)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  SERVE_##kind(name, nonblocking, types, values)
#include "mpi_calls.def"
#endif

#define REQUESTS MPI_Request*
#define REQUEST MPI_Request
#define REQUEST_AT(request) (&request)
#define STATUSES MPI_Status*
#define LENGTH int
#define INTS int*
#define WAIT(count, at, host) with_ours(count, at, host, &Ours::wait)
#define ANY(count, at, host) wait_for_some(count, at, host, TESTED_ANY)
#define SOME(count, at, host) wait_for_some(count, at, host, TESTED_SOME)
#define TEST(count, at, host) with_ours(count, at, host, &Ours::look)
#define LOOK(count, at, host) with_ours(count, at, host, &Ours::look)
#define START(count, at, host) with_ours(count, at, host, &Ours::start)
#define FREE(count, at, host) with_ours(count, at, host, &Ours::free)
// The calls of MPI that do not wait, in the place of those that wait for some requests.
#define TESTED_ANY                                            \
  [&](int& code) {                                            \
    int flag = 0;                                             \
    code = PMPI_Testany(n, requests, index, &flag, status);   \
    return flag || code != MPI_SUCCESS;                       \
  }
#define TESTED_SOME                                                 \
  [&](int& code) {                                                  \
    code = PMPI_Testsome(n, requests, done, indices, status);       \
    return *done != 0 || code != MPI_SUCCESS;                       \
  }
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests)          \
  int name types noexcept {                                                    \
    const auto host = [&] { return PMPI_##name values; };                      \
    const auto at = [&](int i) { return (requests)[i]; };                      \
    return kind((requests) ? n : 0, at, host);                                 \
  }
#include "mpi_requests.def"

#define COMM MPI_Comm
#define COMMS MPI_Comm*
#define INFO MPI_Info
#define GROUP MPI_Group
#undef INTS
#define INTS const int*
#define FROM_comm comm
#define FROM_none MPI_COMM_NULL
#define PACELINE_ROW(name, fortran, from, types, values)          \
  int name types noexcept {                                       \
    const int status = PMPI_##name values;                        \
    if (status == MPI_SUCCESS) attach(FROM_##from, *made);        \
    return status;                                                \
  }
#include "mpi_comms.def"

bool serves = false;

void serve_calls(paceline_function table[PACELINE_STUB_CALLS]) {
#define PUT_HOST(name)
#define PUT_WITHOUT_COUNTS(name) PACELINE_PUT_FORMS(name, )
#ifdef PACELINE_MPI_HAS_LONG_COUNTS
#define PUT_SERVED(name) PACELINE_PUT_FORMS(name, ) PACELINE_PUT_FORMS(name, _c)
#else
#define PUT_SERVED(name) PACELINE_PUT_FORMS(name, )
#endif
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) PUT_##kind(name)
#include "mpi_calls.def"
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  put(table, PACELINE_STUB_##name, name);
#include "mpi_requests.def"
#define PACELINE_ROW(name, fortran, from, types, values) put(table, PACELINE_STUB_##name, name);
#include "mpi_comms.def"
  serve_fortran(table);
}

}  // namespace
}  // namespace paceline::preload

int paceline_fill_stub(paceline_function table[PACELINE_STUB_CALLS],
                       const unsigned long calls[PACELINE_STUB_CALLS], char* why,
                       std::size_t length) {
  using namespace paceline::preload;
  char said[MPI_MAX_LIBRARY_VERSION_STRING + 8192] = "";  // of any MPI
  int bytes = 0;
  PMPI_Get_library_version(said, &bytes);
  if (!is_host(said)) {
    std::snprintf(why, length, "this library is for %.*s %.*s, the MPI of this process is %s",
                  int(kFamily.size()), kFamily.data(), int(kVersion.size()), kVersion.data(),
                  first_line(said).c_str());
    return 0;
  }
  try {
    // With preload=none a profile shows the unchanged program: no world is made.
    const bool profiles = is_profile_wanted();
    if (!profiles || paceline::text_of(paceline::Option::preload) != "none") {
      serves = true;
      serve_calls(table);
      begin_states(end_started);
      begin_summary(calls);
    }
    if (profiles) record_calls(table);
  } catch (const paceline::Error& error) {   // an option is wrong
    std::snprintf(why, length, "%s", error.what());
    return 0;
  }
  return 1;
}

void paceline_mpi_begins() {
  using namespace paceline::preload;
  try {
    if (serves) meet_ranks();
    if (is_profile_wanted()) begin_profile();
  } catch (const paceline::Error& error) {
    std::fprintf(stderr, "paceline: %s\n", error.what());
  }
}
