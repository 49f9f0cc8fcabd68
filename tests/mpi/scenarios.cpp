#include "mpi/scenarios.hpp"

namespace paceline::test {

#define PACELINE_SCENARIO(name) {#name, name}

const std::map<std::string, Scenario>& scenarios() {
  static const std::map<std::string, Scenario> all{
      PACELINE_SCENARIO(algorithms_in_pieces),
      PACELINE_SCENARIO(algorithms_by_route),
      PACELINE_SCENARIO(two_nodes),
      PACELINE_SCENARIO(long_messages),
      PACELINE_SCENARIO(flood),
      PACELINE_SCENARIO(split_over_mpi),
      PACELINE_SCENARIO(other_communicators),
      PACELINE_SCENARIO(own_collectives),
      PACELINE_SCENARIO(mismatch),
      PACELINE_SCENARIO(late),
      PACELINE_SCENARIO(late_looking_in),
      PACELINE_SCENARIO(late_behind),
      PACELINE_SCENARIO(given_up),
      PACELINE_SCENARIO(left),
      PACELINE_SCENARIO(configuration_differs),
  };
  return all;
}

}  // namespace paceline::test
