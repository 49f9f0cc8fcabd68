// StartCard: what every rank says first, over whichever channel its start has, before anything that
// an option decides: which Paceline it is, the options that must be equal, and what the others are
// to know of it.
//
// A card is lines, "name value". The first one is "paceline VERSION" and stays so for good: ranks
// of versions that have nothing else in common can still tell each other that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/world.hpp"
#include "transport/bootstrap.hpp"

namespace paceline {

std::string start_card(const WorldConfig& config);

// The first exchange of a start: the cards of all ranks. Collective. Throws a usage error, the same
// on all ranks, where something differs that must be equal on all of them.
std::vector<std::string> exchange_cards(Bootstrap& meeting, const WorldConfig& config);
void check_cards(const std::vector<std::string>& cards);   // that alone

// What a card says under a name; empty where it says nothing.
std::string said_in(const std::string& card, std::string_view name);

// Once it is known which node every rank is on: throws likewise where ranks of a node differ in
// what must be equal on all of them.
void check_cards_of_nodes(const std::vector<std::string>& cards, const std::vector<int>& nodes);

}  // namespace paceline
