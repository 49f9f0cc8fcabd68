#include "transport/shm/slab.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/error.hpp"

namespace paceline {
namespace {

// A place for slots from `from` on; the first part begins with the head.
std::size_t offset_of(std::size_t from) { return from > 0 ? StagingBuffer::kHead + from : 0; }

// Bytes of addresses that this process may still take.
std::size_t free_addresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return ~std::size_t{0};
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::size_t taken = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::size_t>(limit.rlim_cur, taken);
}

}  // namespace

// The program's own memory may grow yet: half of what is left is its.
int Slab::slots_within_limits(std::size_t slot_bytes, int ranks) {
  const std::size_t longest = SharedFile::longest();
  const std::size_t most = free_addresses() / 2 / static_cast<std::size_t>(ranks);
  int slots = kSlots;
  while (slots > 1 && file_bytes(slots, slot_bytes) > std::min(longest, most)) slots /= 2;
  return slots;
}

Slab Slab::create(const std::string& folder, int slots, std::size_t slot_bytes) {
  const std::size_t bytes = file_bytes(slots, slot_bytes);
  Slab slab(SharedFile::create_sparse(folder, bytes), slots, slot_bytes);
  if (const int error = slab.file_.reserve_part(0, kDirectory); error != 0)
    fail(Fault::resource, "shm: no memory for the list of a rank's communicators: ",
         std::strerror(error), ".");
  return slab;
}

Slab Slab::attach(const std::string& address, int slots, std::size_t slot_bytes) {
  Slab slab(SharedFile::attach(address, file_bytes(slots, slot_bytes)), slots, slot_bytes);
  slab.file_.keep_out_of_dumps();
  return slab;
}

void Slab::reserve(int slot, std::size_t from, std::size_t slot_bytes) {
  const std::size_t begin = this->begin(slot) + offset_of(from);
  const std::size_t bytes = StagingBuffer::kHead + slot_bytes - offset_of(from);
  if (const int error = file_.reserve_part(begin, bytes); error != 0)
    fail(Fault::resource, "shm: no memory for ", human_bytes(double(bytes)),
         " of a communicator's stage: ", std::strerror(error), ". Its ranks take up to ",
         human_bytes(double(slot_bytes_)), " each for long calls, as PACELINE_STAGE_BYTES says. ",
         "Lower it, close communicators that are no longer used, or enlarge the memory ",
         "(docker run --shm-size).");
  touch(slot, from, slot_bytes);
}

void Slab::touch(int slot, std::size_t from, std::size_t slot_bytes) {
  file_.touch(begin(slot) + offset_of(from), StagingBuffer::kHead + slot_bytes - offset_of(from));
}

void Slab::release(int slot, std::size_t from) {
  file_.release_part(begin(slot) + offset_of(from), slot_bytes_ - offset_of(from));
}

}  // namespace paceline
