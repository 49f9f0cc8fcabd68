#include "runtime/late_prices.hpp"

#include "tune/late.hpp"

namespace paceline {

CallPrices prices_for_late(const Problem& problem, const ChoiceInputs& now, const Choice& usual) {
  const auto ns = [](double seconds) { return static_cast<std::int64_t>(1e9 * seconds); };
  const auto naming = [=](const std::vector<int>& late) -> std::optional<LatePrice> {
    Problem p = problem;
    p.late = late;
    const std::optional<LateForm> form = form_for_late(p, now, usual);
    if (!form || !is_faster(*form, p, usual)) return {};
    return LatePrice{ns(form->residual_s), ns(form->before_s)};
  };
  const double message_s = now.machine.across.beta_s_per_byte * static_cast<double>(now.bytes);
  return {ns(message_s), ns(usual.expected_s), naming};
}

}  // namespace paceline
