#include "runtime/diagnostics/record.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/files.hpp"
#include "base/json.hpp"
#include "base/str.hpp"
#include "runtime/progress/clock.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {
namespace {

constexpr std::uint32_t kMostRecorded = 64;   // calls of each communicator
constexpr int kShown = 8;                     // calls of each communicator in the text

template <class Values, class Write>
std::string list(const Values& values, Write&& write, const char* between = ", ") {
  std::string out;
  for (const auto& value : values) out += str(out.empty() ? "" : between, write(value));
  return "[" + out + "]";
}

std::string numbers(const std::vector<int>& values) {
  return list(values, [](int value) { return std::to_string(value); });
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string json_of(const RecordedCall& call) {
  std::string out = str("{\"number\": ", call.number,
                        ", \"call\": ", json::quoted(describe(call.fingerprint)),
                        ", \"fingerprint\": \"", hex(call.fingerprint.what),
                        hex(call.fingerprint.count), "\"");
  if (call.under_way)
    out += str(", \"under_way\": true, \"waited_s\": ", json::number(call.waited_s),
               ", \"waits_for\": ", numbers(call.waits_for));
  return out + "}";
}

std::string json_of(const RecordedCommunicator& one) {
  return str("{\"context\": \"", hex(one.context), "\", \"ranks\": ", numbers(one.ranks),
             ", \"rank\": ", one.rank, ", \"broken\": ", json::quoted(one.broken),
             one.called_at.empty() ? "" : str(", \"called_at\": ", json::quoted(one.called_at)),
             ",\n   \"calls\": ",
             list(one.calls, [](const RecordedCall& call) { return json_of(call); }, ",\n    "),
             "}");
}

std::string text_of(const RecordedCall& call) {
  std::string out = str("  #", call.number, " ", describe(call.fingerprint));
  if (!call.under_way) return out + "\n";
  out += str(": under way for ", call.waited_s, " s");
  if (!call.waits_for.empty()) out += str(", waits for ranks ", numbers(call.waits_for));
  return out + "\n";
}

std::string text_of(const RecordedCommunicator& one) {
  std::string out = str("communicator ", hex(one.context), ", rank ", one.rank, " of ",
                        one.ranks.size(), "\n");
  if (!one.broken.empty()) out += str("  broken: ", one.broken, "\n");
  if (!one.called_at.empty()) out += str("  at ", one.called_at, "\n");
  const std::size_t shown = std::min<std::size_t>(kShown, one.calls.size());
  for (std::size_t i = one.calls.size() - shown; i < one.calls.size(); ++i)
    out += text_of(one.calls[i]);
  return out;
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

std::string json_of(const FlightRecord& record) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return str("{\"rank\": ", record.rank, ", \"ranks\": ", record.ranks, ", \"host\": ",
             json::quoted(host), ", \"process\": ", getpid(), ", \"written\": \"", now(),
             "\",\n \"reason\": ", json::quoted(record.reason), ",\n \"communicators\": ",
             list(record.communicators,
                  [](const RecordedCommunicator& one) { return json_of(one); }, ",\n  "),
             "}\n");
}

std::string text_of(const FlightRecord& record) {
  std::string out = str("rank ", record.rank, " of ", record.ranks, ", process ", getpid(), ", ",
                        now(), "\n", record.reason, "\n");
  for (const RecordedCommunicator& one : record.communicators) out += text_of(one);
  return out;
}

bool write_record(const FlightRecord& record, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string name = str(folder, "/rank-", record.rank);
  constexpr unsigned kMode = 0644;   // readable by all users that can read the folder
  const bool well = replace_file(name + ".json", json_of(record), kMode).empty();
  return replace_file(name + ".txt", text_of(record), kMode).empty() && well;
}

FlightRecord record_of(const SessionState& state, const std::string& reason) {
  FlightRecord record{state.rank(), state.transport->ranks(), reason, {}};
  for (const auto& [context, group] : state.groups) {
    RecordedCommunicator one{context, group->ranks, group->rank, group->broken, {}};
    const std::uint32_t count =
        group->rounds > 0 ? kMostRecorded : std::min(group->last, kMostRecorded);
    for (std::uint32_t back = count; back > 0; --back) {
      const std::uint32_t number = group->last - back + 1;
      one.calls.push_back({number, group->history[number % group->history.size()], false, 0, {}});
    }
    for (const auto& active : state.active) {
      const std::uint32_t past = group->last - active->operation->number();
      if (active->group != group || !active->operation->under_way() || past >= count) continue;
      RecordedCall& call = one.calls[count - 1 - past];
      call.under_way = true;
      call.waited_s = now_s() - active->started_s;
      for (int rank : active->operation->waits_for())
        for (std::size_t position = 0; position < group->ranks.size(); ++position)
          if (group->ranks[position] == rank) call.waits_for.push_back(int(position));
    }
    record.communicators.push_back(std::move(one));
  }
  return record;
}

}  // namespace paceline
