// Device side of a call's buffers: the end of messages on a CUDA device, and the owner's stream.
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

// Returns the host for calls whose buffers are there. Throws a refusal if there is no CUDA.
OnDevice place_of(const Kept& kept);

// Returns a stream of the device from its owner's handle.
device::Stream cuda_stream(int device, std::uintptr_t native);

// Returns the end of messages on a CUDA device of this process; made on first use, and kept.
std::shared_ptr<DeviceEnd> cuda_end(int device);

// Returns a function that copies, with at least one side on a device. The copy comes after what is
// on the owners' streams now; it is done on return. The buffers must live until then.
std::function<void()> device_copy(const Buffer& from, const Buffer& to);

// Sources of a sum on the host, some of them on devices: pinned memory holds these meanwhile.
class Fetched {
 public:
  // Adds the next source, as it is once its owner's stream has done what is on it now.
  void add(const Buffer& source);
  // Copies those on devices to the host, and replaces their addresses.
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
