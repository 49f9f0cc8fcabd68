#include "engine/shm/shm_profile.hpp"

namespace paceline {
namespace {

constexpr std::size_t kKiB = 1u << 10, kMiB = 1u << 20;

// slow_line_s, timed_copy, slow_copies and untimed are an AMD EPYC's: a copy takes 3 to 10 ns per
// line between near caches, and 27 to 36 ns between far ones. No sweep chose brief and preempted.
constexpr ShmProfile kXeon{
    .measured_on = "2 cores of an Intel Xeon (Sapphire Rapids, a virtual machine), 2026-11-23",
    .short_slot = 4 * kKiB, .rotation = 256 * kKiB, .short_rotation = 128 * kKiB,
    .modest_slot = 16 * kKiB, .swaps = true,
    .streams_from_stage = 64 * kKiB, .streams_from_one_stage = 32 * kKiB,
    .streams_from_buffer = 128 * kKiB, .streams_into_stage = 64 * kKiB, .most_in_streams = kMiB,
    .strip = kKiB,
    .long_output = 4 * kMiB, .long_output_of_two = 11 * kMiB, .slow_line_s = 18e-9,
    .past_caches = 32 * kMiB, .timed_copy = 8 * kKiB, .slow_copies = 4, .untimed = 4 * kMiB,
    .brief = 16 * kKiB, .preempted = 256 * kKiB};

// Only the slots were measured; all other figures are the Xeon's. The rotation is longer than a
// processor's own cache.
constexpr ShmProfile epyc() {
  ShmProfile profile = kXeon;
  profile.measured_on = "slots: 2 cores of an AMD EPYC; all else: an Intel Xeon";
  profile.short_slot = kKiB;
  profile.rotation = 2 * kMiB;
  profile.modest_slot = 4 * kKiB;
  profile.swaps = false;   // not measured
  return profile;
}

constexpr ShmProfile kProfiles[] = {kXeon, epyc()};

}  // namespace

std::span<const ShmProfile> shm_profiles() { return kProfiles; }

const ShmProfile& shm_profile() {
#if defined(__x86_64__)
  static const ShmProfile& profile = kProfiles[__builtin_cpu_is("amd") ? 1 : 0];
  return profile;
#else
  return kProfiles[0];
#endif
}

}  // namespace paceline
