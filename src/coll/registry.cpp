#include "coll/registry.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "coll/algorithms.hpp"

namespace paceline {

std::span<const Algorithm* const> registry() {
#define PACELINE_LIST(name) &name,
  static const Algorithm* const all[] = {PACELINE_ALGORITHMS(PACELINE_LIST)};
#undef PACELINE_LIST
  return all;
}

const Algorithm& find_algorithm(Collective collective, std::string_view name) {
  for (const Algorithm* a : registry())
    if (a->collective == collective && a->name == name) return *a;
  std::string known;
  for (const Algorithm* a : registry())
    if (a->collective == collective) known += str(known.empty() ? "" : ", ", a->name);
  fail(Fault::usage, name_of(collective), ": algorithm '", name,
       "' is not known; use one of: ", known, ", or auto.", did_you_mean(name, known));
}

}  // namespace paceline
