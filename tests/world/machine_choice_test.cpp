// A first start measures the machine and keeps it; later starts read the file. Ranks are threads.
#include "machine/machine_choice.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/str.hpp"
#include "bootstrap/open_world.hpp"
#include "folder.hpp"
#include "loop/loop.hpp"

namespace paceline {
namespace {

namespace fs = std::filesystem;

struct Folder : test::Folder {
  std::string machines() const { return path + "/kept"; }
};

struct Job {
  std::vector<int> nodes;
  std::string folder;
  std::vector<std::string> mpi;   // what each rank's says about itself
  std::string machine = "auto";
};

Job job_of(const std::vector<int>& nodes, const std::string& folder) {
  return {nodes, folder, std::vector<std::string>(nodes.size(), "MPI 1")};
}

// Runs one world in this process; returns the machine that all its ranks assume, else "unlike".
std::string world(const Job& job) {
  const int p = int(job.nodes.size());
  const auto config_of = [&](int rank) {
    WorldConfig config;
    config.rank = rank;
    config.ranks = p;
    config.progress = Progress::caller;
    config.nodes = job.nodes;
    config.machine = job.machine;
    config.machine_dir = job.folder;
    return config;
  };
  std::vector<std::string> notes;
  for (int r = 0; r < p; ++r)
    notes.push_back(machine_note(config_of(r), job.mpi[std::size_t(r)]));
  LoopNet net(p, {.seed = 7});
  std::vector<std::string> said(job.nodes.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < p; ++r)
    threads.emplace_back([&, r] {
      WorldConfig config = config_of(r);
      config.known = agree_on_machine(notes, config);
      Communicator joined = join_transport(net.endpoint(r), config);
      said[std::size_t(r)] =
          str(settings_of(joined.assumed().machine), " ", describe(joined.assumed()));
    });
  for (std::thread& thread : threads) thread.join();
  return std::set(said.begin(), said.end()).size() == 1 ? said[0] : "unlike";
}

struct Outcome {
  std::string machine, said;   // what all ranks reckon with; what came on stderr
};

std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs `worlds` worlds in a new process that has measured nothing; returns the last one's outcome.
Outcome start(const Job& job, int worlds = 1) {
  const Folder apart;
  const std::string out = apart.path + "/out", err = apart.path + "/err";
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    std::string found;
    for (int i = 0; i < worlds; ++i) found = world(job);
    std::ofstream(out) << found;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  return {read(out), read(err)};
}

// Sets the samples of the file. A start's sample depends on the machine and the hour; 0: tests do
// not compare it.
void set_samples(const std::string& folder, double sample) {
  for (MeasuredMachine one : read_machine_file(folder).machines) {
    one.sample_s_per_byte = sample;
    REQUIRE(keep_machine(folder, one) == "");
  }
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t lines(const std::string& text) {
  return std::size_t(std::count(text.begin(), text.end(), '\n'));
}

TEST_CASE("a first start measures, says so once and keeps it; later ones choose by that") {
  const Folder folder;
  const Job job = job_of({0, 1, 2, 2}, folder.machines());
  const Outcome first = start(job);
  CHECK(lines(first.said) == 1);
  CHECK(has(first.said, "measured the links between 3 nodes in "));
  CHECK(has(first.said, "since there are no figures in " + job.folder + "/machine yet"));
  CHECK(has(first.said, "kept for later starts in " + job.folder + "/machine"));
  CHECK(has(first.machine, "probed: alpha"));
  CHECK(has(first.machine, "between 3 nodes, kept in " + job.folder + "/machine"));
  const std::vector<MeasuredMachine> kept = read_machine_file(job.folder).machines;
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].sample_s_per_byte > 0);
  CHECK(kept[0].ranks == 4);
  CHECK(kept[0].nodes == 3);
  set_samples(job.folder, 0);
  const std::string file = read(job.folder + "/machine");
  for (int again = 0; again < 3; ++again) {
    const Outcome later = start(job);
    CHECK(later.machine == first.machine);
    CHECK(later.said == "");
  }
  CHECK(read(job.folder + "/machine") == file);
}

TEST_CASE("another MPI on any rank, or another layout, is another fingerprint") {
  const Folder folder;
  const Job job = job_of({0, 1, 1}, folder.machines());
  start(job);
  std::vector<Job> others(5, job);
  others[0].nodes = {0, 0, 1};
  others[1].mpi = {"MPI 1", "MPI 1", "MPI 2"};
  others[2].mpi = {"MPI 1", "MPI 2", "MPI 1"};
  others[3].mpi = {"MPI 2", "MPI 1", "MPI 1"};
  others[4].nodes = {0, 1, 0};
  std::size_t kept = 1;
  for (const Job& other : others) {
    const Outcome found = start(other);
    CHECK(lines(found.said) == 1);
    CHECK(has(found.said, "has no figures for these processors, network, MPI and layout"));
    CHECK(has(found.machine, "probed: "));
    CHECK(read_machine_file(job.folder).machines.size() == ++kept);
  }
  set_samples(job.folder, 0);
  CHECK(start(job).said == "");
  for (const Job& known : others) CHECK(start(known).said == "");
}

TEST_CASE("a sample that disagrees measures again, in either direction") {
  const Folder folder;
  const Job job = job_of({0, 1, 2}, folder.machines());
  start(job);
  for (const double sample : {0.5, 1e-30}) {
    set_samples(job.folder, sample);
    const Outcome found = start(job);
    CHECK(lines(found.said) == 1);
    CHECK(has(found.said, "a sample disagrees with the figures of 20"));
    const std::vector<MeasuredMachine> kept = read_machine_file(job.folder).machines;
    REQUIRE(kept.size() == 1);
    CHECK(kept[0].sample_s_per_byte != sample);
    CHECK(has(found.machine, settings_of(machine_from(kept[0].settings))));
  }
}

TEST_CASE("a latency that was measured at a busy moment is measured again") {
  const Folder folder;
  const Job job = job_of({0, 1, 2}, folder.machines());
  start(job);
  MeasuredMachine busy = read_machine_file(job.folder).machines.at(0);
  Machine machine = machine_from(busy.settings);
  const double alpha_s = machine.across.alpha_s *= 1000;
  busy.settings = settings_of(machine);
  REQUIRE(keep_machine(job.folder, busy) == "");
  const Outcome found = start(job);
  CHECK(has(found.said, "a sample disagrees with the figures of 20"));
  const std::vector<MeasuredMachine> kept = read_machine_file(job.folder).machines;
  REQUIRE(kept.size() == 1);
  CHECK(machine_from(kept[0].settings).across.alpha_s < alpha_s / 3);
}

TEST_CASE("a file that is damaged is measured anew, one that is newer is left alone") {
  const Folder folder;
  const Job job = job_of({0, 1}, folder.machines());
  start(job);
  const std::string path = job.folder + "/machine", whole = read(path);
  std::ofstream(path) << whole.substr(0, whole.size() - 3);
  const Outcome damaged = start(job);
  CHECK(has(damaged.said, path + " is damaged"));
  CHECK(has(damaged.machine, "probed: "));
  CHECK(read_machine_file(job.folder).machines.size() == 1);
  std::ofstream(path) << "paceline-machine 7\n";
  const Outcome newer = start(job);
  CHECK(lines(newer.said) == 1);
  CHECK(has(newer.said, "not kept: " + path + " is of version 7"));
  CHECK(has(newer.machine, "probed: "));
  CHECK(read(path) == "paceline-machine 7\n");
}

TEST_CASE("where nothing can be kept a process measures a layout once") {
  const Job job = job_of({0, 1, 2}, "/proc/paceline");
  const Outcome found = start(job, 3);
  CHECK(lines(found.said) == 1);
  CHECK(has(found.said, "not kept: /proc/paceline cannot be opened"));
  CHECK(has(found.machine, "probed: "));
}

TEST_CASE("who asks for usual, or shares a node with all, neither measures nor writes") {
  const Folder folder;
  Job job = job_of({0, 1, 2}, folder.machines());
  job.machine = "usual";
  const Outcome usual = start(job);
  CHECK(usual.said == "");
  CHECK(has(usual.machine, "(usual)"));
  job.machine = "auto";
  job.nodes = {0, 0, 0};
  CHECK(start(job).said == "");
  CHECK(!fs::exists(job.folder));
}

}  // namespace
}  // namespace paceline
