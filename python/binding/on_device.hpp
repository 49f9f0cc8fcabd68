// Where a call's buffers are on a CUDA device: the end of messages there, and the owner's stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "arguments.hpp"
#include "engine/device_end.hpp"
#include "runtime/call.hpp"

namespace paceline::binding {

// The host's, for calls whose buffers are there. Throws a refusal where there is no CUDA.
OnDevice place_of(const Kept& kept);

// A stream of the device, as its owner has it.
device::Stream cuda_stream(int device, std::uintptr_t native);

// The end of messages on a CUDA device of this process; made when first asked for, and kept.
std::shared_ptr<DeviceEnd> cuda_end(int device);

// A copy of which at least one side is on a device: after what is on the owners' streams now, and
// done when the function returns. The buffers must live until then.
std::function<void()> device_copy(const Buffer& from, const Buffer& to);

// Sources of a sum on the host, of which some are on devices: pinned memory holds them meanwhile.
class Fetched {
 public:
  // The next source, as it is once its owner's stream has done what is on it now.
  void add(const Buffer& source);
  // Brings those on devices here, and puts where they are now in their places.
  void fetch(std::vector<const void*>& sources);
  void give_back();
  ~Fetched() { give_back(); }

 private:
  struct Source {
    std::shared_ptr<DeviceEnd> end;   // null: on the host
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    device::Event after = {};
    std::byte* pinned = nullptr;
  };
  std::vector<Source> sources_;
};

int owner_of_cuda_memory(const void* memory);   // throws a usage error where it is not a device's

}  // namespace paceline::binding
