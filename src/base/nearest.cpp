#include "base/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/str.hpp"

namespace paceline {
namespace {

constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"bcast", "broadcast"},  {"avg", "average"},     {"mean", "average"},
    {"band", "bitand"},      {"bor", "bitor"},       {"bxor", "bitxor"},
    {"land", "logicaland"},  {"lor", "logicalor"},   {"lxor", "logicalxor"},
};

constexpr std::size_t kPart = 3;   // characters that a name and its abbreviation share at least

// Returns letters and digits alone, in lower case: "MPI_Bcast", "ReduceOp.AVG" -> "bcast", "avg".
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text.substr(text.rfind('.') + 1)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
  }
  if (out.starts_with("mpi") && out.size() > kPart) out.erase(0, 3);
  for (const auto& [theirs, ours] : kElsewhere)
    if (out == theirs) return std::string(ours);
  return out;
}

// Counts the letters to insert, drop, replace or swap with the next.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> last, row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], last[j - 2] + 1);
    }
    last = row;
    row.swap(next);
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::string_view names) {
  constexpr std::size_t kLongest = 64;   // a value can be anything
  const std::string asked = plain(word);
  std::string_view best;
  std::size_t least = kLongest;
  if (asked.empty() || asked.size() > kLongest) return {};
  for (std::size_t from = 0; from < names.size();) {
    const std::size_t end = std::min(names.find(", ", from), names.size());
    const std::string_view name = names.substr(from, end - from);
    from = end + 2;
    const std::string known = plain(name);
    const bool is_part = std::min(asked.size(), known.size()) >= kPart &&
                         (asked.starts_with(known) || known.starts_with(asked));
    const std::size_t apart = distance(asked, known);
    const bool is_slip = apart <= 1 + asked.size() / 5 && apart < known.size();
    if (apart < least && (is_part || is_slip)) {
      least = apart;
      best = name;
    }
  }
  return std::string(best);
}

std::string did_you_mean(std::string_view word, std::string_view names) {
  const std::string name = nearest(word, names);
  return name.empty() ? name : str(" Did you mean ", name, "?");
}

}  // namespace paceline
