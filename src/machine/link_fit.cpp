#include "machine/link_fit.hpp"

#include <algorithm>
#include <numeric>

namespace paceline {
namespace {

// A message occupies a port for a gap besides its bytes: at least kLeastGap of the time of a small
// message's bytes, and more if small messages are kSlower times slower than the fastest.
constexpr double kLeastGap = 0.03, kSlower = 1.2;
// Ratios above which longer messages count as slower. They leave room for noise: modest and medium
// messages are the alternative to large ones.
constexpr double kBetweenSlower = 1.2, kLargeSlower = 1.2;

// A byte of a lone message takes at least this part of the time of one in a train.
constexpr double kLeastLone = 0.1;
constexpr double kMostContention = 0.7;   // a round in which few send must still have a cost

// Time of a large message on the link, and its least and most bytes.
constexpr double kLargeS = 10e-3, kLeastLarge = 256 << 10, kMostLarge = 1 << 20;

// Noise changes the median only if it reaches more than half of the looks.
double median(std::vector<double> looks) {
  std::sort(looks.begin(), looks.end());
  return looks[(looks.size() - 1) / 2];
}

double mean(const std::vector<double>& looks) {
  return std::accumulate(looks.begin(), looks.end(), 0.0) / double(looks.size());
}

// Leaves out the longest look, which other work may have caused.
double mean_but_the_worst(std::vector<double> looks) {
  if (looks.size() > 1) looks.erase(std::max_element(looks.begin(), looks.end()));
  return mean(looks);
}

}  // namespace

std::size_t large_bytes(double s_per_byte) {
  return std::size_t(std::clamp(kLargeS / s_per_byte, kLeastLarge, kMostLarge));
}

LinkFit fit_link(const LinkSamples& looks, double alpha_s) {
  const auto& [small, modest, medium, large] = looks.s_per_byte;
  LinkFit out;
  out.alpha_s = alpha_s;
  out.beta_s_per_byte = median(small);
  out.modest_ratio = mean_but_the_worst(modest) / out.beta_s_per_byte;
  out.medium_ratio = mean_but_the_worst(medium) / out.beta_s_per_byte;
  out.large_ratio = mean(large) / out.beta_s_per_byte;
  return out;
}

double contention(double together_s, double alone_s, int nodes) {
  if (together_s <= 0 || alone_s <= 0) return 0;
  const double others = double(nodes - 1) / nodes;
  return std::clamp((1 - alone_s / together_s) / others, 0.0, kMostContention);
}

Link link_of(const LinkFit& agreed, const MessageBytes& lengths, int nodes) {
  const double beta = agreed.beta_s_per_byte;
  const double between = std::min({1.0, agreed.modest_ratio, agreed.medium_ratio});
  const double best = beta * std::min(between, agreed.large_ratio);
  const double gap_s = lengths.small * std::max(beta / kSlower - best, kLeastGap * beta);
  Link out{agreed.alpha_s, best, std::max(0.0, agreed.alpha_s - gap_s), lengths.small};
  if (agreed.large_ratio > kLargeSlower * between) {
    out.long_beta_s_per_byte = agreed.large_ratio * beta;
    out.long_bytes = agreed.medium_ratio <= kBetweenSlower   ? lengths.medium
                     : agreed.modest_ratio <= kBetweenSlower ? lengths.modest
                                                             : lengths.small;
  }
  out.alpha_loaded_s = agreed.together_s;
  out.contention = contention(agreed.together_s, agreed.alone_s, nodes);
  const double lone_beta = (agreed.lone_s - agreed.alpha_s) / lengths.small;
  if (agreed.lone_s > 0) out.lone_beta_s_per_byte = std::clamp(lone_beta, kLeastLone * best, best);
  return out;
}

}  // namespace paceline
