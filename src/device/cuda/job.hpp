// Argument of a reduce kernel, passed by value. Host and device have the same layout.
#pragma once

namespace paceline::device {

constexpr int kMostSources = 64, kMostTargets = 8;

struct ReduceJob {
  unsigned long long count;   // elements
  void* targets[kMostTargets];
  const void* sources[kMostSources];
  int target_count, source_count;
  int divisor;     // of an average; else 1
  int is_aligned;   // every address is a multiple of 16 bytes
};

}  // namespace paceline::device
