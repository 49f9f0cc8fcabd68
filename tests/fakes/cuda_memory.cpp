// The functions of the feigned CUDA driver that are about memory, also that of other processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "fakes/cuda_state.hpp"

using namespace feigned;

namespace {

std::size_t memory_bytes() { return static_cast<std::size_t>(setting("memory", 1 << 30)); }

// Shows memory of a file that nobody can touch, and maps the data elsewhere.
std::uintptr_t show(int file, std::size_t bytes, int device, Block of = {}) {
  const int both = PROT_READ | PROT_WRITE;
  void* data = mmap(nullptr, bytes, both, MAP_SHARED, file, 0);
  void* shown = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED || shown == MAP_FAILED) return 0;
  const auto address = reinterpret_cast<std::uintptr_t>(shown);
  const std::lock_guard lock(world().mutex);
  of.shown = address, of.data = static_cast<char*>(data), of.bytes = bytes;
  of.device = device, of.file = file;
  world().blocks[address] = of;
  return address;
}

int hide(std::uintptr_t address) {
  const std::lock_guard lock(world().mutex);
  const auto found = world().blocks.find(address);
  if (found == world().blocks.end()) return kInvalidValue;
  const Block& block = found->second;
  if (!block.is_opened && current) current->taken -= block.bytes;
  munmap(block.data, block.bytes);
  munmap(reinterpret_cast<void*>(block.shown), block.bytes);
  if (block.file >= 0) close(block.file);
  world().blocks.erase(found);
  return kSuccess;
}

// Memory that its process has freed is in the way as long as it is open here, and so is what lies
// in the same block.
bool is_in_the_way(const Block& opened, const Block& wanted, std::size_t bytes) {
  const bool overlap = wanted.origin < opened.origin + opened.bytes &&
                       opened.origin < wanted.origin + bytes;
  return opened.is_opened && opened.process == wanted.process &&
         opened.number != wanted.number &&
         (overlap || (bytes < kBlock && opened.bytes < kBlock));
}

}  // namespace

extern "C" {

int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = memory_bytes();
  return kSuccess;
}
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (!current) return kInvalidContext;
  *total = memory_bytes(), *free = memory_bytes() - current->taken;
  return kSuccess;
}

int cuMemAlloc_v2(std::uintptr_t* memory, std::size_t bytes) {
  when_nobody_frees();
  if (!current) return kInvalidContext;
  {
    const std::lock_guard lock(world().mutex);
    if (bytes > memory_bytes() - current->taken) return kOutOfMemory;
    current->taken += bytes;
  }
  const int file = memfd_create("feigned-cuda", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  static std::atomic<int> made{0};
  *memory = show(file, bytes, current->device, {.number = ++made});
  return *memory ? kSuccess : kOutOfMemory;
}
int cuMemFree_v2(std::uintptr_t memory) {
  const auto idle = when_idle();
  return hide(memory);
}
int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  when_nobody_frees();
  if (!current) return kInvalidContext;
  *memory = ::operator new(bytes, std::align_val_t{4096});
  std::memset(*memory, 0, bytes);
  const std::lock_guard lock(world().mutex);
  world().pinned[reinterpret_cast<std::uintptr_t>(*memory)] = bytes;
  return kSuccess;
}
int cuMemFreeHost(void* memory) {
  const auto idle = when_idle();
  const std::lock_guard lock(world().mutex);
  if (world().pinned.erase(reinterpret_cast<std::uintptr_t>(memory)) == 0) return kInvalidValue;
  ::operator delete(memory, std::align_val_t{4096});
  return kSuccess;
}
int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  const std::lock_guard lock(world().mutex);
  world().pinned[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
  return kSuccess;
}
int cuMemHostUnregister(void* memory) {
  const auto idle = when_idle();
  const std::lock_guard lock(world().mutex);
  return world().pinned.erase(reinterpret_cast<std::uintptr_t>(memory)) ? kSuccess : kInvalidValue;
}
int cuMemHostGetDevicePointer_v2(std::uintptr_t* address, void* memory, unsigned) {
  *address = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard lock(world().mutex);
  for (const auto& [begin, bytes] : world().pinned)
    if (*address - begin < bytes) return kSuccess;
  return kInvalidValue;
}
int cuPointerGetAttribute(void* value, int attribute, std::uintptr_t memory) {
  const std::lock_guard lock(world().mutex);
  const Block* block = block_of(memory);
  if (!block) return kInvalidValue;
  if (attribute == 2) *static_cast<unsigned*>(value) = 2;
  else if (attribute == 7) *static_cast<unsigned long long*>(value) = unsigned(block->number);
  else if (attribute == 8) *static_cast<unsigned*>(value) = 0;
  else if (attribute == 9) *static_cast<int*>(value) = block->device;
  else if (attribute == 11) *static_cast<std::uintptr_t*>(value) = block->shown;
  else if (attribute == 12) *static_cast<std::size_t*>(value) = block->bytes;
  else return kInvalidValue;
  return kSuccess;
}

struct Handle {
  char bytes[64];
};
int cuIpcGetMemHandle(Handle* handle, std::uintptr_t memory) {
  const std::lock_guard lock(world().mutex);
  const Block* block = block_of(memory);
  if (!block || block->shown != memory || block->is_opened) return kInvalidValue;
  std::memset(handle, 0, sizeof *handle);
  std::snprintf(handle->bytes, sizeof handle->bytes, "%d %d %zu %d %lu", getpid(), block->file,
                block->bytes, block->number, block->shown);
  return kSuccess;
}
int cuIpcOpenMemHandle_v2(std::uintptr_t* memory, Handle handle, unsigned) {
  int file = 0;
  std::size_t bytes = 0;
  Block of{.is_opened = true};
  if (std::sscanf(handle.bytes, "%d %d %zu %d %lu", &of.process, &file, &bytes, &of.number,
                  &of.origin) != 5 || of.process == getpid())
    return kInvalidValue;
  {
    const std::lock_guard lock(world().mutex);
    for (const auto& [address, block] : world().blocks)
      if (is_in_the_way(block, of, bytes)) return kAlreadyMapped;
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", of.process, file);
  const int opened = open(path, O_RDWR | O_CLOEXEC);
  if (opened < 0) return kInvalidValue;
  *memory = show(opened, bytes, current ? current->device : 0, of);
  return *memory ? kSuccess : kOutOfMemory;
}
int cuIpcCloseMemHandle(std::uintptr_t memory) { return hide(memory); }

}  // extern "C"
