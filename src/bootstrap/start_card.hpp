// StartCard: the first message of every rank at start-up, before any option takes effect. It holds
// the version of Paceline, the options that must be equal, and the rank's process.
//
// A card consists of lines "name value". The first line will always be "paceline VERSION", so that
// ranks of different versions can report the difference.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/world.hpp"
#include "transport/bootstrap.hpp"

namespace paceline {

std::string start_card(const WorldConfig& config);

// Exchanges the cards of all ranks. Collective; the first exchange of a start. Throws a usage
// error, the same on all ranks, if values differ that must be equal on all ranks.
std::vector<std::string> exchange_cards(Bootstrap& meeting, const WorldConfig& config);
void check_cards(const std::vector<std::string>& cards);   // throws that error

// Returns a card's value under a name; empty if there is none.
std::string said_in(const std::string& card, std::string_view name);

// Throws a usage error, the same on all ranks, if values differ that must be equal on all ranks of
// a node. `nodes`: the node of every rank.
void check_cards_of_nodes(const std::vector<std::string>& cards, const std::vector<int>& nodes);

}  // namespace paceline
