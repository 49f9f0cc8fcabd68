// Windows into a process's memory, here the test's own: what is copied through them, which are kept
// and what happens where a page has gone. Run beside the library in tests/fakes/.
#include "transport/shm/xpmem.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <vector>

#include "fakes/xpmem.hpp"
#include "transport/shm/guarded_copy.hpp"

using namespace paceline;
using test::fake_windows;
using test::fake_windows_made;
using test::FileMemory;

namespace {

constexpr std::size_t kWindow = 16u << 20;

bool has_fake() {
  const bool has = fake_windows() >= 0;
  CHECK_MESSAGE(has, "run by ctest, which sets LD_LIBRARY_PATH");
  return has;
}

std::uint64_t address_of(const std::byte* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

std::byte filling(std::size_t i) { return std::byte(i * 7 + i / 4096 + i / kWindow); }

int read(Xpmem& xpmem, const std::byte* there, std::byte* here, std::size_t bytes) {
  return xpmem.copy(getpid(), {0, false, address_of(there), here, bytes});
}

}  // namespace

TEST_CASE("xpmem: reads and writes, across windows, which are made once") {
  if (!has_fake()) return;
  constexpr std::size_t kBytes = 2 * kWindow + 12345;
  FileMemory peer(kBytes + 100);
  std::vector<std::byte> own(kBytes), back(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) own[i] = filling(i);
  Xpmem xpmem(true);
  CHECK(xpmem.segment() == getpid());
  CHECK(xpmem.copy(getpid(), {0, true, address_of(peer.data()) + 50, own.data(), kBytes}) == 0);
  CHECK(peer.data()[49] == std::byte{0});
  CHECK(std::equal(own.begin(), own.end(), peer.data() + 50));
  CHECK(peer.data()[50 + kBytes] == std::byte{0});
  const int made = fake_windows_made();
  CHECK(read(xpmem, peer.data() + 50, back.data(), kBytes) == 0);
  CHECK(back == own);
  CHECK(read(xpmem, peer.data() + 50, back.data(), 0) == 0);
  CHECK(fake_windows_made() == made);
}

TEST_CASE("xpmem: keeps 64 windows of a peer, the last ones, and in the end none") {
  if (!has_fake()) return;
  constexpr std::size_t kMany = 70;
  const int before = fake_windows();
  {
    FileMemory peer(kMany * kWindow);
    Xpmem xpmem(true);
    std::byte one{};
    for (std::size_t i = 0; i < kMany; ++i) {
      CHECK(read(xpmem, peer.data(), &one, 1) == 0);   // the oldest, were it not for this
      CHECK(read(xpmem, peer.data() + i * kWindow, &one, 1) == 0);
    }
    CHECK(fake_windows() == before + 64);
    const int made = fake_windows_made();
    CHECK(read(xpmem, peer.data(), &one, 1) == 0);
    CHECK(read(xpmem, peer.data() + (kMany - 1) * kWindow, &one, 1) == 0);
    CHECK(fake_windows_made() == made);
    CHECK(read(xpmem, peer.data() + 2 * kWindow, &one, 1) == 0);
    CHECK(fake_windows_made() == made + 1);
  }
  CHECK(fake_windows() == before);
}

TEST_CASE("xpmem: a page that has gone is an error, and nothing worse") {
  if (!has_fake()) return;
  FileMemory peer(1u << 20);
  Xpmem xpmem(true);
  std::vector<std::byte> own(1u << 20);
  CHECK(read(xpmem, peer.data(), own.data(), own.size()) == 0);
  REQUIRE(peer.lose());
  CHECK(read(xpmem, peer.data(), own.data(), own.size()) == EFAULT);
  CHECK(xpmem.copy(getpid(), {0, true, address_of(peer.data()), own.data(), 64}) == EFAULT);
  FileMemory other(1u << 20);
  CHECK(read(xpmem, other.data(), own.data(), own.size()) == 0);   // it goes on
}

TEST_CASE("xpmem: who is not wanted, or unknown") {
  if (!has_fake()) return;
  CHECK(Xpmem(false).segment() == 0);
  Xpmem xpmem(true);
  std::byte one{};
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  CHECK(xpmem.copy(child, {0, false, address_of(&one), &one, 1}) == ESRCH);
}

TEST_CASE("guarded copies: a missing page of somebody else goes to who was there before") {
  FileMemory lost(4096), whole(4096);
  REQUIRE(lost.lose());
  std::byte room[64] = {};
  const auto end_by = [&](void (*handler)(int)) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGBUS, handler);
      if (copy_guarded(room, lost.data(), 64) || !copy_guarded(room, whole.data(), 64)) _exit(1);
      room[0] = *static_cast<volatile std::byte*>(lost.data());   // no copy of ours
      _exit(2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  };
  CHECK(end_by([](int) { _exit(42); }) == 42);
  CHECK(end_by(SIG_DFL) == -SIGBUS);
}
