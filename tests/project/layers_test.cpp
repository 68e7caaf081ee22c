// The layer check: every #include below src/ is of a room that rooms.cmake lets the including room use.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace {

namespace fs = std::filesystem;

struct Room {
  std::set<std::string> depends;
};

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The rows `tw_room(name [COMPILER] [DEPENDS …] [LINKS …])`.
std::map<std::string, Room> read_rooms() {
  std::map<std::string, Room> rooms;
  const std::string text =
      std::regex_replace(read(fs::path(TW_SOURCE_DIR) / "cmake/rooms.cmake"), std::regex("#[^\n]*"), "");
  const std::regex row(R"(tw_room\(([^)]*)\))");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), row); it != std::sregex_iterator(); ++it) {
    std::istringstream words((*it)[1].str());
    std::string name, word, section;
    words >> name;
    Room& room = rooms[name];
    while (words >> word) {
      if (word == "COMPILER" || word == "DEPENDS" || word == "LINKS")
        section = word;
      else if (section == "DEPENDS")
        room.depends.insert(word);
    }
  }
  return rooms;
}

/// The longest room name that is a prefix of the path, so that plan/cpu/x.h belongs to plan/cpu.
std::string room_of(const std::map<std::string, Room>& rooms, const std::string& path) {
  std::string best;
  for (const auto& [name, room] : rooms) {
    if (path.starts_with(name + "/") && name.size() > best.size()) best = name;
  }
  return best;
}

void collect(const std::map<std::string, Room>& rooms, const std::string& name, std::set<std::string>& reachable) {
  if (!reachable.insert(name).second) return;
  const auto found = rooms.find(name);
  if (found == rooms.end()) return;
  for (const std::string& d : found->second.depends) collect(rooms, d, reachable);
}

TEST(Layers, EveryIncludeIsAllowed) {
  const auto rooms = read_rooms();
  ASSERT_GT(rooms.size(), 20u);
  const std::regex include("#include \"([^\"]+)\"");
  const fs::path src = fs::path(TW_SOURCE_DIR) / "src";
  int checked = 0;
  for (const auto& entry : fs::recursive_directory_iterator(src)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    const std::string path = fs::relative(entry.path(), src);
    if (path.starts_with("tools/main/")) continue;  // the program itself stands on top of every room
    const std::string from = room_of(rooms, path);
    std::set<std::string> allowed;
    collect(rooms, from, allowed);
    const std::string text = read(entry.path());
    for (auto it = std::sregex_iterator(text.begin(), text.end(), include); it != std::sregex_iterator(); ++it) {
      const std::string target = (*it)[1];
      const std::string to = room_of(rooms, target);
      if (to.empty()) continue;  // a public header or a file beside this one
      ++checked;
      EXPECT_TRUE(from.empty() || allowed.contains(to))
          << path << " includes " << target << ", but room '" << from << "' may not use '" << to << "'";
    }
  }
  EXPECT_GT(checked, 200);
}

TEST(Layers, NoRoomDependsOnItself) {
  const auto rooms = read_rooms();
  for (const auto& [name, room] : rooms) {
    for (const std::string& d : room.depends) {
      std::set<std::string> below;
      collect(rooms, d, below);
      EXPECT_FALSE(below.contains(name)) << name << " -> " << d;
    }
  }
}

}  // namespace
