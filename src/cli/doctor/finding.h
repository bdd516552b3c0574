// What the doctor finds: data, so that a page for people and a document for programs come from one list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rowtide::cli::doctor {

enum class Level {
  kOk,
  kNote,     // works; worth knowing
  kWarning,  // works, but slower or with less than it could
  kProblem,  // does not work
};

enum class Group { kSystem, kMemory, kStorage, kCheckpoint, kEngine };

/// `id` is a stable name for programs. The texts are whole clauses for people; `meaning` and `fix` may be empty where
/// nothing is wrong.
struct Finding {
  std::string_view id;
  Group group = Group::kSystem;
  Level level = Level::kOk;
  std::string finding;  // what is so
  std::string meaning;  // what follows from it for Rowtide
  std::string fix;      // what mends it: a command where there is one
};

using Findings = std::vector<Finding>;

std::string_view level_name(Level level);
std::string_view group_name(Group group);

}  // namespace rowtide::cli::doctor
