// Flight records as text: for programs and for people.
#include <doctest/doctest.h>

#include "runtime/fingerprint.hpp"
#include "runtime/diagnostics/record.hpp"

using namespace paceline;

namespace {

Fingerprint sum_of(std::size_t count) {
  Call call;
  call.collective = Collective::allreduce;
  call.type = Type::f32;
  call.count = count;
  return fingerprint_of(call, 7);
}

FlightRecord made() {
  return {1, 4, "a \"reason\"\nwith more",
          {{0xabc, {0, 1, 3}, 1, "broken by \\", {{41, sum_of(10), false, 0, {}},
                                                 {42, sum_of(20), true, 1.5, {0, 2}}},
            "a\".py:7 in f"}}};
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("record: JSON has every field, and what is quoted stays in its quotes") {
  const std::string text = json_of(made());
  CHECK(has(text, "\"rank\": 1, \"ranks\": 4"));
  CHECK(has(text, "\"reason\": \"a \\\"reason\\\"\\u000awith more\""));
  CHECK(has(text, "\"context\": \"0000000000000abc\", \"ranks\": [0, 1, 3], \"rank\": 1"));
  CHECK(has(text, "\"broken\": \"broken by \\\\\""));
  CHECK(has(text, "\"called_at\": \"a\\\".py:7 in f\""));
  CHECK(has(text, "{\"number\": 41, \"call\": \"allreduce of 10 float32, sum\", "));
  CHECK(has(text, "\"under_way\": true, \"waited_s\": 1.5, \"waits_for\": [0, 2]}"));
}

TEST_CASE("record: people read the last calls, and who is waited for") {
  const std::string text = text_of(made());
  CHECK(has(text, "rank 1 of 3\n  broken: broken by \\\n  at a\".py:7 in f\n"));
  CHECK(has(text, "  #41 allreduce of 10 float32, sum\n"));
  CHECK(has(text, "#42 allreduce of 20 float32, sum: under way for 1.5 s, waits for ranks [0, 2]"));
}

TEST_CASE("record: a folder that cannot be written to makes no error") {
  CHECK(!write_record(made(), "/proc/nowhere"));
}
