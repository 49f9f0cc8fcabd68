#include "transport/mpi/abi/mpich.hpp"

#include "transport/mpi/abi/instance.hpp"
#include "transport/mpi/abi/make.hpp"

namespace paceline::mpi {

std::shared_ptr<MpiLibrary> make_mpich(const Symbols& symbols) {
  return std::make_shared<LibraryOf<Mpich>>(MpiFunctions<Mpich>::load(symbols),
                                            Mpich::handles(symbols));
}

}  // namespace paceline::mpi
