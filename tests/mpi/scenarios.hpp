// Every scenario: a line here and one in scenarios.cpp.
#pragma once

#include "mpi/ranks.hpp"

namespace paceline::test {

std::string algorithms_in_pieces(const Ranks& ranks);
std::string algorithms_by_route(const Ranks& ranks);
std::string two_nodes(const Ranks& ranks);
std::string long_messages(const Ranks& ranks);
std::string flood(const Ranks& ranks);
std::string split_over_mpi(const Ranks& ranks);
std::string other_communicators(const Ranks& ranks);
std::string own_collectives(const Ranks& ranks);
std::string mismatch(const Ranks& ranks);
std::string late(const Ranks& ranks);
std::string late_looking_in(const Ranks& ranks);
std::string late_behind(const Ranks& ranks);
std::string given_up(const Ranks& ranks);
std::string left(const Ranks& ranks);
std::string configuration_differs(const Ranks& ranks);

}  // namespace paceline::test
