// Files through which ranks meet, and flight records: links are not followed, other users' files
// are not trusted, and a full disk is noticed.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/error.hpp"
#include "expect_fault.hpp"
#include "folder.hpp"
#include "runtime/diagnostics/record.hpp"
#include "skip.hpp"
#include "transport/store.hpp"

using namespace paceline;
namespace fs = std::filesystem;
using test::expect_fault;
using std::chrono::milliseconds;

namespace {

struct Folder : test::Folder {
  fs::path operator/(const std::string& file) const { return fs::path(path) / file; }
  std::size_t files() const {
    return std::size_t(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

// Limits the size of this process's files, as a full disk would.
struct FullDisk {
  explicit FullDisk(rlim_t bytes) {
    before = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit low{bytes, limit.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
  }
  rlimit limit{};
  void (*before)(int);
};

FlightRecord record() { return {1, 2, "a reason", {}}; }

}  // namespace

TEST_CASE("store: a file is made anew, and no link is followed") {
  const Folder folder;
  FileStore store(folder.path);
  write(folder / "victim", "whole");
  // A name that a value might have while it is written.
  fs::create_symlink(folder / "victim", folder / str("a+b.", getpid(), "~"));
  store.set("a/b", "value");
  CHECK(read(folder / "victim") == "whole");
  CHECK(store.get("a/b", milliseconds(100)) == "value");
  struct stat found{};
  REQUIRE(stat((folder / "a+b").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  store.set("a/b", "other");
  CHECK(store.get("a/b", milliseconds(100)) == "other");

  fs::create_symlink(folder / "victim", folder / "link");
  CHECK(expect_fault(Fault::refusal, {"start-up: '", "link'", "is a link"},
                     [&] { store.get("link", milliseconds(100)); }) == "");
  CHECK(expect_fault(Fault::resource, {"link'", "cannot be written", "is a link"},
                     [&] { store.set("link", "value"); }) == "");
  CHECK(read(folder / "victim") == "whole");
  fs::create_directory(folder / "folder");
  CHECK(expect_fault(Fault::refusal, {"folder'", "is no regular file"},
                     [&] { store.get("folder", milliseconds(100)); }) == "");
}

TEST_CASE("store: a pipe keeps nobody waiting") {
  const Folder folder;
  FileStore store(folder.path);
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(expect_fault(Fault::refusal, {"pipe'", "is no regular file"},
                     [&] { store.get("pipe", milliseconds(100)); }) == "");
}

TEST_CASE("store: a file of another user is not believed") {
  if (geteuid() != 0) return test::skip("only root can be two users");
  const Folder folder;
  FileStore store(folder.path);
  store.set("key", "value");
  REQUIRE(chown((folder / "key").c_str(), 65534, 65534) == 0);
  CHECK(expect_fault(Fault::refusal, {"key'", "belongs to user 65534"},
                     [&] { store.get("key", milliseconds(100)); }) == "");
  // The folder's owner can replace its files anyway.
  REQUIRE(chown(folder.path.c_str(), 65534, 65534) == 0);
  CHECK(store.get("key", milliseconds(100)) == "value");
}

TEST_CASE("store: a disk that is full is an error, and nothing half written is found") {
  const Folder folder;
  FileStore store(folder.path);
  {
    const FullDisk full(10);
    CHECK(expect_fault(Fault::resource, {"key'", "cannot be written", "File too large"},
                       [&] { store.set("key", std::string(100, 'x')); }) == "");
  }
  CHECK(folder.files() == 0);
  CHECK(expect_fault(Fault::timeout, {"'key'"},
                     [&] { store.get("key", milliseconds(20)); }) == "");
}

TEST_CASE("record: no link is followed, and a full disk is no record") {
  const Folder folder;
  write(folder / "victim", "whole");
  for (const char* name : {"rank-1.json", "rank-1.txt"})
    fs::create_symlink(folder / "victim", folder / str(name, ".", getpid()));
  CHECK(write_record(record(), folder.path));
  CHECK(read(folder / "victim") == "whole");
  CHECK(fs::is_regular_file(fs::symlink_status(folder / "rank-1.json")));
  CHECK(read(folder / "rank-1.json").ends_with("}\n"));

  const Folder small;
  {
    const FullDisk full(10);
    CHECK(!write_record(record(), small.path));
  }
  CHECK(small.files() == 0);
}

TEST_CASE("record: another user's file is not replaced") {
  if (geteuid() != 0) return test::skip("only root can be two users");
  const Folder folder;
  write(folder / "rank-1.json", "theirs");
  REQUIRE(chown((folder / "rank-1.json").c_str(), 65534, 65534) == 0);
  CHECK(!write_record(record(), folder.path));
  CHECK(read(folder / "rank-1.json") == "theirs");
}
