// Conditions that every profile must meet, whatever its measurements.
#include "engine/shm/shm_profile.hpp"

#include <doctest/doctest.h>

#include <string>

#include "engine/shm/interleaved.hpp"
#include "transport/staging.hpp"

using namespace paceline;

namespace {

std::string flaw_of(const ShmProfile& p) {
  if (std::string(p.measured_on).empty()) return "measured nowhere";
  if (p.short_slot > StagingBuffer::kAtFirst / 2) return "a short slot reaches into the next place";
  if (p.modest_slot < p.short_slot) return "a short slot is longer than a modest one";
  if (2 * p.modest_slot > p.short_rotation) return "modest slots have no room to rotate";
  if (p.short_rotation > p.rotation) return "the rotation shrinks";
  if (p.strip == 0 || p.streams_from_one_stage < kInterleave * p.strip) return "streams of nothing";
  return "";
}

}  // namespace

TEST_CASE("shm profile: all are sound, this machine's among them") {
  bool is_known = false;
  for (const ShmProfile& profile : shm_profiles()) {
    CHECK(flaw_of(profile).empty());
    is_known = is_known || &profile == &shm_profile();
  }
  CHECK(is_known);
}

TEST_CASE("mutants: a profile that cannot work is seen") {
  const ShmProfile& sound = shm_profiles().front();
  const auto with = [&](auto change) {
    ShmProfile changed = sound;
    change(changed);
    return flaw_of(changed);
  };
  CHECK(!with([](ShmProfile& p) { p.measured_on = ""; }).empty());
  CHECK(!with([](ShmProfile& p) { p.short_slot = StagingBuffer::kAtFirst; }).empty());
  CHECK(!with([](ShmProfile& p) { p.modest_slot = p.short_slot / 2; }).empty());
  CHECK(!with([](ShmProfile& p) { p.short_rotation = p.modest_slot; }).empty());
  CHECK(!with([](ShmProfile& p) { p.rotation = p.short_rotation / 2; }).empty());
  CHECK(!with([](ShmProfile& p) { p.streams_from_one_stage = p.strip; }).empty());
}
