#include "runtime/start_card.hpp"

#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/processors.hpp"

namespace paceline {
namespace {

struct Card {
  int groups = 0;
  std::size_t shm_bytes = 0, stage_bytes = 0;
  Locality found;
  std::string numbers;
  std::string machine;   // last: it may have spaces in it
};

Card read(const std::string& text) {
  Card card;
  std::istringstream in(text);
  in >> card.groups >> card.shm_bytes >> card.stage_bytes >> card.found.numa >> card.found.cache >>
      card.numbers;
  std::getline(in >> std::ws, card.machine);
  return card;
}

// One value of an option, and which rank has it.
struct Said {
  std::size_t rank;
  std::string value;
};

void check_equal(const char* option, const char* variable, const char* whose, const Said& one,
                 const Said& other) {
  if (one.value != other.value)
    fail(Fault::usage, "start-up: option ", option, " differs between ranks (rank ", one.rank,
         ": ", one.value, ", rank ", other.rank, ": ", other.value, "); all ranks ", whose,
         "must have the same. ", variable, " sets it.");
}

std::string bytes(std::size_t value) {
  return str(human_bytes(static_cast<double>(value)), " (", value, ")");   // to the last of them
}

// Memory that ranks share is laid out by these.
void check_node(const Card& one, std::size_t rank, const Card& other, std::size_t other_rank) {
  const char* whose = "of a node ";
  check_equal("shm_bytes", "PACELINE_SHM_BYTES", whose, {rank, bytes(one.shm_bytes)},
              {other_rank, bytes(other.shm_bytes)});
  check_equal("stage_bytes", "PACELINE_STAGE_BYTES", whose, {rank, bytes(one.stage_bytes)},
              {other_rank, bytes(other.stage_bytes)});
}

}  // namespace

std::string start_card(const WorldConfig& config) {
  const Locality own = common_to(localities_of(allowed_processors()));
  return str(config.group_ranks, " ", config.shm_bytes, " ", config.stage_bytes, " ", own.numa,
             " ", own.cache, " ", config.canonical ? "canonical" : "stable", " ", config.machine);
}

std::vector<Locality> agree_on_start(const std::vector<std::string>& cards,
                                     const std::vector<int>& nodes) {
  std::vector<Card> said;
  for (const std::string& text : cards) said.push_back(read(text));
  std::vector<Locality> out;
  std::map<int, std::vector<std::size_t>> met;   // node -> its ranks so far
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    const int wanted = said[0].groups;
    check_equal("groups", "PACELINE_GROUPS", "", {0, str(wanted)},
                {rank, str(said[rank].groups)});
    check_equal("numbers", "PACELINE_NUMBERS", "", {0, said[0].numbers},
                {rank, said[rank].numbers});
    check_equal("machine", "PACELINE_MACHINE", "", {0, said[0].machine},
                {rank, said[rank].machine});
    std::vector<std::size_t>& here = met[nodes[rank]];
    if (!here.empty()) check_node(said[here[0]], here[0], said[rank], rank);
    Locality found = said[rank].found;
    if (wanted == 1) found = {};
    if (wanted > 1) found.numa = found.cache = static_cast<int>(here.size()) / wanted;
    here.push_back(rank);
    out.push_back(found);
  }
  return out;
}

}  // namespace paceline
