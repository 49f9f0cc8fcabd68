// The three instances for binary interfaces: one per file in this folder.
#pragma once

#include <memory>

#include "transport/mpi/library.hpp"
#include "transport/mpi/symbols.hpp"

namespace paceline::mpi {

// Throw a refusal if a symbol is missing.
std::shared_ptr<MpiLibrary> make_mpich(const Symbols& symbols);
std::shared_ptr<MpiLibrary> make_openmpi(const Symbols& symbols);
std::shared_ptr<MpiLibrary> make_standard(const Symbols& symbols);

}  // namespace paceline::mpi
