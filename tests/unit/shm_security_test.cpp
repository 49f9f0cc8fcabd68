// Protection of the memory that a node's ranks share from other users and from other memory.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <sstream>

#include "base/error.hpp"
#include "expect_fault.hpp"
#include "skip.hpp"
#include "transport/bootstrap.hpp"
#include "transport/shm/inbox.hpp"
#include "transport/shm/segment.hpp"

namespace paceline {
namespace {

// Rank 0, and other ranks whose cards are its own, changed or not.
class Mirrors : public Bootstrap {
 public:
  using Change = std::string (*)(const std::string&);
  Mirrors(int ranks, Change change) : ranks_(ranks), change_(change) {}
  int rank() const override { return 0; }
  int ranks() const override { return ranks_; }
  std::vector<std::string> allgather(const std::string& mine) override {
    said.push_back(mine);
    std::vector<std::string> all(std::size_t(ranks_), change_(mine));
    all[0] = mine;
    return all;
  }

  std::vector<std::string> said;

 private:
  int ranks_;
  Change change_;
};

std::string as_it_is(const std::string& card) { return card; }

// The same memory under another number.
std::string of_another(const std::string& card) {
  if (!card.starts_with("ok ")) return card;
  std::istringstream words(card.substr(3));
  std::string first, second, rest;
  words >> first >> second;
  std::getline(words, rest);
  return str("ok ", second, " ", first, rest);
}

// Memory with a number that the writer of a card knows, too.
struct Victim {
  std::uint64_t nonce = 7, answer = 0;
} victim;

// Returns the card with the victim's address in it.
std::string of_victim(const std::string& card) {
  if (!card.starts_with("ok ")) return card;
  std::istringstream words(card);
  std::string out, word;
  for (int i = 0; i < 9 && words >> word; ++i) out += str(i > 0 ? " " : "", word);
  return str(out, " auto:", reinterpret_cast<std::uintptr_t>(&victim), ":7:0:0");
}

ShmConfig config() {
  ShmConfig c;
  c.bytes = 1u << 20;
  return c;
}

TEST_CASE("memory counts as a rank's only if it holds the number that the rank has told") {
  Mirrors right(2, as_it_is), wrong(2, of_another);
  const Inboxes reached(right, config());
  CHECK(test::expect_fault(Fault::resource, {"the memory found is another's"},
                           [&] { const Inboxes boxes(wrong, config()); }) == "");
}

TEST_CASE("the numbers are others at every start") {
  std::set<std::string> numbers;
  for (int start = 0; start < 20; ++start) {
    Mirrors alone(1, as_it_is);
    const Inboxes boxes(alone, config());
    std::istringstream words(alone.said.at(0));
    std::string state, first, second;
    words >> state >> first >> second;
    numbers.insert(first);
    numbers.insert(second);
  }
  CHECK(numbers.size() == 40);
}

TEST_CASE("whatever the umask, no other user may open it") {
  const mode_t before = umask(0);
  const SharedFile files[] = {SharedFile::create("/dev/shm", 4096),
                              SharedFile::create_anonymous(4096)};
  umask(before);
  for (const SharedFile& file : files) {
    struct stat found{};
    REQUIRE(fstat(file.descriptor(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
    CHECK(found.st_uid == geteuid());
    CHECK(found.st_nlink == 0);
  }
}

TEST_CASE("nothing is written where a card says, only to memory that was found and proven") {
  Mirrors mirror(2, of_victim);
  const Inboxes boxes(mirror, config());
  CHECK(victim.answer == 0);
}

TEST_CASE("an address is of a process's descriptor, and of nothing else") {
  const SharedFile own = SharedFile::create("/dev/shm", 4096);
  const std::string pid = str(getpid()), descriptor = str(own.descriptor());
  CHECK(SharedFile::attach(pid + " " + descriptor, 4096).bytes() == 4096);
  for (const std::string& address :
       {std::string(), pid, pid + " ", pid + "  " + descriptor, "self " + descriptor,
        "self/task/" + pid + " " + descriptor, pid + " ./" + descriptor,
        pid + " " + descriptor + "/", pid + " " + descriptor + " ",
        pid + " +" + descriptor, pid + " -1"})
    CHECK_MESSAGE(test::expect_fault(Fault::refusal, {"is no address of a rank's memory"},
                                     [&] { SharedFile::attach(address, 4096); }) == "",
                  address);
}

TEST_CASE("a file with a name, or that others may open, is no rank's memory") {
  char path[] = "/dev/shm/paceline-test-XXXXXX";
  const int named = mkstemp(path);
  REQUIRE(named >= 0);
  REQUIRE(ftruncate(named, 4096) == 0);
  const std::string refused = "is not the shared memory of a rank of this job";
  const auto attach = [](int file) { SharedFile::attach(str(getpid(), " ", file), 4096); };
  CHECK(test::expect_fault(Fault::refusal, {refused}, [&] { attach(named); }) == "");
  unlink(path);
  close(named);
  const SharedFile open_to_all = SharedFile::create("/dev/shm", 4096);
  REQUIRE(fchmod(open_to_all.descriptor(), 0666) == 0);
  CHECK(test::expect_fault(Fault::refusal, {refused},
                           [&] { attach(open_to_all.descriptor()); }) == "");
}

// A process of another user that has made such memory, and waits.
struct Stranger {
  Stranger() {
    REQUIRE(pipe(ends) == 0);
    if (id = fork(); id == 0) {
      if (setresuid(65534, 65534, 65534) != 0) _exit(1);
      prctl(PR_SET_DUMPABLE, 1);   // else its files in /proc count as root's
      const SharedFile file = SharedFile::create("/dev/shm", 4096);
      const std::string address = file.address() + "\n";
      if (write(ends[1], address.data(), address.size()) < 0) _exit(1);
      while (true) pause();
    }
    char text[64] = {};
    if (read(ends[0], text, sizeof text - 1) > 0) address = text;
    if (!address.empty()) address.pop_back();
  }
  ~Stranger() {
    kill(id, SIGKILL);
    waitpid(id, nullptr, 0);
    for (const int end : ends) close(end);
  }
  Stranger(const Stranger&) = delete;
  pid_t id;
  int ends[2];
  std::string address;
};

TEST_CASE("who may open all files does not take another user's memory for a rank's") {
  if (geteuid() != 0) return test::skip("only root can be two users");
  const Stranger stranger;
  REQUIRE(!stranger.address.empty());
  const std::string path = str("/proc/", stranger.id, "/fd/",
                               stranger.address.substr(stranger.address.find(' ') + 1));
  REQUIRE(access(path.c_str(), R_OK | W_OK) == 0);   // so that only the owner can be the reason
  CHECK(test::expect_fault(Fault::refusal, {"is not the shared memory of a rank of this job"},
                           [&] { SharedFile::attach(stranger.address, 4096); }) == "");
}

}  // namespace
}  // namespace paceline
