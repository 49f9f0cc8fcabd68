// Native: work of the core that another extension module does without Python between.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <utility>
#include <vector>

#include "buffers.hpp"
#include "native_function.hpp"

namespace paceline::binding {

class Native {
 public:
  // `owner` and `buffers` live as long as this does.
  Native(nanobind::object owner, std::vector<Buffer> buffers, std::function<void()> action)
      : owner_(std::move(owner)), buffers_(std::move(buffers)), action_(std::move(action)) {}
  Native(const Native&) = delete;
  Native& operator=(const Native&) = delete;

  void run() const { action_(); }
  // Valid as long as the Native is.
  nanobind::capsule capsule() const { return {&function_, kNativeCapsule}; }

 private:
  nanobind::object owner_;
  std::vector<Buffer> buffers_;
  std::function<void()> action_;
  NativeFunction function_{[](void* self) { static_cast<Native*>(self)->run(); }, this};
};

}  // namespace paceline::binding
