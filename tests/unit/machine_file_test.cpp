// The file that keeps measured figures: any contents, by any writer.
#include "machine/machine_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"
#include "folder.hpp"
#include "model/machine.hpp"
#include "skip.hpp"

namespace paceline {
namespace {

namespace fs = std::filesystem;

struct Folder : test::Folder {
  std::string file() const { return path + "/machine"; }
};

MeasuredMachine measured(int number) {
  MeasuredMachine m;
  m.layout = hex(std::uint64_t(number));
  m.hardware = hex(hash_of("hardware"));
  m.ranks = 9;
  m.nodes = 9;
  m.day = "2026-11-23";
  m.sample_s_per_byte = 4.125e-8;
  m.settings = settings_of(machine_from("alpha_us=130.7,gbit_per_s=0.2,contention_percent=33.3"));
  return m;
}

bool same(const MeasuredMachine& one, const MeasuredMachine& other) {
  return one.layout == other.layout && one.hardware == other.hardware &&
         one.ranks == other.ranks && one.nodes == other.nodes && one.day == other.day &&
         one.sample_s_per_byte == other.sample_s_per_byte && one.settings == other.settings;
}

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST_CASE("what is kept is found again, the newest first, in a folder that is made") {
  const Folder folder;
  const std::string deep = folder.path + "/.cache/paceline";
  CHECK(read_machine_file(deep).trouble == "");
  CHECK(read_machine_file(deep).machines.empty());
  for (int number : {1, 2, 3, 2}) CHECK(keep_machine(deep, measured(number)) == "");
  const MachineFile found = read_machine_file(deep);
  CHECK(found.trouble == "");
  CHECK(found.path == deep + "/machine");
  REQUIRE(found.machines.size() == 3);
  CHECK(same(found.machines[0], measured(2)));
  CHECK(same(found.machines[1], measured(3)));
  CHECK(same(found.machines[2], measured(1)));
  struct stat about;
  REQUIRE(stat(deep.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0700);
  REQUIRE(stat(found.path.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("no more than 32 are kept") {
  const Folder folder;
  for (int number = 0; number < 40; ++number) keep_machine(folder.path, measured(number));
  const MachineFile found = read_machine_file(folder.path);
  REQUIRE(found.machines.size() == 32);
  CHECK(same(found.machines.front(), measured(39)));
  CHECK(same(found.machines.back(), measured(8)));
}

TEST_CASE("a file that is cut or changed anywhere is damaged, and then replaced") {
  const Folder folder;
  for (int number : {1, 2}) REQUIRE(keep_machine(folder.path, measured(number)) == "");
  const std::string whole = read(folder.file());
  bool newer = false;
  REQUIRE(machines_from(whole, newer).size() == 2);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    CHECK_THROWS_AS(machines_from(whole.substr(0, at), newer), Error);
    for (const char other : {'\0', ' ', '\n', '7', char(whole[at] ^ 1)}) {
      std::string changed = whole;
      changed[at] = other;
      if (changed != whole) CHECK_THROWS_AS(machines_from(changed, newer), Error);
    }
  }
  write(folder.file(), whole.substr(0, whole.size() / 2));
  CHECK(read_machine_file(folder.path).trouble.find("is damaged") != std::string::npos);
  CHECK(read_machine_file(folder.path).machines.empty());
  CHECK(keep_machine(folder.path, measured(3)) == "");
  CHECK(read_machine_file(folder.path).machines.size() == 1);
}

// A file whose checksum is right, around these lines.
std::string sealed(const std::string& lines, const std::string& first = "paceline-machine 1\n") {
  return first + lines + "end " + hex(hash_of(first + lines)) + "\n";
}

TEST_CASE("lines that no start has written are refused, whatever the checksum says") {
  bool newer = false;
  const std::string good = line_of(measured(1));
  CHECK(machines_from(sealed(good + "\n"), newer).size() == 1);
  CHECK(machines_from(sealed(""), newer).empty());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    line.replace(line.find(from), from.size(), to);
    return sealed(line + "\n");
  };
  for (const std::string& wrong :
       {changed(" 9 9 ", " 9 10 "), changed(" 9 9 ", " 1 1 "), changed(" 9 9 ", " -9 9 "),
        changed(" 9 9 ", " 99999999999999999999 9 "), changed("2026-11-23", "2026-11-2\x1b"),
        changed("4.125e-08", "nan"), changed("4.125e-08", "1e400"), changed("4.125e-08", "-1"),
        changed("alpha_us=130.7", "alpha_us=nan"), changed("alpha_us=130.7", "beta=1"),
        changed("gbit_per_s=0.2", "gbit_per_s=0"), changed("alpha_us=130.7", "alpha_us=\x1b[2J"),
        changed("alpha_us", std::string(1000, 'a')), sealed("\n"), sealed("end\n"),
        sealed(good), sealed(good + "\n") + "more\n"})
    CHECK_THROWS_AS(machines_from(wrong, newer), Error);
  std::string many;
  for (int number = 0; number < 33; ++number) many += line_of(measured(number)) + "\n";
  CHECK_THROWS_AS(machines_from(sealed(many), newer), Error);
}

TEST_CASE("a newer Paceline's file is neither read nor written") {
  const Folder folder;
  const std::string text = sealed("whatever\n", "paceline-machine 2\n");
  write(folder.file(), text);
  const MachineFile found = read_machine_file(folder.path);
  CHECK(found.trouble.find("is of version 2; this Paceline knows 1") != std::string::npos);
  CHECK(!found.replaceable);
  CHECK(keep_machine(folder.path, measured(1)) == found.trouble);
  CHECK(read(folder.file()) == text);
}

TEST_CASE("what is no file of this user alone is neither read nor written") {
  const Folder folder, other;
  REQUIRE(keep_machine(other.path, measured(1)) == "");
  const auto refused = [&](const std::string& why) {
    const MachineFile found = read_machine_file(folder.path);
    CHECK(found.trouble.find(why) != std::string::npos);
    CHECK(found.machines.empty());
    CHECK(keep_machine(folder.path, measured(2)).find(why) != std::string::npos);
  };
  REQUIRE(symlink(other.file().c_str(), folder.file().c_str()) == 0);
  refused("is a symbolic link");
  REQUIRE(unlink(folder.file().c_str()) == 0);
  REQUIRE(mkfifo(folder.file().c_str(), 0600) == 0);   // open() of a pipe would wait
  refused("is no regular file");
  REQUIRE(unlink(folder.file().c_str()) == 0);
  write(folder.file(), read(other.file()));
  REQUIRE(chmod(folder.file().c_str(), 0620) == 0);
  refused("can be written by other users");
  REQUIRE(chmod(folder.file().c_str(), 0600) == 0);
  CHECK(read_machine_file(folder.path).machines.size() == 1);
  if (geteuid() == 0) {   // only root can give files away
    REQUIRE(chown(folder.file().c_str(), 12345, 0) == 0);
    refused("belongs to user 12345, not to 0");
  } else {
    test::skip("only root can give a file to another user");
  }
  CHECK(read_machine_file(other.path).machines.size() == 1);
  CHECK(std::distance(fs::directory_iterator(other.path), fs::directory_iterator()) == 1);
}

TEST_CASE("a file that is too long is not read") {
  const Folder folder;
  write(folder.file(), std::string((64 << 10) + 1, 'a'));
  CHECK(read_machine_file(folder.path).trouble.find("longer than 64 KiB") != std::string::npos);
}

TEST_CASE("a folder that cannot be written is named") {
  const Folder folder;
  CHECK(keep_machine("/proc/paceline", measured(1)).find("/proc/paceline ") == 0);
  CHECK(read_machine_file("/proc/paceline").trouble == "");
  write(folder.file(), "");
  CHECK(keep_machine(folder.file() + "/below", measured(1)).find("Not a directory") !=
        std::string::npos);
  CHECK(read_machine_file("").trouble.find("PACELINE_MACHINE_DIR") != std::string::npos);
  CHECK(keep_machine("", measured(1)) == read_machine_file("").trouble);
}

TEST_CASE("jobs that write at the same time leave one of their files, whole, and nothing else") {
  constexpr int kJobs = 4, kTimes = 60;
  const Folder folder;
  REQUIRE(keep_machine(folder.path, measured(999)) == "");
  std::vector<pid_t> jobs;
  for (int job = 0; job < kJobs; ++job) {
    const pid_t child = fork();
    if (child == 0) {
      int failed = 0;
      for (int time = 0; time < kTimes; ++time)
        failed += keep_machine(folder.path, measured(job)) != "";
      _exit(failed);
    }
    jobs.push_back(child);
  }
  int whole = 0;
  for (std::size_t gone = 0; gone < jobs.size();) {
    const MachineFile found = read_machine_file(folder.path);
    CHECK(found.trouble == "");
    CHECK(!found.machines.empty());
    ++whole;
    int status = 0;
    if (waitpid(jobs[gone], &status, WNOHANG) == 0) continue;
    CHECK(status == 0);
    ++gone;
  }
  CHECK(whole > 0);
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

struct Variable {
  Variable(const char* name_, const char* value) : name(name_) {
    if (const char* was = getenv(name)) before = was;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before.empty() ? unsetenv(name) : setenv(name, before.c_str(), 1); }
  Variable(const Variable&) = delete;
  const char* name;
  std::string before;
};

TEST_CASE("where the file is") {
  const Variable home("HOME", "/home/ada"), cache("XDG_CACHE_HOME", nullptr);
  CHECK(machine_folder() == "/home/ada/.cache/paceline");
  {
    const Variable set("XDG_CACHE_HOME", "/scratch/ada");
    CHECK(machine_folder() == "/scratch/ada/paceline");
    const Variable asked("PACELINE_MACHINE_DIR", "/etc/paceline");
    CHECK(machine_folder() == "/etc/paceline");
  }
  const Variable relative("XDG_CACHE_HOME", "cache");   // as its standard has it
  CHECK(machine_folder() == "/home/ada/.cache/paceline");
  const Variable none("HOME", nullptr);
  CHECK(machine_folder() == "");
}

// HOME=/nonexistent is what services have; root could make it.
TEST_CASE("a home that is not there is not made") {
  const Folder above;
  const std::string ada = above.path + "/ada";
  const Variable home("HOME", ada.c_str()), cache("XDG_CACHE_HOME", nullptr);
  CHECK(keep_machine(machine_folder(), measured(1)).find("cannot be opened: No such file") !=
        std::string::npos);
  CHECK(!fs::exists(ada));
  fs::create_directory(ada);
  CHECK(keep_machine(machine_folder(), measured(1)) == "");
  CHECK(fs::exists(ada + "/.cache/paceline/machine"));
}

}  // namespace
}  // namespace paceline
