// NativeFunction: what the capsule of a Native holds, for the modules that use it.
#pragma once

namespace paceline::binding {

// `run` needs no GIL, and may throw std::runtime_error.
struct NativeFunction {
  void (*run)(void* self);
  void* self;
};
inline constexpr const char* kNativeCapsule = "paceline.native/1";

}  // namespace paceline::binding
