// Files that others may have touched: no link is followed, no other user's file is believed or
// replaced, and what could not be written whole is not there.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Writes a new file beside `path` and gives it that name. Returns why not, or empty.
std::string replace_file(const std::string& path, std::string_view text, unsigned mode);

struct FileText {
  bool is_there = false;
  std::string text;
  std::string trouble;   // why it is not believed; empty: it is
};

// A file of this user's, or of whoever owns the folder that it is in: who does can replace it.
FileText read_file(const std::string& path);

// What can be read of a file that the system shows, or the user named: nothing where it is not
// there, is a folder, or its process has ended meanwhile (/proc).
std::string contents_of(const std::string& path);

}  // namespace paceline
