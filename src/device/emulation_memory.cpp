// The part of the emulation that allocates memory. Devices' memory lies in unnamed files, so that
// other processes can open it, as they open memory of a GPU.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <iterator>
#include <new>

#include "base/error.hpp"
#include "device/emulation.hpp"

namespace paceline::device {
namespace {

std::string name_of(int device) { return device == kHost ? "the host" : str("device ", device); }

// A shared mapping: processes see each other's writes.
std::byte* map(int file, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

std::byte* Emulation::allocate(int device, std::size_t bytes) {
  check(device, "memory");
  const Lock lock(mutex_);
  auto& blocks = memory_[static_cast<std::size_t>(device == kHost ? options_.devices : device)];
  std::size_t taken = 0;
  for (const auto& [memory, block] : blocks) taken += block.bytes;
  if (bytes > options_.memory_bytes - taken)
    fail(Fault::resource, "device: ", bytes, " bytes on ", name_of(device), ", which has ",
         options_.memory_bytes - taken, " left of ", options_.memory_bytes,
         "; release memory, or take smaller segments.");
  const std::size_t room = std::max<std::size_t>(bytes, 1);
  const int file = memfd_create("paceline-device", MFD_CLOEXEC);
  std::byte* memory = file >= 0 && ftruncate(file, static_cast<off_t>(room)) == 0
                          ? map(file, room) : nullptr;
  if (!memory) {
    if (file >= 0) ::close(file);
    throw std::bad_alloc();
  }
  static std::atomic<std::uint64_t> serial{0};
  blocks.emplace(memory, Block{bytes, file, ++serial});
  return memory;
}

void Emulation::release(int device, std::byte* memory) {
  check(device, "memory");
  const Lock lock(mutex_);
  auto& blocks = memory_[static_cast<std::size_t>(device == kHost ? options_.devices : device)];
  const auto found = blocks.find(memory);
  if (found == blocks.end())
    fail(Fault::usage, "device: memory is released that ", name_of(device), " has not given.");
  munmap(memory, std::max<std::size_t>(found->second.bytes, 1));
  ::close(found->second.file);
  blocks.erase(found);
}

void Emulation::release_memory() {
  for (auto& blocks : memory_)
    for (auto& [memory, block] : blocks) {
      munmap(memory, std::max<std::size_t>(block.bytes, 1));
      ::close(block.file);
    }
  for (auto& [memory, bytes] : opened_) munmap(memory, bytes);
}

std::size_t Emulation::allocated(int device) const {
  const Lock lock(mutex_);
  std::size_t taken = 0;
  for (const auto& [memory, block] :
       memory_[static_cast<std::size_t>(device == kHost ? options_.devices : device)])
    taken += block.bytes;
  return taken;
}

int Emulation::owner_of(const void* memory) const {
  const Lock lock(mutex_);
  for (int device = 0; device < options_.devices; ++device) {
    const auto& blocks = memory_[static_cast<std::size_t>(device)];
    const auto after = blocks.upper_bound(static_cast<std::byte*>(const_cast<void*>(memory)));
    if (after == blocks.begin()) continue;
    const auto& [begin, block] = *std::prev(after);
    if (memory < begin + std::max<std::size_t>(block.bytes, 1)) return device;
  }
  return kHost;
}

void Emulation::pin(void*, std::size_t) {}
void Emulation::unpin(void*) {}

SharedHandle Emulation::share(int device, const std::byte* memory) {
  check(device, "memory");
  const Lock lock(mutex_);
  for (const auto& [begin, block] : memory_[static_cast<std::size_t>(device)]) {
    const std::size_t bytes = std::max<std::size_t>(block.bytes, 1);
    if (memory >= begin && memory < begin + bytes)
      return {.allocation = str(getpid(), ' ', block.file, ' ', bytes, ' ', block.serial),
              .offset = static_cast<std::size_t>(memory - begin),
              .begin = reinterpret_cast<std::uintptr_t>(begin), .bytes = bytes};
  }
  fail(Fault::usage, "device: other processes cannot open this memory of the host as that of ",
       name_of(device), "; make the array with paceline.device.empty().");
}

std::byte* Emulation::open(int device, const std::string& allocation) {
  check(device, "memory");
  const Lock lock(mutex_);
  const std::size_t first = allocation.find(' '), second = allocation.find(' ', first + 1);
  std::size_t bytes = 0;
  std::from_chars(allocation.data() + second + 1, allocation.data() + allocation.size(), bytes);
  const std::string path = str("/proc/", allocation.substr(0, first), "/fd/",
                               allocation.substr(first + 1, second - first - 1));
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  std::byte* memory = file < 0 ? nullptr : map(file, bytes);
  if (file >= 0) ::close(file);
  if (!memory)
    fail(Fault::resource, "device: memory of another process cannot be opened at ", path,
         "; has it ended, or is /proc not mounted?");
  opened_.emplace(memory, bytes);
  return memory;
}

void Emulation::close(int, std::byte* opened) {
  const Lock lock(mutex_);
  const auto found = opened_.find(opened);
  if (found == opened_.end()) return;
  munmap(opened, found->second);
  opened_.erase(found);
}

}  // namespace paceline::device
