#include "base/nearest.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace paceline;

namespace {

constexpr const char* kCollectives =
    "allreduce, broadcast, reduce, reduce_scatter, allgather, alltoall, gather, scatter, barrier";
constexpr const char* kOps = "sum, product, min, max, average, bit_and, logical_and";

}  // namespace

TEST_CASE("nearest: a slip of the hand, and the names of MPI and torch") {
  const std::pair<const char*, const char*> rows[] = {
      {"all_reduce", "allreduce"},       {"MPI_Allreduce", "allreduce"},
      {"allgahter", "allgather"},        {"all_gather_into_tensor", "allgather"},
      {"reduce-scatter", "reduce_scatter"}, {"reduce_scatter_tensor", "reduce_scatter"},
      {"MPI_Reduce_scatter_block", "reduce_scatter"}, {"all_to_all_single", "alltoall"},
      {"Bcast", "broadcast"},            {"Allgatherv", "allgather"},
  };
  for (const auto& [word, name] : rows) {
    CAPTURE(word);
    CHECK(nearest(word, kCollectives) == name);
  }
  const std::pair<const char*, const char*> ops[] = {
      {"summ", "sum"},     {"SUM", "sum"},          {"MPI_SUM", "sum"}, {"prod", "product"},
      {"avg", "average"},  {"ReduceOp.AVG", "average"}, {"mean", "average"},
      {"maximum", "max"},  {"BAND", "bit_and"},     {"land", "logical_and"},
  };
  for (const auto& [word, name] : ops) {
    CAPTURE(word);
    CHECK(nearest(word, kOps) == name);
  }
  CHECK(nearest("PACELINE_X", "PACELINE_MPI, PACELINE_RANK") == "");
  CHECK(nearest("PACELINE_TIMEOUT", "PACELINE_RANK, PACELINE_TIMEOUT_MS") == "PACELINE_TIMEOUT_MS");
  CHECK(did_you_mean("rign", "ring, chain") == " Did you mean ring?");
}

TEST_CASE("nearest: what is near to nothing has no suggestion") {
  for (const char* word : {"", "?", "zzz", "all", "gossip", "x", "...", "MPI_", "allsum"}) {
    CAPTURE(word);
    CHECK(nearest(word, "broadcast, barrier") == "");
    CHECK(did_you_mean(word, "broadcast, barrier") == "");
  }
  CHECK(nearest(std::string(100000, 'a'), kOps) == "");
  CHECK(nearest("sum", "") == "");
}
