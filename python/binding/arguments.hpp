// Arguments of a call from Python, made into a Call; an error says why they do not fit together.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>

#include "buffers.hpp"
#include "runtime/call.hpp"

namespace paceline::binding {

// The two buffers of a call: they must stay alive until the call is over.
struct Kept {
  Buffer input;
  Buffer output;
};

// A call as Python hands it over; None: does not apply.
struct Arguments {
  std::string_view collective;
  nanobind::handle input;  // equal to output: in place
  nanobind::handle output;
  nanobind::handle op;
  nanobind::handle root;
  nanobind::handle counts;  // sequences of int
  nanobind::handle received;
  nanobind::handle knobs;  // what calls.knobs() returns, or None
};

// Rank of the caller and size of its communicator.
struct Seat {
  int rank;
  int ranks;
  Accepts accepts = Accepts::host;
};

// Segments as Python hands them over: how many, or the size of one as text ("4MiB"); None: chosen.
Cut cut_from(nanobind::handle segments, std::string_view call);

// Fills `kept`; throws before anything is sent.
Call call_from(const Arguments& arguments, Seat seat, Kept& kept);

}  // namespace paceline::binding
