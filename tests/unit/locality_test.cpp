// Which ranks are near each other: read from a pretended system, agreed on, and made into groups.
#include "runtime/bootstrap/locality.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/processors.hpp"
#include "expect_fault.hpp"
#include "runtime/bootstrap/start_card.hpp"
#include "shapes/groups.hpp"

using namespace paceline;

namespace {

// What a system says of its processors, in a folder that goes with it.
class System {
 public:
  System() : folder_(std::filesystem::temp_directory_path() / str("locality-", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~System() { std::filesystem::remove_all(folder_); }
  System(const System&) = delete;

  void numa(int cpu, int node) const {
    std::filesystem::create_directories(folder_ / str("cpu", cpu) / str("node", node));
  }
  void cache(int cpu, int index, int level, const char* type, const char* sharers) const {
    const auto at = folder_ / str("cpu", cpu) / "cache" / str("index", index);
    std::filesystem::create_directories(at);
    std::ofstream(at / "level") << level << "\n";
    std::ofstream(at / "type") << type << "\n";
    std::ofstream(at / "shared_cpu_list") << sharers << "\n";
  }
  std::vector<Locality> read(const std::vector<int>& cpus) const {
    return localities_of(cpus, folder_.string());
  }

 private:
  std::filesystem::path folder_;
};

// Two NUMA nodes of four processors, which share a cache in pairs.
void two_nodes(const System& system) {
  const char* const pairs[] = {"0-1", "2,3", "4-5", "6-7"};
  for (int cpu = 0; cpu < 8; ++cpu) {
    system.numa(cpu, cpu / 4);
    system.cache(cpu, 0, 1, "Data", str(cpu).c_str());
    system.cache(cpu, 1, 1, "Instruction", str(cpu).c_str());
    system.cache(cpu, 3, 3, "Unified", pairs[cpu / 2]);
    system.cache(cpu, 4, 4, "Instruction", "0-7");   // holds no data
  }
}

using Cards = std::vector<std::string>;

}  // namespace

TEST_CASE("locality: nodes and last-level caches are read processor by processor") {
  const System system;
  two_nodes(system);
  CHECK(system.read({0, 3, 7}) == std::vector<Locality>{{0, 0}, {0, 2}, {1, 6}});
  CHECK(common_to(system.read({0, 1})) == Locality{0, 0});
  CHECK(common_to(system.read({0, 2})) == Locality{0, -1});    // bound to a node
  CHECK(common_to(system.read({0, 7})) == Locality{-1, -1});   // bound to nothing
  CHECK(system.read({99}) == std::vector<Locality>{{-1, -1}});
  CHECK(common_to({}) == Locality{-1, -1});
  system.numa(5, 0);   // of two nodes: nobody knows what that means
  CHECK(system.read({5})[0] == Locality{-1, 4});
}

TEST_CASE("locality: a rank may run somewhere, and some of it is known or nothing") {
  CHECK(!allowed_processors().empty());
  CHECK(localities_of(allowed_processors()).size() == allowed_processors().size());
  CHECK(agree_on_nodes({start_card({.numa_ranks = 1})}, {0}) == std::vector<Locality>{{}});
}

TEST_CASE("groups: by node before cache, and only equal ones of two ranks or more") {
  const auto why = [](const std::vector<Locality>& ranks) { return grouping_of(ranks).why; };
  const auto groups = [](const std::vector<Locality>& ranks) { return grouping_of(ranks).of_rank; };
  const std::vector<int> none;
  CHECK(groups({{1, 8}, {0, 0}, {1, 12}, {0, 4}}) == std::vector{0, 1, 0, 1});
  CHECK(why({{1, 8}, {0, 0}, {1, 12}, {0, 4}}) == "2 groups of 2 ranks that share a NUMA node");
  CHECK(groups({{0, 0}, {0, 0}, {0, 4}, {0, 4}}) == std::vector{0, 0, 1, 1});
  CHECK(groups({{-1, 0}, {0, 0}, {0, 4}, {0, 4}}) == std::vector{0, 0, 1, 1});
  CHECK(groups({{0, 0}, {0, 0}, {1, 4}}) == none);
  CHECK(why({{0, 0}, {0, 0}, {1, 4}}).find("from 1 to 2 ranks share a NUMA") != std::string::npos);
  CHECK(groups({{0, 0}, {1, 4}}) == none);
  CHECK(why({{0, 0}, {1, 4}}).find("no two ranks share") != std::string::npos);
  CHECK(groups({{0, 0}, {0, 0}}) == none);
  CHECK(why({{0, 0}, {0, -1}}) ==
        "no groups: all ranks share a NUMA node, rank 1 is bound to no last-level cache");
}

TEST_CASE("groups: a table, also of ranks that are no neighbours") {
  const Groups groups(6, {0, 1, 2, 0, 1, 2}), all(3, {});
  CHECK(groups.count() == 3);
  CHECK(groups.size() == 2);
  CHECK(groups.member(1, 1) == 4);
  CHECK(groups.index_of(4) == 1);
  CHECK(!groups.keep_order());
  CHECK(all.count() == 1);
  CHECK(all.size() == 3);
  CHECK(Groups(4, {0, 0, 1, 1}).keep_order());
}
