// Start cards of ranks: each line is compared with those of all others, and the outcome is equal on
// all ranks.
#include <doctest/doctest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "bootstrap/options_config.hpp"
#include "bootstrap/start_card.hpp"
#include "expect_fault.hpp"

using namespace paceline;
using test::expect_fault;

namespace {

using Cards = std::vector<std::string>;

// Returns the card with another value in the line `name`.
std::string with(std::string card, const std::string& name, const std::string& value) {
  const std::string old = str(name, " ", said_in(card, name), "\n");
  REQUIRE(card.find(old) != card.npos);
  return card.replace(card.find(old), old.size(), str(name, " ", value, "\n"));
}

std::vector<std::string> names_in(const std::string& card) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < card.size(); at = card.find('\n', at) + 1)
    names.push_back(card.substr(at, card.find(' ', at) - at));
  return names;
}

const std::set<std::string> kOfNode{"shm_bytes", "stage_bytes", "huge_pages"};
const std::set<std::string> kTold{"process"};

}  // namespace

TEST_CASE("start card: the first line is the version, and a card has each line once") {
  const std::string card = start_card({});
  CHECK(card.starts_with("paceline 0."));
  const auto names = names_in(card);
  CHECK(std::set(names.begin(), names.end()).size() == names.size());
  CHECK(names.at(1) == "layout");
  CHECK(names.at(2) == "ranks");
  CHECK(names.at(3) == "transport");
}

TEST_CASE("start card: every line that must be equal is, and the first one that is not is named") {
  const std::string card = start_card({});
  const auto names = names_in(card);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (kTold.contains(names[i])) continue;
    const std::string mine = said_in(card, names[i]);
    // Later differences are not reported.
    std::string other = with(card, names[i], "7");
    if (i > 0 && i + 1 < names.size() && !kOfNode.contains(names[i]))
      other = with(other, names[i + 1], "8");
    const std::string what = i == 0   ? "the version of Paceline"
                             : i == 1 ? "the layout of memory and messages"
                                      : "option " + names[i];
    const std::string what_all = str("start-up: ", what, " differs between ranks (rank ");
    const auto check = [&](const Cards& cards) {
      check_cards(cards);
      check_cards_of_nodes(cards, {0, 0, 0});
    };
    if (!kOfNode.contains(names[i]))
      CHECK(expect_fault(Fault::usage, {what_all, str("rank 0: ", mine, ", rank 2: 7")},
                         [&] { check({card, card, other}); }) == "");
    else
      CHECK(expect_fault(Fault::usage, {what_all, "rank 0: ", ", rank 2: ", "all ranks of a node"},
                         [&] { check({card, card, other}); }) == "");
    if (i > 1)
      CHECK(expect_fault(Fault::usage, {variable_of(find_option(names[i])) + " sets it."},
                         [&] { check({card, other, card}); }) == "");
  }
}

TEST_CASE("start card: values that trade places between lines are no equal cards") {
  const std::string one = with(with(start_card({}), "segments", "2"), "window", "3");
  const std::string two = with(with(start_card({}), "segments", "3"), "window", "2");
  CHECK(expect_fault(Fault::usage, {"option segments", "rank 0: 2, rank 1: 3"},
                     [&] { check_cards({one, two}); }) == "");
  WorldConfig ring, chain;
  ring.algorithms[std::size_t(Collective::allreduce)] = "ring";
  chain.algorithms[std::size_t(Collective::allgather)] = "ring";
  CHECK(expect_fault(Fault::usage,
                     {"option algorithm", "rank 0: allreduce=ring, rank 1: allgather=ring"},
                     [&] { check_cards({start_card(ring), start_card(chain)}); }) == "");
  // A line's name is a whole word, and text inside a value is no line.
  CHECK(said_in("segments_at 4\nsegments 5\n", "segments") == "5");
  CHECK(said_in("machine segments 4\nsegments 5\n", "segments") == "5");
  CHECK(said_in(start_card({.machine = "a\nnumbers canonical"}), "machine") ==
        "a numbers canonical");
}

TEST_CASE("start card: every option reaches it that must be equal, and no other") {
  const std::string card = start_card({});
  for (const OptionRow& row : option_rows()) {
    const bool must = row.sentence.find("qual on all") != row.sentence.npos;
    const auto names = names_in(card);
    const bool is = std::find(names.begin(), names.end(), row.name) != names.end();
    CHECK_MESSAGE(must == is, row.name);
  }
  const std::pair<const char*, const char*> set[] = {
      {"transport", "mpi"},  {"numbers", "canonical"}, {"algorithm", "allreduce=ring"},
      {"segments", "3"},     {"window", "2"},
      {"machine", "1e-6,1e-9,1e-10"}, {"shm_bytes", "2097152"}, {"stage_bytes", "3145728"},
      {"huge_pages", "on"},  {"segments", "4096B"}};
  for (const auto& [name, value] : set) {
    const std::string variable = variable_of(find_option(name));
    setenv(variable.c_str(), value, 1);
    CHECK(said_in(start_card(config_from_options()), name) == value);
    unsetenv(variable.c_str());
  }
}

TEST_CASE("start card: what is no card is said to be none") {
  const std::string card = start_card({});
  for (const std::string& other : Cards{"", "\n", "paceline", "PACELINE 0.1.0\n", "2 8 9 0 0",
                                        std::string(1u << 16, 'x')}) {
    CHECK(expect_fault(Fault::usage, {"rank 1 begins with", "which no rank of Paceline does"},
                       [&] { check_cards({card, other}); }) == "");
  }
  // Another version may have different lines.
  CHECK(expect_fault(Fault::usage, {"version of Paceline differs", "rank 1: 17.3"},
                     [&] { check_cards({card, "paceline 17.3\nwho knows"}); }) == "");
}

TEST_CASE("options that shared memory is laid out by are equal on all ranks of a node") {
  const std::string mib8 = start_card({.stage_bytes = 8u << 20});
  const std::string mib4 = start_card({.stage_bytes = 4u << 20});
  const Cards cards{mib8, mib4, mib8, mib4};
  check_cards(cards);
  check_cards_of_nodes(cards, {0, 1, 0, 1});
  CHECK(expect_fault(Fault::usage,
                     {"stage_bytes", "rank 1: 4 MiB", "rank 2: 8 MiB", "PACELINE_STAGE_BYTES"},
                     [&] { check_cards_of_nodes(cards, {0, 1, 1, 0}); }) == "");
  const Cards close{start_card({.shm_bytes = 1024}), start_card({.shm_bytes = 1025})};
  CHECK(expect_fault(Fault::usage, {"shm_bytes", "0: 1 KiB (1024)", "1: 1 KiB (1025)"},
                     [&] { check_cards_of_nodes(close, {0, 0}); }) == "");
}
