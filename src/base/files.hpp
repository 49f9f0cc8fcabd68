// Files in folders that other users may write to: these functions follow no links, trust and
// replace no other user's file, and leave no partly written file.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// Writes a new file beside `path` and renames it. Returns the error; empty: none.
std::string replace_file(const std::string& path, std::string_view text, unsigned mode);

struct FileText {
  bool is_there = false;
  std::string text;
  std::string trouble;   // why it is not trusted; empty: it is
};

// Reads a file of this user, or of its folder's owner, a user that can replace it anyway.
FileText read_file(const std::string& path);

// Returns the readable contents of a file of the system or named by the user; empty if it is
// missing or a folder, or if its process has ended (/proc).
std::string contents_of(const std::string& path);

}  // namespace paceline
