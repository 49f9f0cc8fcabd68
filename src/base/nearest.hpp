// Suggests the name that was meant, where one is not known.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Returns the one of `names` ("ring, chain") that is nearest to `word`; empty if none is near.
// Case, '_', '-' and "MPI_" make no difference; names of MPI and torch are known: bcast, avg.
std::string nearest(std::string_view word, std::string_view names);

// Returns " Did you mean ring?", or nothing.
std::string did_you_mean(std::string_view word, std::string_view names);

}  // namespace paceline
