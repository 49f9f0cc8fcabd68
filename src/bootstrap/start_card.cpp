#include "bootstrap/start_card.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/options.hpp"
#include "transport/mpi/wire.hpp"
#include "transport/process.hpp"
#include "transport/shm/inbox.hpp"

namespace paceline {
namespace {

// Version of the meaning of shared and sent bytes. A change that keeps their layout but not their
// meaning must raise it.
constexpr int kMeaning = 4;

// The ranks on which a value must be equal: all ranks, those of a node, or none.
enum class Equal { all, node, none };

// A line of the card. An option's line has the option's name.
struct Row {
  std::string_view name;
  Equal equal;
  std::string (*value)(const WorldConfig&);
};

constexpr std::string_view kVersion = "paceline", kLayout = "layout", kProcess = "process";

std::string layout(const WorldConfig&) {
  return str(kMeaning, ".", sizeof(InboxHeader), ".", sizeof(SlabEntry), ".", sizeof(Drained),
             ".", RingShape::kMostCells, ".", StagingBuffer::kHead, ".", sizeof(mpi::Header),
             ".", kCollectives, ".", kTypes, ".", kOps);
}

std::string algorithms(const WorldConfig& s) {
  std::string all;
  for (int i = 0; i < kCollectives; ++i)
    if (const std::string& name = s.algorithms[std::size_t(i)]; !name.empty())
      all += str(all.empty() ? "" : ",", name_of(Collective(i)), "=", name);
  return all;
}

std::string transport(const WorldConfig& s) {
  return s.only_mpi ? "mpi" : s.only_shm ? "shm" : "auto";
}

std::string segments(const WorldConfig& s) {
  return s.cut.segment_bytes ? str(s.cut.segment_bytes, "B") : str(s.cut.segments);
}

std::string numbers(const WorldConfig& s) { return std::string(name_of(s.numbers)); }
std::string huge_pages(const WorldConfig& s) { return s.huge_pages ? "on" : "off"; }

// The first row that differs is reported, so the most telling ones come first.
constexpr Row kRows[] = {
    {kVersion, Equal::all, [](const WorldConfig&) { return std::string(PACELINE_VERSION); }},
    {kLayout, Equal::all, layout},
    {"ranks", Equal::all, [](const WorldConfig& s) { return str(s.ranks); }},
    {"transport", Equal::all, transport},
    {"numbers", Equal::all, numbers},
    {"algorithm", Equal::all, algorithms},
    {"segments", Equal::all, segments},
    {"window", Equal::all, [](const WorldConfig& s) { return str(s.cut.window); }},
    {"predict", Equal::all, [](const WorldConfig& s) { return s.arrival; }},
    {"machine", Equal::all, [](const WorldConfig& s) { return s.machine; }},
    {"shm_bytes", Equal::node, [](const WorldConfig& s) { return str(s.shm_bytes); }},
    {"stage_bytes", Equal::node, [](const WorldConfig& s) { return str(s.stage_bytes); }},
    {"huge_pages", Equal::node, huge_pages},
    {kProcess, Equal::none, [](const WorldConfig&) { return own_process(); }},
};

// Returns a value for errors: sizes to the last byte, and long values cut, since the card may be
// another program's.
std::string shown(std::string_view name, const std::string& value) {
  constexpr std::size_t kShown = 120;
  if (const auto size = parse_bytes(value); name.ends_with("_bytes") && size)
    return str(human_bytes(static_cast<double>(*size)), " (", value, ")");
  if (value.size() <= kShown) return value;
  return value.substr(0, kShown).append("...");
}

[[noreturn]] void fail_different(const Row& row, const std::vector<std::string>& cards,
                                 std::size_t one, std::size_t other) {
  const auto said = [&](std::size_t rank) {
    return shown(row.name, said_in(cards[rank], row.name));
  };
  const std::string what = str(" differs between ranks (rank ", one, ": ", said(one), ", rank ",
                               other, ": ", said(other), "); ");
  if (row.name == kVersion)
    fail(Fault::usage, "start-up: the version of Paceline", what,
         "all ranks must run the same one. Install it on every node.");
  if (row.name == kLayout)
    fail(Fault::usage, "start-up: the layout of memory and messages", what,
         "all ranks must run the same build of Paceline, not only the same version.");
  fail(Fault::usage, "start-up: option ", row.name, what, "all ranks ",
       row.equal == Equal::node ? "of a node " : "", "must have the same. ",
       variable_of(find_option(row.name)), " sets it.");
}

// Tells the meeting the processes of ranks on this machine. A rank that waits for one of them then
// sees if it has died.
void know_processes(Bootstrap& meeting, const std::vector<std::string>& cards) {
  const std::string space = process_space();
  for (int rank = 0; rank < meeting.ranks(); ++rank) {
    const std::string process = said_in(cards[std::size_t(rank)], kProcess);
    if (rank != meeting.rank() && look_at(process, space) != Seen::elsewhere)
      meeting.know(rank, number_of_process(process));
  }
}

bool differs(const Row& row, const std::string& one, const std::string& other) {
  return said_in(one, row.name) != said_in(other, row.name);
}

}  // namespace

std::string said_in(const std::string& card, std::string_view name) {
  for (std::size_t at = 0; at < card.size();) {
    const std::size_t end = std::min(card.find('\n', at), card.size());
    const std::string_view line = std::string_view(card).substr(at, end - at);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(' '))
      return std::string(line.substr(name.size() + 1));
    at = end + 1;
  }
  return {};
}

std::string start_card(const WorldConfig& config) {
  std::string card;
  for (const Row& row : kRows) {
    std::string value = row.value(config);
    std::ranges::replace(value, '\n', ' ');
    card += str(row.name, " ", value, "\n");
  }
  return card;
}

void check_cards(const std::vector<std::string>& cards) {
  for (std::size_t rank = 0; rank < cards.size(); ++rank)
    if (!cards[rank].starts_with(str(kVersion, " ")))
      fail(Fault::usage, "start-up: rank ", rank, " begins with '",
           shown(kVersion, cards[rank].substr(0, cards[rank].find('\n'))),
           "', which no rank of Paceline does. Do all ranks run Paceline, and does no other ",
           "program write to their store?");
  for (const Row& row : kRows)
    for (std::size_t rank = 1; rank < cards.size() && row.equal == Equal::all; ++rank)
      if (differs(row, cards[0], cards[rank])) fail_different(row, cards, 0, rank);
}

std::vector<std::string> exchange_cards(Bootstrap& meeting, const WorldConfig& config) {
  const std::vector<std::string> cards = meeting.allgather(start_card(config));
  check_cards(cards);
  know_processes(meeting, cards);
  return cards;
}

void check_cards_of_nodes(const std::vector<std::string>& cards, const std::vector<int>& nodes) {
  std::map<int, std::size_t> met;   // node -> its first rank
  for (std::size_t rank = 0; rank < cards.size(); ++rank) {
    const std::size_t first = met.try_emplace(nodes[rank], rank).first->second;
    for (const Row& row : kRows)
      if (row.equal == Equal::node && differs(row, cards[first], cards[rank]))
        fail_different(row, cards, first, rank);
  }
}

}  // namespace paceline
