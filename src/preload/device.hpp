// Host copies of buffers in GPU memory: Paceline reads and writes with the processor.
//
// Each rank copies its own buffers; its peers need not know. The CUDA driver, if the program has
// loaded it, tells where a buffer is. This code never loads the driver.
#pragma once

#include <cstddef>
#include <memory>

#include "host_mpi.hpp"

namespace paceline::preload {

// A buffer as the processor can use it: itself, or a copy while this lives.
class HostCopy {
 public:
  // Elements of any datatype. `is_read`: the call reads the buffer. MPI_BOTTOM stays unchanged:
  // addresses inside a datatype are those of host memory. Throws a usage error if MPI refuses the
  // datatype, a resource error if the driver cannot copy.
  HostCopy(const void* buffer, std::size_t count, MPI_Datatype type, bool is_read);
  HostCopy(const HostCopy&) = delete;

  void* address() const { return address_; }
  void put_back();  // copies the call's result to the device

 private:
  void copy(const void* first, std::size_t bytes, bool is_read);

  void* address_;
  const void* device_ = nullptr;  // null: there is no copy
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte[]> host_;
};

// True if the processor cannot access this address.
bool is_on_device(const void* address);
// True once a buffer has been asked about in a process that has loaded the driver.
bool has_driver();

// Copies from or to the buffer at `device`. Throws a resource error if the driver cannot.
void copy_by_driver(const void* device, void* to, const void* from, std::size_t bytes);

}  // namespace paceline::preload
