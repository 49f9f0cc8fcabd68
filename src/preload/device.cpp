#include "device.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace paceline::preload {
namespace {

// The part of the driver's interface that this file uses, as cuda.h declares it.
using Context = void*;
constexpr int kContext = 1, kMemoryType = 2, kIsManaged = 8;  // CUpointer_attribute
constexpr unsigned kDevice = 2;                               // CU_MEMORYTYPE_DEVICE
struct Driver {
  int (*attributes)(unsigned count, int* names, void** values, std::uintptr_t address) = nullptr;
  int (*copy)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) = nullptr;
  int (*synchronize)(void* stream) = nullptr;
  int (*push)(Context) = nullptr;
  int (*pop)(Context*) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

int count_loads(dl_phdr_info* object, std::size_t, void* loads) {
  *static_cast<unsigned long long*>(loads) = object->dlpi_adds;
  return 1;
}

// The driver of this process; null until the program has loaded it.
class Loaded {
 public:
  const Driver* get() const { return driver_.load(std::memory_order_acquire); }

  // Looks again if a library has been loaded since the last look.
  const Driver* look() {
    unsigned long long loads = 0;
    dl_iterate_phdr(count_loads, &loads);
    if (loads == loads_.load(std::memory_order_relaxed)) return get();
    const std::lock_guard lock(mutex_);
    if (get()) return get();
    if (void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
      static Driver driver;
      if (find(library, "cuPointerGetAttributes", driver.attributes) &&
          find(library, "cuMemcpy", driver.copy) &&
          find(library, "cuStreamSynchronize", driver.synchronize) &&
          find(library, "cuCtxPushCurrent_v2", driver.push) &&
          find(library, "cuCtxPopCurrent_v2", driver.pop))
        driver_.store(&driver, std::memory_order_release);
    }
    loads_.store(loads, std::memory_order_relaxed);
    return get();
  }

 private:
  std::mutex mutex_;
  std::atomic<const Driver*> driver_{nullptr};
  std::atomic<unsigned long long> loads_{0};
};

Loaded& loaded() {
  static Loaded* const one = new Loaded;
  return *one;
}

struct Place {
  unsigned type = 0, is_managed = 0;
  Context context = nullptr;
};

Place place_of(const Driver& driver, const void* address) {
  Place place;
  int names[] = {kMemoryType, kIsManaged, kContext};
  void* values[] = {&place.type, &place.is_managed, &place.context};
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if (driver.attributes(3, names, values, number) != 0) return {};  // not initialised, for instance
  return place;
}

// The driver requires a context in the copying thread; the program may have it in another thread.
void copy_by(const Driver& driver, const void* device, void* to, const void* from,
             std::size_t bytes) {
  const Context context = place_of(driver, device).context;
  if (context) driver.push(context);
  int status = driver.copy(reinterpret_cast<std::uintptr_t>(to),
                           reinterpret_cast<std::uintptr_t>(from), bytes);
  if (status == 0) status = driver.synchronize(nullptr);
  Context popped = nullptr;
  if (context) driver.pop(&popped);
  if (status != 0)
    fail(Fault::resource, "preload: the CUDA driver cannot copy ", bytes, " bytes ",
         to == device ? "to" : "from", " the device memory at ", device, " (error ", status, ").");
}

// True if the thread has checked this buffer before. Without a loaded driver a known buffer costs
// one comparison; each new one looks again for a driver loaded since.
bool is_known(const void* address) {
  constexpr unsigned kBuffers = 16;
  thread_local std::array<const void*, kBuffers> known{};
  const void*& place = known[Random::mix(reinterpret_cast<std::uintptr_t>(address)) % kBuffers];
  return std::exchange(place, address) == address;
}

}  // namespace

bool has_driver() { return loaded().get() != nullptr; }

bool is_on_device(const void* address) {
  const Driver* driver = loaded().get();
  if (!driver) {
    if (is_known(address)) return false;
    driver = loaded().look();
    if (!driver) return false;
  }
  const Place place = place_of(*driver, address);
  return place.type == kDevice && !place.is_managed;
}

void copy_by_driver(const void* device, void* to, const void* from, std::size_t bytes) {
  copy_by(*loaded().get(), device, to, from, bytes);
}

HostCopy::HostCopy(const void* buffer, std::size_t count, MPI_Datatype type, bool is_read)
    : address_(const_cast<void*>(buffer)) {
  if (!buffer || count == 0) return;
  MPI_Aint low = 0, extent = 0, first = 0, length = 0;
  if (PMPI_Type_get_extent(type, &low, &extent) != MPI_SUCCESS ||
      PMPI_Type_get_true_extent(type, &first, &length) != MPI_SUCCESS)
    fail(Fault::usage, "preload: MPI does not tell the extent of the datatype.");
  if (length <= 0) return;
  const MPI_Aint last = extent * static_cast<MPI_Aint>(count - 1);
  const auto* begin = static_cast<const std::byte*>(buffer) + first + std::min<MPI_Aint>(last, 0);
  if (!is_on_device(begin)) return;
  copy(begin, static_cast<std::size_t>(length + std::max(last, -last)), is_read);
  address_ = host_.get() + (static_cast<const std::byte*>(buffer) - begin);
}

void HostCopy::copy(const void* first, std::size_t bytes, bool is_read) {
  host_.reset(new std::byte[bytes]);
  device_ = first, bytes_ = bytes, address_ = host_.get();
  if (is_read) copy_by_driver(first, address_, first, bytes);
}

void HostCopy::put_back() {
  if (device_) copy_by_driver(device_, const_cast<void*>(device_), host_.get(), bytes_);
}

}  // namespace paceline::preload
