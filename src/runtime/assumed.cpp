#include "runtime/assumed.hpp"

#include "base/error.hpp"
#include "tune/choose.hpp"

namespace paceline {

Assumed assumed_by(std::string_view option) try {
  if (option == "usual") return {usual_machine(1), "usual"};
  if (option == "auto" || option == "probe") return {usual_machine(1), "usual, not measured"};
  return {machine_from(option), "as PACELINE_MACHINE says"};
} catch (const Error& error) {
  fail(Fault::usage, "PACELINE_MACHINE: ", error.what(), " Or auto, usual, or probe.");
}

std::string describe(const Assumed& assumed) {
  return str(describe(assumed.machine), " (", assumed.why, ")");
}

}  // namespace paceline
