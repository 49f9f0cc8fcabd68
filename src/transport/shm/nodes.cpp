#include "transport/shm/nodes.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "transport/process.hpp"
#include "transport/shm/segment.hpp"

namespace paceline {
namespace {

constexpr std::size_t kPage = 4096;

// A rank's card, about its page. Fields are lines: names and reasons may hold spaces.
struct Card {
  std::string machine;   // of one boot of one machine, and the name given
  std::string address;   // of the page
  std::string nonce;
  std::string why;       // why there is no page
  std::string process;   // by which others on this boot can tell whether it still runs
};

std::string write(const Card& c) {
  return str(c.machine, "\n", c.address, "\n", c.nonce, "\n", c.why, "\n", c.process);
}

Card read_card(const std::string& text) {
  std::string fields[5];
  std::size_t at = 0;
  for (std::string& field : fields) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    field = text.substr(at, end - at);
    at = std::min(end + 1, text.size());
  }
  return {fields[0], fields[1], fields[2], fields[3], fields[4]};
}

// Digest of all cards: the rows of one meeting are made of the same cards.
std::string print_of(const std::vector<std::string>& cards) {
  std::string all;
  for (const std::string& card : cards) all += str(card.size(), " ", card);
  return hex(hash_of(all));
}

constexpr char kLacks = '!';   // begins the lack of a rank, in place of its row

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Makes the page and says so on the card.
SharedFile make_page(const std::string& folder, Card& card) {
  try {
    SharedFile page = SharedFile::create_or_besides(folder, kPage);
    std::uint64_t nonce[2];
    if (getrandom(nonce, sizeof(nonce), 0) != sizeof(nonce))
      fail(Fault::resource, "shm: the system has no random numbers.");
    card.nonce = str(nonce[0], " ", nonce[1]);
    std::memcpy(page.data(), card.nonce.c_str(), card.nonce.size() + 1);
    card.address = page.address();
    return page;
  } catch (const Error& error) {
    card.why = one_line(error.what());
    return {};
  }
}

// Returns why this rank does not reach that page; empty: it does. Throws a resource error if this
// rank lacks the means to look.
std::string try_page(const Card& mine, const Card& theirs) {
  for (const Card* card : {&mine, &theirs})
    if (!card->why.empty()) return card->why;
  if (mine.machine != theirs.machine)
    return "they are on different machines, or PACELINE_NODE differs";
  try {
    const SharedFile page = SharedFile::attach(theirs.address, kPage);
    const auto* found = reinterpret_cast<const char*>(page.data());
    if (theirs.nonce != std::string(found, strnlen(found, kPage)))
      return "the memory found is another's";
    return "";
  } catch (const Error& error) {
    if (error.fault() == Fault::resource) throw;
    return error.what();
  }
}

// Reads which rank reaches which page. Throws if a rank lacks something, has read a stale card, or
// sends the row of another meeting.
std::vector<std::vector<bool>> read_rows(const std::vector<std::string>& rows,
                                         const std::string& print) {
  std::vector<std::vector<bool>> reaches;
  for (const std::string& row : rows) {
    if (row.starts_with(kLacks)) fail(Fault::resource, row.substr(1));
    if (row.starts_with("start-up")) fail(Fault::lost, row);
    if (row.size() != rows.size() + print.size() || !row.ends_with(print))
      fail(Fault::lost, why_stale(static_cast<int>(reaches.size())));
    reaches.emplace_back(rows.size(), false);
    for (std::size_t peer = 0; peer < rows.size(); ++peer) reaches.back()[peer] = row[peer] == '1';
  }
  return reaches;
}

// The first rank of a machine that does not reach another one of it; -1: all do.
int first_apart(const std::vector<std::string>& machines,
                const std::vector<std::vector<bool>>& reaches, const std::string& machine) {
  for (std::size_t a = 0; a < machines.size(); ++a)
    for (std::size_t b = 0; b < machines.size() && machines[a] == machine; ++b)
      if (a != b && machines[b] == machine && !reaches[a][b]) return static_cast<int>(a);
  return -1;
}

}  // namespace

std::vector<int> Nodes::members(int node) const {
  std::vector<int> out;
  for (std::size_t r = 0; r < of_rank.size(); ++r)
    if (of_rank[r] == node) out.push_back(static_cast<int>(r));
  return out;
}

int Nodes::count() const {
  return of_rank.empty() ? 0 : *std::max_element(of_rank.begin(), of_rank.end()) + 1;
}

std::vector<int> group_nodes(const std::vector<std::vector<bool>>& reaches) {
  const std::size_t ranks = reaches.size();
  std::vector<int> node(ranks, -1);
  std::vector<std::vector<std::size_t>> nodes;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto belongs = [&](const std::vector<std::size_t>& members) {
      return std::all_of(members.begin(), members.end(),
                         [&](std::size_t m) { return reaches[r][m] && reaches[m][r]; });
    };
    const auto at = std::find_if(nodes.begin(), nodes.end(), belongs);
    node[r] = static_cast<int>(at - nodes.begin());
    if (at == nodes.end()) nodes.push_back({r});
    else at->push_back(r);
  }
  return node;
}

Nodes find_nodes(Bootstrap& meeting, const std::string& folder, const std::string& name) {
  const int me = meeting.rank(), ranks = meeting.ranks();
  Card mine{str(boot_id(), " ", one_line(name)), "", "", "", own_process()};
  const SharedFile page = make_page(folder, mine);
  const std::vector<std::string> cards = meeting.allgather(write(mine));
  Nodes nodes;
  std::vector<std::string> machines;
  const std::string space = process_space();
  std::string row, stale, split;
  for (int peer = 0; peer < ranks; ++peer) {
    const Card theirs = read_card(cards[std::size_t(peer)]);
    machines.push_back(theirs.machine);
    if (stale.empty() && peer != me && look_at(theirs.process, space) == Seen::has_ended)
      stale = why_stale(peer, theirs.process);
    std::string why;
    if (peer != me) try {
        why = try_page(mine, theirs);
      } catch (const Error& error) {
        if (stale.empty()) stale = str(kLacks, "start-up: rank ", me, ": ", error.what());
      }
    if (peer != me && why.empty()) meeting.know(peer, std::atoi(theirs.address.c_str()));
    if (why.ends_with('.')) why.pop_back();   // it becomes part of a sentence
    row += why.empty() ? '1' : '0';
    if (!why.empty() && nodes.why_apart.empty())
      nodes.why_apart = str("rank ", me, " and rank ", peer, " share no memory: ", why);
    // A rank without a page fails at once, and says why itself.
    if (!why.empty() && split.empty() && mine.machine == theirs.machine && mine.why.empty() &&
        theirs.why.empty())
      split = str("rank ", me, " and rank ", peer, " share no memory: ", why);
  }
  const std::string print = print_of(cards);
  const std::vector<std::string> rows = meeting.allgather(stale.empty() ? row + print : stale);
  // This rank's own finding says more than its peers' words.
  if (stale.starts_with(kLacks)) fail(Fault::resource, stale.substr(1));
  if (!stale.empty()) fail(Fault::lost, stale);
  const std::vector<std::vector<bool>> reaches = read_rows(rows, print);
  nodes.of_rank = group_nodes(reaches);
  nodes.is_split = std::ranges::any_of(machines, [&](const std::string& machine) {
    return first_apart(machines, reaches, machine) >= 0;
  });
  if (first_apart(machines, reaches, mine.machine) == me) nodes.why_split = split;
  return nodes;
}

}  // namespace paceline
