// The edge between C and the core: turns exceptions into codes and checks handles.
#pragma once

#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "paceline/paceline.h"
#include "runtime/communicator.hpp"

namespace paceline::capi {

// Kind of a handle. The destructor wipes it, so that later use of the handle is noticed as long as
// the memory is not reused.
class Mark {
 public:
  explicit Mark(std::uint64_t kind) : kind_(kind) {}
  ~Mark() { kind_ = 0; }
  Mark(const Mark&) = delete;
  bool is(std::uint64_t kind) const { return kind_ == kind; }

 private:
  volatile std::uint64_t kind_;  // volatile: the compiler must keep the last write
};

// Remembers the exception that is being handled for paceline_error(), and returns its code.
paceline_status caught() noexcept;

template <class Body>
paceline_status guarded(Body&& body) noexcept {
  try {
    body();
    return PACELINE_OK;
  } catch (...) {
    return caught();
  }
}

template <class Handle>
Handle& alive(Handle* handle, const char* where) {
  if (!handle)
    fail(Fault::usage, where, ": the ", Handle::kName,
         " is null; it was freed, has ended, or was never made.");
  if (!handle->mark.is(Handle::kKind))
    fail(Fault::usage, where, ": the handle is no ", Handle::kName,
         "; has it been freed through a copy?");
  return *handle;
}

// Checks and empties the result of a function, so that a failure leaves nothing behind.
template <class Result>
Result& place(Result* result, const char* where, const char* name) {
  if (!result)
    fail(Fault::usage, where, ": ", name, " is null; pass the address of a variable for it.");
  return *result = Result{};
}

// The address of a handle that the function may free.
template <class Handle>
Handle*& held(Handle** handle, const char* where) {
  if (!handle)
    fail(Fault::usage, where, ": got null; pass the address of the ", Handle::kName, ".");
  return *handle;
}

// Frees the handle; it may be null.
template <class Handle>
void free_handle(Handle** handle, const char* where) {
  Handle*& mine = held(handle, where);
  if (!mine) return;
  alive(mine, where);
  delete std::exchange(mine, nullptr);
}

// Returns the caller's call, checked as far as possible without knowing the collective.
Call call_from(const paceline_call* given, const Communicator& communicator, const char* where);

}  // namespace paceline::capi

// The mark comes last: a freeing allocator overwrites the beginning of the memory.
struct paceline_comm {
  static constexpr const char* kName = "communicator";
  static constexpr std::uint64_t kKind = 0x70616365636f6d6d;
  paceline::Communicator communicator;
  paceline::capi::Mark mark{kKind};
};

struct paceline_request {
  static constexpr const char* kName = "request";
  static constexpr std::uint64_t kKind = 0x7061636572657175;
  paceline::Request request;
  paceline::capi::Mark mark{kKind};
};

struct paceline_plan {
  static constexpr const char* kName = "plan";
  static constexpr std::uint64_t kKind = 0x70616365706c616e;
  paceline::Plan plan;
  paceline::capi::Mark mark{kKind};
};
