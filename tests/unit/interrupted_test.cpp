// Memory is reserved although signals interrupt the system at it, as older kernels do.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <atomic>
#include <cerrno>

#include "transport/shm/segment.hpp"

namespace {

std::atomic<int> interruptions{0};

}  // namespace

// In the place of the C library's, for this program.
extern "C" int posix_fallocate(int descriptor, off_t offset, off_t bytes) {
  int left = interruptions.load();
  while (left > 0)
    if (interruptions.compare_exchange_weak(left, left - 1)) return EINTR;
  return fallocate(descriptor, 0, offset, bytes) == 0 ? 0 : errno;
}

namespace paceline {
namespace {

TEST_CASE("memory is reserved in spite of signals") {
  interruptions = 3;
  SharedFile file = SharedFile::create("/dev/shm", 1 << 16);
  CHECK(interruptions == 0);
  interruptions = 3;
  CHECK(file.reserve_part(0, 1 << 16) == 0);
  CHECK(interruptions == 0);
}

}  // namespace
}  // namespace paceline
