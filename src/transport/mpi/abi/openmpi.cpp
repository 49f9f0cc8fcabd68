#include "transport/mpi/abi/openmpi.hpp"

#include "transport/mpi/abi/instance.hpp"
#include "transport/mpi/abi/make.hpp"

namespace paceline::mpi {

std::shared_ptr<MpiLibrary> make_openmpi(const Symbols& symbols) {
  return std::make_shared<LibraryOf<OpenMpi>>(MpiFunctions<OpenMpi>::load(symbols),
                                              OpenMpi::handles(symbols));
}

}  // namespace paceline::mpi
