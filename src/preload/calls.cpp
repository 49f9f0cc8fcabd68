// The calls that the drop-in library serves: each becomes a call of Paceline, or passes to the
// host, the MPI of this process.
//
// The decision uses only what is equal on all ranks: the communicator's state and options, the
// length where all ranks know it, and for reductions the datatype and the operation, which MPI
// requires to be equal. The host reports wrong arguments. Each rank copies its own buffers on a
// GPU, after the check of their addresses.
#include <cstdint>
#include <cstdio>

#include "base/error.hpp"
#include "base/options.hpp"
#include "exchange.hpp"
#include "fortran.hpp"
#include "profiler.hpp"
#include "recovery.hpp"
#include "stub.h"
#include "summary.hpp"

namespace paceline::preload {
namespace {

// Prints the current exception and calls the communicator's error handler, which by default ends
// the program.
int report(const char* name, MPI_Comm comm) {
  int code = MPI_ERR_OTHER;
  try {
    throw;
  } catch (const Error& error) {
    std::fprintf(stderr, "paceline: %s: %s\n", name, error.what());
    if (error.fault() == Fault::usage) code = MPI_ERR_ARG;
    if (error.fault() == Fault::resource) code = MPI_ERR_NO_MEM;
    if (error.fault() == Fault::internal) code = MPI_ERR_INTERN;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paceline: %s: %s\n", name, error.what());
    code = MPI_ERR_NO_MEM;
  }
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

void serve(Exchange& x) {
  CommState& state = x.state;
  x.begin();
  ++state.calls;
  try {
    state.communicator.run(x.call);
  } catch (const Error&) {
    state.is_spoilt = has_op(x.call.collective) && x.call.input == x.call.output;
    throw;
  }
  CallStats& count = state.of(x.row);
  ++count.served;
  count.bytes += x.bytes;
  x.end();
}

// `prepare` makes the exchange; if it returns false, `host` makes the call.
template <class Prepare, class Host>
int serve_or_pass(Row row, const char* name, MPI_Comm comm, Prepare&& prepare,
                  Host&& host) noexcept {
  CommState* state = nullptr;
  try {
    state = state_of(comm);
    if (state && (state->communicator.valid() || state->why == FallbackReason::differed)) {
      Exchange x = {*state, comm, row};
      if (prepare(x)) return serve(x), MPI_SUCCESS;
    } else if (state) {
      state->count_passed(row, state->why);
    }
  } catch (const Error& error) {
    if (!state || error.fault() != Fault::mismatch || !goes_on_by_host(*state, comm, error))
      return report(name, comm);
  } catch (...) {
    return report(name, comm);
  }
  return host();
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
        Row::name, "MPI_" #name #suffix, comm,                                               \
        [&](Exchange& x) { return prepare_##name(UNWRAP values x); },                        \
        [&] { return PMPI_##name##suffix(UNWRAP values comm); });                            \
  }

#define COUNT int
#define COUNTS const int*
#define DISPLS const int*
#define SERVE_SERVED(name, types, values) SERVE(, name, types, values)
#define SERVE_WITHOUT_COUNTS SERVE_SERVED
#define SERVE_HOST(name, types, values)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  SERVE_##kind(name, types, values)
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
#define SERVE_SERVED(name, types, values) SERVE(_c, name, types, values)
#define SERVE_WITHOUT_COUNTS(name, types, values)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  SERVE_##kind(name, types, values)
#include "mpi_calls.def"
#endif

// Calls that the MPI lacks stay null.
template <class Function>
void put(paceline_function table[], int which, Function* function) {
  if (table[which]) table[which] = reinterpret_cast<paceline_function>(function);
}

void serve_calls(paceline_function table[PACELINE_STUB_CALLS]) {
#define PUT_HOST(name)
#define PUT_WITHOUT_COUNTS(name) put(table, PACELINE_STUB_##name, name);
#ifdef PACELINE_MPI_HAS_LONG_COUNTS
#define PUT_SERVED(name) \
  put(table, PACELINE_STUB_##name, name), put(table, PACELINE_STUB_##name##_c, name##_c);
#else
#define PUT_SERVED(name) put(table, PACELINE_STUB_##name, name);
#endif
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) PUT_##kind(name)
#include "mpi_calls.def"
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
      serve_calls(table);
      begin_states();
      count_host_calls(calls);
    }
    if (profiles) record_calls(table);
  } catch (const paceline::Error& error) {   // an option is wrong
    std::snprintf(why, length, "%s", error.what());
    return 0;
  }
  return 1;
}
