// Devices as Python holds them.
#pragma once

#include <memory>
#include <string_view>

#include "arguments.hpp"
#include "device/emulation.hpp"

namespace paceline::binding {

struct PyDevices {
  std::shared_ptr<device::Driver> driver;
  std::shared_ptr<device::Emulation> emulation;   // the driver, where it is one
};

struct PyEmulated : PyDevices {
  explicit PyEmulated(std::shared_ptr<device::Emulation> made) : PyDevices{made, made} {}
};

// A usage error where a buffer is elsewhere. Emulated devices take arrays of the host as their own.
void must_be_on(const Kept& kept, const PyDevices& devices, int device, std::string_view call);

}  // namespace paceline::binding
