// A trace's span, and its JSON.
#include <doctest/doctest.h>

#include "trace/json.hpp"

using namespace paceline;

TEST_CASE("trace: from the first arrival to the last exit") {
  Trace trace;
  CHECK(trace.span_s() == 0);
  trace.arrival_s = {2, 1.5, 7};
  trace.exit_s = {8, 9.5, 9};
  CHECK(trace.span_s() == 8);
}

TEST_CASE("trace: as JSON, field by field") {
  Trace trace;
  trace.title = "a \"ring\"\n\\";
  trace.provenance = "simulated";
  trace.ranks = 1;
  trace.arrival_s = {0.1};
  trace.exit_s = {1e-7};
  trace.events.push_back({.rank = 0, .activity = Activity::send, .peer = 3, .step = 4, .steps = 2,
                          .segment = 5, .begin_s = 0.30000000000000004, .end_s = 1,
                          .bytes = 1ull << 60});
  CHECK(to_json(trace) ==
        "{\"title\": \"a \\\"ring\\\"\\u000a\\\\\",\n \"provenance\": \"simulated\",\n"
        " \"ranks\": 1,\n \"arrival_s\": [0.1],\n \"exit_s\": [1e-07],\n \"events\": [\n"
        "  {\"rank\": 0, \"activity\": \"send\", \"peer\": 3, \"step\": 4, \"steps\": 2, "
        "\"segment\": 5, \"begin_s\": 0.30000000000000004, \"end_s\": 1, "
        "\"bytes\": 1152921504606846976}]}\n");
}
