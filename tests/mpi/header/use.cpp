// A program that takes its MPI from mpi.h; compiled by that MPI's compiler.
#include "transport/mpi/abi/header.hpp"

#include <cstdio>

#include "bootstrap/join.hpp"

int main() {
  const auto mpi = paceline::mpi::make_from_header();
  mpi->init();
  int status = 0;
  {
    paceline::WorldConfig config;
    config.only_mpi = true;
    paceline::Communicator world = paceline::join_mpi(*mpi, nullptr, config);
    float mine = static_cast<float>(world.rank() + 1);
    paceline::Call call{.collective = paceline::Collective::allreduce, .type = paceline::Type::f32};
    call.input = call.output = &mine;
    call.count = 1;
    world.run(call);
    const float wanted = static_cast<float>(world.size() * (world.size() + 1)) / 2;
    if (mine != wanted) status = 1;
    if (world.rank() == 0)
      std::printf("%s: sum %g of %d ranks\n", std::string(mpi->abi()).c_str(), double(mine),
                  world.size());
  }
  mpi->finalize();
  return status;
}
