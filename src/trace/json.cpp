#include "trace/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>

namespace paceline {
namespace {

// The shortest text that reads back as the same number in any locale. JSON has no infinities.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return {text, std::to_chars(text, std::end(text), value).ptr};
}

std::string quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20) {
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string list(const std::vector<double>& values) {
  std::string out = "[";
  for (std::size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + number(values[i]);
  return out + "]";
}

std::string object(const Event& event) {
  return "{\"rank\": " + std::to_string(event.rank) +
         ", \"activity\": " + quoted(name_of(event.activity)) +
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
  std::string out = "{\"title\": " + quoted(trace.title) +
                    ",\n \"provenance\": " + quoted(trace.provenance) +
                    ",\n \"ranks\": " + std::to_string(trace.ranks) +
                    ",\n \"arrival_s\": " + list(trace.arrival_s) +
                    ",\n \"exit_s\": " + list(trace.exit_s) + ",\n \"events\": [";
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    out += (i ? ",\n  " : "\n  ") + object(trace.events[i]);
  return out + "]}\n";
}

}  // namespace paceline
