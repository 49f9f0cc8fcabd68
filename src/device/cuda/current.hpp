// Current: makes a device's context the calling thread's current one for a scope.
#pragma once

#include "device/cuda/cuda.hpp"

namespace paceline::device {

class Cuda::Current {
 public:
  Current(const Cuda& driver, int device);
  ~Current() {
    if (is_changed_) api_.set_context(before_);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const cuda::Api& api_;
  cuda::Context before_ = nullptr;
  bool is_changed_ = false;
};

}  // namespace paceline::device
