// The environment's options become the world's configuration.
#include <doctest/doctest.h>

#include <cstdlib>

#include "base/error.hpp"
#include "bootstrap/options_config.hpp"

namespace paceline {
namespace {

// Sets a variable for the length of a test.
struct Variable {
  Variable(const char* name_, const char* value) : name(name_) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
  Variable(const Variable&) = delete;
  const char* name;
};

TEST_CASE("without variables the options agree with what a world is by itself") {
  const WorldConfig mine, theirs = config_from_options();
  CHECK(theirs.rank == mine.rank);
  CHECK(theirs.ranks == mine.ranks);
  CHECK(theirs.name == mine.name);
  CHECK(theirs.timeout_ms == mine.timeout_ms);
  CHECK(theirs.start_timeout_ms == mine.start_timeout_ms);
  CHECK(theirs.warn_ms == mine.warn_ms);
  CHECK(theirs.stopped_ms == mine.stopped_ms);
  CHECK(theirs.progress == mine.progress);
  CHECK(theirs.algorithms == mine.algorithms);
  CHECK(theirs.cut == mine.cut);
  CHECK(theirs.shm_dir == mine.shm_dir);
  CHECK(theirs.shm_bytes == mine.shm_bytes);
  CHECK(theirs.huge_pages == mine.huge_pages);
  CHECK(theirs.single_copy == mine.single_copy);
  CHECK(theirs.machine == "auto");   // front ends ask the network; a world by itself does not
  CHECK(mine.machine == "usual");
  CHECK(theirs.numbers == mine.numbers);
}

TEST_CASE("every variable arrives where it belongs") {
  const Variable all[] = {
      {"PACELINE_TIMEOUT_MS", "11"},      {"PACELINE_START_TIMEOUT_MS", "12"},
      {"PACELINE_WARN_MS", "13"},         {"PACELINE_PROGRESS", "caller"},
      {"PACELINE_SHM_DIR", "/some/where"}, {"PACELINE_SHM_BYTES", "5MiB"},
      {"PACELINE_HUGE_PAGES", "on"},
      {"PACELINE_SINGLE_COPY", "off"},         {"PACELINE_STOPPED_MS", "16"},
      {"PACELINE_MACHINE", "lab-200mbit"}, {"PACELINE_NUMBERS", "canonical"},
      {"PACELINE_ALGORITHM", "allreduce=ring,scatter=linear"},
      {"PACELINE_SEGMENTS", "14"},        {"PACELINE_WINDOW", "15"}};
  const WorldConfig config = config_from_options();
  CHECK(config.timeout_ms == 11);
  CHECK(config.start_timeout_ms == 12);
  CHECK(config.warn_ms == 13);
  CHECK(config.stopped_ms == 16);
  CHECK(config.progress == Progress::caller);
  CHECK(config.shm_dir == "/some/where");
  CHECK(config.shm_bytes == 5u << 20);
  CHECK(config.huge_pages);
  CHECK(config.machine == "lab-200mbit");
  CHECK(config.numbers == Numbers::canonical);
  CHECK(config.single_copy == "off");
  CHECK(config.algorithms[static_cast<std::size_t>(Collective::allreduce)] == "ring");
  CHECK(config.algorithms[static_cast<std::size_t>(Collective::scatter)] == "linear");
  CHECK(config.algorithms[static_cast<std::size_t>(Collective::reduce)].empty());
  CHECK(config.cut == Cut{.segments = 14, .window = 15});
}

TEST_CASE("a wrong value is named") {
  const Variable wrong("PACELINE_WARN_MS", "soon");
  CHECK_THROWS_WITH_AS(config_from_options(), doctest::Contains("PACELINE_WARN_MS"), Error);
}

TEST_CASE("a machine that nobody knows is named") {
  const Variable wrong("PACELINE_MACHINE", "lab-200mbits");
  CHECK_THROWS_WITH_AS(config_from_options(), doctest::Contains("PACELINE_MACHINE: machine 'lab-"),
                       Error);
}

}  // namespace
}  // namespace paceline
