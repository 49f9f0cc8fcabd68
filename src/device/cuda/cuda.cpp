#include "device/cuda/cuda.hpp"

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "device/cuda/current.hpp"
#include "device/cuda/image.hpp"

namespace paceline::device {

using cuda::Address;
using cuda::Result;

namespace {

constexpr unsigned kNonBlocking = 1;             // CU_STREAM_NON_BLOCKING
constexpr unsigned kWithoutTiming = 2;           // CU_EVENT_DISABLE_TIMING
constexpr unsigned kPortableAndMapped = 3;       // CU_MEMHOSTALLOC_PORTABLE | _DEVICEMAP
constexpr std::size_t kOwnBlock = std::size_t{2} << 20, kMostRounded = ~std::size_t{0} >> 1;
constexpr std::size_t kMostExported = 1024;
constexpr unsigned kLazyPeers = 1;               // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
constexpr Result kUnavailable = 46, kUncorrectable = 214, kNvlink = 220, kFirstOfKernels = 700,
                 kUnknown = 999;

const cuda::Api& loaded_api() {
  std::string why;
  const cuda::Api* found = cuda::api(&why);
  if (!found) fail(Fault::refusal, "device: ", why, ".");
  return *found;
}

// Errors after which the device's context is unusable.
bool is_loss(Result result) {
  return result == kUnavailable || result == kUncorrectable || result == kNvlink ||
         result == kUnknown || (result >= kFirstOfKernels && result < 800 &&
                                result != cuda::kPeerAccessEnabled &&
                                result != cuda::kHostMemoryRegistered);
}

}  // namespace

Cuda::Current::Current(const Cuda& driver, int device) : api_(driver.api_) {
  const cuda::Context context = driver.place(device, "work").context;
  api_.get_context(&before_);
  if (before_ == context) return;
  driver.check(api_.set_context(context), "its context cannot be used", device);
  is_changed_ = true;
}

Cuda::Cuda() : api_(loaded_api()) {
  int count = 0;
  check(api_.device_count(&count), "devices cannot be counted", 0);
  for (int i = 0; i < count; ++i) {
    auto place = std::make_unique<Place>();
    check(api_.device_get(&place->device, i), "it cannot be opened", i);
    api_.device_attribute(&place->processors, cuda::kProcessors, place->device);
    places_.push_back(std::move(place));
  }
}

// Leaves the devices unchanged: a framework may use their contexts, and at the end of the process
// the driver may be unloaded.
Cuda::~Cuda() = default;

// Makes a context when its device is first used: contexts on all devices would take memory.
Cuda::Place& Cuda::place(int device, const char* what) const {
  if (device < 0 || device >= devices())
    fail(Fault::usage, "device: ", what, " on device ", device, "; there are 0 to ", devices() - 1,
         ".");
  Place& place = *places_[static_cast<std::size_t>(device)];
  if (place.is_open.load(std::memory_order_acquire)) return place;
  const std::lock_guard lock(opening_);
  if (!place.is_open.load(std::memory_order_relaxed)) open(place, device);
  place.is_open.store(true, std::memory_order_release);
  return place;
}

// Loads the kernels as well: loading waits for every stream, and later one of them might wait for
// an operation that needs these kernels.
void Cuda::open(Place& place, int device) const {
  check(api_.retain_context(&place.context, place.device), "it has no context", device);
  if (!kernel_image()) return;
  cuda::Context before = nullptr;
  api_.get_context(&before);
  check(api_.set_context(place.context), "its context cannot be used", device);
  place.loaded = api_.load_module(&place.module, kernel_image());
  api_.set_context(before);
}

void Cuda::check(Result result, const char* what, int device) const {
  if (result == cuda::kSuccess) return;
  const std::string why = cuda::describe(api_, result);
  if (result == cuda::kOutOfMemory) {
    std::size_t free = 0, total = 0;
    api_.memory_info(&free, &total);
    fail(Fault::resource, "device: ", what, " on device ", device, ", which has ", free,
         " bytes left of ", total, "; release memory, or take smaller segments.");
  }
  if (is_loss(result))
    fail(Fault::lost, "device: device ", device, " has gone: ", why, "; what was enqueued has not "
         "been done. Make a group of the others; this process cannot use the device any more.");
  fail(Fault::internal, "device: ", what, " on device ", device, ": ", why, ".");
}

bool Cuda::reaches(int device, int peer) const {
  Place& from = place(device, "access");
  Place& to = place(peer, "access");
  if (device == peer) return true;
  {
    const std::lock_guard lock(mutex_);
    const auto found = reaches_.find({device, peer});
    if (found != reaches_.end()) return found->second;
  }
  int can = 0;
  check(api_.can_access_peer(&can, from.device, to.device), "peer access is not known", device);
  if (can) {
    const Current current(*this, device);
    const Result result = api_.enable_peer(to.context, 0);
    can = result == cuda::kSuccess || result == cuda::kPeerAccessEnabled;
  }
  const std::lock_guard lock(mutex_);
  return reaches_[{device, peer}] = can != 0;
}

int Cuda::link(int device, int peer) const {
  const Place &from = place(device, "a link"), &to = place(peer, "a link");
  if (device == peer) return 0;
  int rank = 0;
  check(api_.peer_attribute(&rank, cuda::kPerformanceRank, from.device, to.device),
        "the link to a peer is not known", device);
  return rank;
}

std::byte* Cuda::allocate(int device, std::size_t bytes) {
  const std::string what = str(bytes, " bytes");
  std::size_t room = std::max<std::size_t>(bytes, 1);
  if (device == kHost) {
    void* memory = nullptr;
    const Current current(*this, 0);
    check(api_.allocate_host(&memory, room, kPortableAndMapped),
          (what + " of pinned memory").c_str(), 0);
    return static_cast<std::byte*>(memory);
  }
  const Current current(*this, device);
  // Shorter ones would share a block of the driver, which other processes can open only once.
  if (room <= kMostRounded) room = (room + kOwnBlock - 1) / kOwnBlock * kOwnBlock;
  Address memory = 0;
  check(api_.allocate(&memory, room), what.c_str(), device);
  return reinterpret_cast<std::byte*>(memory);
}

void Cuda::release(int device, std::byte* memory) {
  const Current current(*this, std::max(device, 0));
  const Result result = device == kHost ? api_.release_host(memory)
                                        : api_.release(reinterpret_cast<Address>(memory));
  if (result == cuda::kInvalidValue)
    fail(Fault::usage, "device: memory is released that device ", device, " has not given.");
}

void Cuda::pin(void* memory, std::size_t bytes) {
  const Current current(*this, 0);
  const Result result = api_.register_host(memory, bytes, kPortableAndMapped);
  if (result != cuda::kHostMemoryRegistered) check(result, "memory cannot be pinned", 0);
}

void Cuda::unpin(void* memory) {
  const Current current(*this, 0);
  api_.unregister_host(memory);
}

SharedHandle Cuda::share(int device, const std::byte* memory) {
  const Current current(*this, device);
  const auto address = reinterpret_cast<Address>(memory);
  Address begin = 0;
  std::size_t bytes = 0;
  unsigned long long buffer = 0;   // its numbers are never reused
  check(api_.pointer_attribute(&begin, cuda::kPointerRangeStart, address),
        "memory is not known to the driver", device);
  api_.pointer_attribute(&bytes, cuda::kPointerRangeSize, address);
  api_.pointer_attribute(&buffer, cuda::kPointerBuffer, address);
  const cuda::IpcHandle handle = exported(device, begin, buffer);
  std::string allocation(handle.bytes, sizeof handle.bytes);
  allocation.append(reinterpret_cast<const char*>(&buffer), sizeof buffer);
  return {std::move(allocation), static_cast<std::size_t>(address - begin), begin, bytes};
}

// Kept, because calls on the same memory request the same handle again.
cuda::IpcHandle Cuda::exported(int device, Address begin, unsigned long long buffer) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = exported_.find(buffer); found != exported_.end()) return found->second;
  }
  cuda::IpcHandle handle;
  check(api_.export_memory(&handle, begin),
        "memory cannot be opened by other processes (frameworks with expandable segments or "
        "cudaMallocAsync give such)", device);
  const std::lock_guard lock(mutex_);
  if (exported_.size() >= kMostExported) exported_.clear();
  return exported_[buffer] = handle;
}

std::byte* Cuda::open(int device, const std::string& allocation) {
  const Current current(*this, device);
  cuda::IpcHandle handle;
  std::copy_n(allocation.begin(), std::min(allocation.size(), sizeof handle.bytes), handle.bytes);
  Address opened = 0;
  const Result result = api_.import_memory(&opened, handle, kLazyPeers);
  if (result == cuda::kAlreadyMapped) return nullptr;
  check(result, "memory of a peer cannot be opened", device);
  return reinterpret_cast<std::byte*>(opened);
}

void Cuda::close(int device, std::byte* opened) {
  const Current current(*this, device);
  api_.close_memory(reinterpret_cast<Address>(opened));
}

Stream Cuda::make_stream(int device) {
  const Current current(*this, device);
  cuda::StreamHandle handle = nullptr;
  check(api_.make_stream(&handle, kNonBlocking), "a stream", device);
  const std::lock_guard lock(mutex_);
  streams_[next_] = {device, handle, true};
  return Stream{next_++};
}

// The default stream, 0, belongs to the current device.
Stream Cuda::adopt_stream(int device, std::uintptr_t native) {
  const Current current(*this, device);
  const auto handle = reinterpret_cast<cuda::StreamHandle>(native);
  constexpr std::uintptr_t kOfEveryDevice = 2;   // 1 and 2: CU_STREAM_LEGACY, _PER_THREAD
  if (native > kOfEveryDevice) {
    cuda::Context context = nullptr;
    check(api_.stream_context(handle, &context), "a stream is not the driver's", device);
    if (context != place(device, "a stream").context)
      fail(Fault::usage, "device: a stream of another device is passed for device ", device,
           "; pass one of the device that the memory is on.");
  }
  const std::lock_guard lock(mutex_);
  streams_[next_] = {device, handle, false};
  return Stream{next_++};
}

int Cuda::device_of(Stream stream) const { return on(stream).device; }

Cuda::OnStream Cuda::on(Stream stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(static_cast<int>(stream));
  if (found == streams_.end())
    fail(Fault::usage, "device: there is no stream ", static_cast<int>(stream),
         "; it was released, or another driver's.");
  return found->second;
}

Cuda::OnEvent Cuda::on(Event event) const {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(static_cast<int>(event));
  if (found == events_.end())
    fail(Fault::usage, "device: there is no event ", static_cast<int>(event),
         "; it was released, or another driver's.");
  return found->second;
}

void Cuda::release(Stream stream) {
  OnStream mine;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(static_cast<int>(stream));
    if (found == streams_.end()) return;
    mine = found->second;
    streams_.erase(found);
  }
  if (!mine.is_own) return;
  const Current current(*this, mine.device);
  api_.synchronize_stream(mine.handle);
  api_.release_stream(mine.handle);
}

Event Cuda::make_event(int device) {
  const Current current(*this, device);
  cuda::EventHandle handle = nullptr;
  check(api_.make_event(&handle, kWithoutTiming), "an event", device);
  const std::lock_guard lock(mutex_);
  events_[next_] = {device, handle};
  return Event{next_++};
}

void Cuda::release(Event event) {
  OnEvent mine;
  {
    const std::lock_guard lock(mutex_);
    const auto found = events_.find(static_cast<int>(event));
    if (found == events_.end()) return;
    mine = found->second;
    events_.erase(found);
  }
  const Current current(*this, mine.device);
  api_.release_event(mine.handle);
}

CudaDevice Cuda::describe(int device) const {
  const Place& found = place(device, "a look");
  CudaDevice about;
  char name[128] = "";
  api_.device_name(name, sizeof name, found.device);
  about.name = name;
  api_.device_attribute(&about.major, cuda::kMajor, found.device);
  api_.device_attribute(&about.minor, cuda::kMinor, found.device);
  api_.device_memory(&about.memory_bytes, found.device);
  int domain = 0, bus = 0, slot = 0;
  api_.device_attribute(&domain, cuda::kPciDomain, found.device);
  api_.device_attribute(&bus, cuda::kPciBus, found.device);
  api_.device_attribute(&slot, cuda::kPciDevice, found.device);
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x", domain & 0xffff, bus & 0xff, slot & 0xff);
  about.bus = text;
  return about;
}

int Cuda::owner_of(const void* memory) const {
  const auto address = reinterpret_cast<Address>(memory);
  unsigned type = 0, is_managed = 0;
  int ordinal = kHost;
  if (api_.pointer_attribute(&type, cuda::kPointerMemoryType, address) != cuda::kSuccess ||
      type != cuda::kDeviceMemory)
    return kHost;
  api_.pointer_attribute(&is_managed, cuda::kPointerIsManaged, address);
  if (is_managed) return kHost;
  api_.pointer_attribute(&ordinal, cuda::kPointerOrdinal, address);
  return ordinal;
}

std::shared_ptr<Cuda> cuda_driver() {
  static std::mutex mutex;
  static std::shared_ptr<Cuda>* const kept = new std::shared_ptr<Cuda>;
  const std::lock_guard lock(mutex);
  if (!*kept) *kept = std::make_shared<Cuda>();
  return *kept;
}

std::string trouble_with_cuda() {
  std::string why;
  cuda::api(&why);
  return why;
}

}  // namespace paceline::device
