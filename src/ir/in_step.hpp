// in_step: a rank sends one message after the other and receives one after the other, in the
// author's order.
//
// Without it a message may run ahead of its round as soon as its data is there. On a rank with one
// port each way it then holds up a message of the round before, and all that wait for that. A pass
// over the finished schedule; it adds edges and nothing else, so it takes no time away from an
// algorithm whose rounds are in step anyway.
#pragma once

#include "ir/schedule.hpp"

namespace paceline {

Schedule in_step(const Schedule& schedule);

}  // namespace paceline
