// Flight records on a signal: kill -USR2 of a rank that seems to hang writes its record.
#pragma once

#include <memory>
#include <string>

namespace paceline {

class Session;

// Makes the signal write the session's record into the folder, as long as the session lives. The
// previous handler still runs. A separate thread writes, so that a rank which computes, or waits
// elsewhere, answers as well. A process has one such signal: the first one asked for. Does nothing
// for signal 0, or without a folder. Throws a usage error if the signal cannot be handled.
void record_on_signal(int signal, const std::string& folder, const std::weak_ptr<Session>& session);

}  // namespace paceline
