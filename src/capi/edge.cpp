#include "edge.hpp"

#include <cstdio>
#include <exception>
#include <new>

namespace paceline::capi {
namespace {

// A fixed buffer: remembering an error allocates nothing, because memory may be what is missing.
thread_local char message[2048];

paceline_status remember(Fault fault, const char* text) {
  const int length = std::snprintf(message, sizeof message, "%s", text);
  if (length >= static_cast<int>(sizeof message))
    std::snprintf(message + sizeof message - 4, 4, "...");
  return static_cast<paceline_status>(static_cast<int>(fault) + 1);
}

constexpr bool same(Fault fault, paceline_status status) {
  return static_cast<int>(fault) + 1 == status;
}
static_assert(same(Fault::usage, PACELINE_USAGE) && same(Fault::refusal, PACELINE_REFUSAL) &&
              same(Fault::mismatch, PACELINE_MISMATCH) && same(Fault::timeout, PACELINE_TIMEOUT) &&
              same(Fault::lost, PACELINE_LOST) && same(Fault::resource, PACELINE_RESOURCE) &&
              same(Fault::internal, PACELINE_INTERNAL));

}  // namespace

paceline_status caught() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return remember(error.fault(), error.what());
  } catch (const std::bad_alloc&) {
    return remember(Fault::resource, "the process has no memory left.");
  } catch (const std::exception& error) {
    char text[512];
    std::snprintf(text, sizeof text, "internal: %s. This is a bug in Paceline; please report it.",
                  error.what());
    return remember(Fault::internal, text);
  } catch (...) {
    return remember(Fault::internal,
                    "internal: something unknown was thrown. This is a bug in Paceline; please "
                    "report it.");
  }
}

}  // namespace paceline::capi

using namespace paceline::capi;

const char* paceline_error(void) { return message; }
const char* paceline_version(void) { return PACELINE_VERSION; }
int paceline_abi_version(void) { return PACELINE_ABI; }
