#include "runtime/progress/mismatch.hpp"

#include <algorithm>
#include <cstring>

#include "base/str.hpp"
#include "runtime/fingerprint.hpp"

namespace paceline {
namespace {

constexpr const char* kEnd = ". The communicator cannot be used any more.";

}  // namespace

std::string differing_calls(const Group& group, const CallMismatch& mismatch) {
  const CallStamp &mine = mismatch.mine, &theirs = mismatch.theirs;
  const int them = mismatch.position, me = group.rank;
  std::string what = str("calls before it differ between rank ", them, " and rank ", me);
  if (mine.number() != theirs.number())
    what = str("rank ", them, " is in ", describe(theirs.fingerprint), " as its call #",
               theirs.number(), ", rank ", me, " in ", describe(mine.fingerprint), " as its call #",
               mine.number(), ": the order of calls differs");
  else if (mine.fingerprint != theirs.fingerprint)
    what = difference(mine.fingerprint, me, theirs.fingerprint, them);
  const CallStamp& made = is_refusal(mine.fingerprint) ? theirs : mine;
  return str(collective_of(made.fingerprint), " #", mine.number(), ": ", what, kEnd);
}

std::string misplaced_message(const Group& group, int peer, const Key& key,
                              const Fingerprint& theirs, const Fingerprint& mine, bool known) {
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), peer);
  const int me = group.rank, them = static_cast<int>(at - group.ranks.begin());
  std::string what = str("a message of ", describe(theirs), " from rank ", them,
                         " has no place in ", describe(mine), " on rank ", me);
  if (known && mine != theirs) what = difference(mine, me, theirs, them);
  return str(collective_of(is_refusal(mine) ? theirs : mine), " #", key.number, ": ", what, kEnd);
}

std::string wrong_size(const Group& group, int peer, const Key& key, std::size_t came,
                       std::size_t expected) {
  const int me = group.ranks[static_cast<std::size_t>(group.rank)];
  return str("call #", key.number, ": ", name_of(group, peer), " sends ", came, " bytes where ",
             name_of(group, me), " expects ", expected,
             "; the counts of the two ranks do not fit together", kEnd);
}

std::string denied_copy(const ActiveOp& active, int rank, const CopyDenied& denied) {
  const Group& group = *active.group;
  const std::string peer = name_of(group, group.ranks[static_cast<std::size_t>(denied.position)]);
  return str(active.operation->describe(), ": ", name_of(group, rank), " cannot ",
             denied.writes ? "write into" : "read", " the buffer of ", peer, ": ",
             std::strerror(denied.error), ". PACELINE_SINGLE_COPY=off avoids such copies", kEnd);
}

}  // namespace paceline
