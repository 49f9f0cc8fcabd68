// Flight records on request from outside: kill -USR2 of a rank that seems to hang.
#pragma once

#include <memory>
#include <string>

namespace paceline {

class Session;

// From now on the signal makes this process write the record of the session into the folder, for
// as long as there is one; what handled the signal before still does. A thread of its own writes,
// so that a rank which computes, or waits elsewhere, answers as well. One signal per process: the
// first one asked for. Nothing for signal 0, or without a folder. Throws a usage error where the
// system does not let it be handled.
void record_on_signal(int signal, const std::string& folder, const std::weak_ptr<Session>& session);

}  // namespace paceline
