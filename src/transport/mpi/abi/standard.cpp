#include "transport/mpi/abi/standard.hpp"

#include "transport/mpi/abi/instance.hpp"
#include "transport/mpi/abi/make.hpp"

namespace paceline::mpi {

std::shared_ptr<MpiLibrary> make_standard(const Symbols& symbols) {
  return std::make_shared<LibraryOf<Standard>>(MpiFunctions<Standard>::load(symbols),
                                               Standard::handles(symbols));
}

}  // namespace paceline::mpi
