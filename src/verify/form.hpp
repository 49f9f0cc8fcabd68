// check_form: proves that schedules are well-formed, and parts of one and the same collective.
#pragma once

#include "verify/match.hpp"

namespace paceline {

// Every rank has the same problem, cut the same way; every step names as many segments as its kind
// has, inside their buffers and slots; what a local step combines is equally long for every count.
// A scratch segment must be among the shapes by which its slot's memory is allocated.
Verdict check_form(const World& world);

}  // namespace paceline
