#include "transport/mpi/netmod.hpp"

#include <doctest/doctest.h>

#include "environment.hpp"

namespace paceline {
namespace {

constexpr const char* kWheel =
    "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\n"
    "MPICH configure:    --with-device=ch4:ucx,ofi --with-pm=hydra\n";

TEST_CASE("the network layers of an MPICH, and which of them it takes") {
  using mpi::is_over_ucx;
  using mpi::netmods_of;
  using Names = std::vector<std::string>;
  unsetenv(mpi::kNetmod);
  CHECK(netmods_of(kWheel) == Names{"ucx", "ofi"});
  CHECK(netmods_of("MPICH Device:    \tch4:ucx\nMPICH configure: x") == Names{"ucx"});
  CHECK(netmods_of("MPICH Device: ch4:ofi,ucx") == Names{"ofi", "ucx"});
  CHECK(netmods_of("MPICH Device:    \tch3:nemesis") == Names{});
  CHECK(netmods_of("Open MPI v5.0.11, package: Open MPI") == Names{});

  CHECK(is_over_ucx(kWheel));
  CHECK_FALSE(is_over_ucx("Device: ch4:ofi,ucx\n"));
  CHECK_FALSE(is_over_ucx("Open MPI v5.0.11"));
  setenv(mpi::kNetmod, "ofi", 1);
  CHECK_FALSE(is_over_ucx(kWheel));
  CHECK(is_over_ucx("Device: ch4:ucx\n"));   // it has no other
  setenv(mpi::kNetmod, "ucx", 1);
  CHECK(is_over_ucx("Device: ch4:ofi,ucx\n"));
  unsetenv(mpi::kNetmod);
}

}  // namespace
}  // namespace paceline
