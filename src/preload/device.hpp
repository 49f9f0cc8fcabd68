// Buffers in the memory of a GPU: Paceline reads and writes with the processor, so its calls get a
// copy in host memory. Each rank sees to its own buffers; its peers need not know.
//
// The CUDA driver is asked, where the program has loaded it. It is never loaded from here.
#pragma once

#include <cstddef>
#include <memory>

#include "host_mpi.hpp"

namespace paceline::preload {

// A buffer as the processor can use it: itself, or a copy while this lives.
class HostCopy {
 public:
  // `bytes` in a row. `is_read`: the call reads what is there. Null and MPI_IN_PLACE stay what they
  // are. Throws a resource error where the driver cannot copy.
  HostCopy(const void* buffer, std::size_t bytes, bool is_read);
  // Elements of any datatype. MPI_BOTTOM stays what it is: addresses inside of a datatype are those
  // of host memory. Throws a usage error where MPI refuses the datatype.
  HostCopy(const void* buffer, std::size_t count, MPI_Datatype type, bool is_read);
  HostCopy(const HostCopy&) = delete;

  void* address() const { return address_; }
  void put_back();  // what the call has written

 private:
  void copy(const void* first, std::size_t bytes, bool is_read);

  void* address_;
  const void* device_ = nullptr;  // null: there is no copy
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte[]> host_;
};

// Whether the processor cannot use what lies there.
bool is_on_device(const void* address);

}  // namespace paceline::preload
