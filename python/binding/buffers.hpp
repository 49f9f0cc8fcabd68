// Buffers: the memory of arrays and tensors, without a copy.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/types.hpp"

namespace paceline::binding {

// Names an argument of a call in errors: "allreduce: out".
struct Where {
  std::string_view call;
  const char* argument;
};

inline constexpr int kOnHost = -1;

// Memory that a call accepts: the host's alone, or that of CUDA devices as well.
enum class Accepts { host, devices };

// Contiguous memory of a numpy array, a torch tensor on the CPU or a CUDA device, or any object
// with the buffer protocol, DLPack or __cuda_array_interface__. The object stays alive, and in its
// place, for as long as a Buffer holds it.
class Buffer {
 public:
  Buffer() = default;
  // None makes an empty Buffer. Throws usage errors and refusals that say what to pass instead.
  Buffer(nanobind::handle object, const Where& where, Accepts accepts = Accepts::host);
  ~Buffer() { release(); }
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  Buffer alias() const;  // the same memory once more, for the other side of a call in place

  bool given() const { return object_.is_valid(); }
  void* data() const { return data_; }
  std::size_t count() const { return count_; }  // elements
  Type type() const { return type_; }
  bool read_only() const { return read_only_; }
  // Elements along each dimension, if the object describes them itself.
  std::optional<std::span<const Py_ssize_t>> lengths() const {
    if (!view_.obj) return {};
    return std::span(view_.shape, static_cast<std::size_t>(view_.ndim));
  }
  int device() const { return device_; }   // of CUDA; kOnHost: the memory is the host's
  // The stream by which its owner orders work on that device: a CUstream; 0: the default stream.
  std::uintptr_t stream() const { return stream_; }

 private:
  void from_view(const Where& where);
  void from_tensor(const Where& where);
  void from_dlpack(const Where& where);
  void from_cuda_interface(const Where& where);
  void release();  // with the GIL held

  nanobind::object object_;
  Py_buffer view_{};  // while view_.obj is set, the object cannot be resized
  void* data_ = nullptr;
  std::size_t count_ = 0;
  Type type_ = Type::u8;
  bool read_only_ = false;
  int device_ = kOnHost;
  std::uintptr_t stream_ = 0;
};

}  // namespace paceline::binding
