#include "trace/json.hpp"

#include <array>

#include "base/json.hpp"

namespace paceline {
namespace {

using json::number;

std::string list(const std::vector<double>& values) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + number(values[i]);
  return out + "]";
}

std::string object(const Event& event) {
  return "{\"rank\": " + std::to_string(event.rank) +
         ", \"activity\": " + json::quoted(name_of(event.activity)) +
         ", \"peer\": " + std::to_string(event.peer) + ", \"step\": " + std::to_string(event.step) +
         ", \"steps\": " + std::to_string(event.steps) +
         ", \"segment\": " + std::to_string(event.segment) +
         ", \"begin_s\": " + number(event.begin_s) + ", \"end_s\": " + number(event.end_s) +
         ", \"bytes\": " + std::to_string(event.bytes) + "}";
}

}  // namespace

std::string_view name_of(Activity activity) {
  static constexpr std::array<std::string_view, 7> kNames{"send",   "recv", "reduce", "copy",
                                                          "signal", "wait", "compute"};
  return kNames[static_cast<std::size_t>(activity)];
}

std::string to_json(const Trace& trace) {
  std::string out = "{\"title\": " + json::quoted(trace.title) +
                    ",\n \"provenance\": " + json::quoted(trace.provenance) +
                    ",\n \"ranks\": " + std::to_string(trace.ranks) +
                    ",\n \"arrival_s\": " + list(trace.arrival_s) +
                    ",\n \"exit_s\": " + list(trace.exit_s) + ",\n \"events\": [";
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    out += (i ? ",\n  " : "\n  ") + object(trace.events[i]);
  return out + "]}\n";
}

}  // namespace paceline
