#include "checkpoint/model_folder.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace rowtide::checkpoint {
namespace {

using io::Disk;
using io::FolderEntry;

constexpr std::string_view kIndexEnding = ".safetensors.index.json";
constexpr std::string_view kFileEnding = ".safetensors";
constexpr std::string_view kUsualName = "model";
constexpr std::string_view kSnapshots = "snapshots";
constexpr std::size_t kRefBytesMax = 256;
constexpr std::size_t kNamedMax = 3;  // in a sentence that lists

/// Entries of a folder that are files, by name.
std::vector<std::string> files_of(const std::vector<FolderEntry>& entries) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : entries) {
    if (!entry.is_folder) names.push_back(entry.name);
  }
  return names;
}

std::vector<std::string> ending_in(const std::vector<std::string>& names, std::string_view ending) {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [&](const std::string& name) { return name.ends_with(ending); });
  return found;
}

bool contains(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

/// "a, b, c and 4 more".
std::string enumerated(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamedMax); ++i) {
    if (i > 0) text += ", ";
    text += printable(names[i]);
  }
  if (names.size() > kNamedMax) text += fmt::format(" and {} more", names.size() - kNamedMax);
  return text;
}

/// The name that stands for a kind of file in a folder: the usual one, else the only one. Empty: there is none.
Result<std::string> only_name(const std::string& folder, const std::vector<std::string>& names,
                              std::string_view ending) {
  const std::vector<std::string> found = ending_in(names, ending);
  const std::string usual = std::string(kUsualName) + std::string(ending);
  if (found.size() > 1 && !contains(found, usual)) {
    return make_error(ErrorCode::kNotFound, "{}: holds several checkpoints ({}); name one of these files", folder,
                      enumerated(found));
  }
  return found.empty() ? "" : found.size() == 1 ? found.front() : usual;
}

Result<ModelFiles> indexed_files(const std::string& folder, const std::string& name,
                                 const std::vector<std::string>& beside, const Disk& disk) {
  auto file = disk.open(folder + "/" + name);
  if (!file) return file.error();
  auto index = SafetensorsIndex::read(**file);
  if (!index) return index.error();
  ModelFiles model;
  std::vector<std::string> missing;
  for (const std::string& shard : index->shards()) {
    if (!contains(beside, shard)) missing.push_back(shard);
    model.paths.push_back(folder + "/" + shard);
  }
  if (!missing.empty()) {
    return make_error(ErrorCode::kNotFound, "{}: lacks {}, yet to be fetched (of {} files that {} names)", folder,
                      enumerated(missing), index->shards().size(), name);
  }
  model.index = *std::move(index);
  model.folder = folder;
  return model;
}

Result<ModelFiles> files_in_folder(const std::string& folder, const std::vector<FolderEntry>& entries,
                                   const Disk& disk) {
  const std::vector<std::string> names = files_of(entries);
  auto index = only_name(folder, names, kIndexEnding);
  if (!index) return index.error();
  if (!index->empty()) return indexed_files(folder, *index, names, disk);
  auto file = only_name(folder, names, kFileEnding);
  if (!file) return file.error();
  if (file->empty()) {
    return make_error(ErrorCode::kNotFound, "{}: holds no *{} file and no *{}", folder, kFileEnding, kIndexEnding);
  }
  return ModelFiles{{folder + "/" + *file}, std::nullopt, folder, ""};
}

/// The commit that refs/main names; empty if it names none.
std::string main_commit(const std::string& repository, const Disk& disk) {
  auto file = disk.open(repository + "/refs/main");
  if (!file || (*file)->bytes() > kRefBytesMax) return "";
  std::string text((*file)->bytes(), '\0');
  if (!(*file)->read(0, std::as_writable_bytes(std::span(text)))) return "";
  std::erase_if(text, [](unsigned char byte) { return std::isspace(byte) != 0; });
  return text;
}

/// First the one that refs/main names, then the newest.
std::vector<FolderEntry> candidates(std::vector<FolderEntry> entries, const std::string& main) {
  std::erase_if(entries, [](const FolderEntry& entry) { return !entry.is_folder; });
  std::stable_sort(entries.begin(), entries.end(), [&](const FolderEntry& a, const FolderEntry& b) {
    if ((a.name == main) != (b.name == main)) return a.name == main;
    return a.modified_ns > b.modified_ns;
  });
  return entries;
}

Result<ModelFiles> files_of_snapshot(const std::string& folder, const Disk& disk) {
  auto entries = disk.list(folder);
  if (!entries) return entries.error();
  return files_in_folder(folder, *entries, disk);
}

/// As Safetensors::choice(), of a snapshot before which others were passed over for their `faults`.
std::string choice_of(const FolderEntry& chosen, const std::vector<FolderEntry>& snapshots, const std::string& main,
                      const std::vector<std::string>& faults) {
  const bool is_main = chosen.name == main;
  if (snapshots.size() == 1 && (is_main || main.empty())) return "";
  std::string choice = fmt::format("snapshot {} of {} is open: {}", printable(chosen.name), snapshots.size(),
                                   is_main ? "refs/main names it" : "the newest that is complete");
  const bool is_main_here = std::any_of(snapshots.begin(), snapshots.end(),
                                        [&](const FolderEntry& snapshot) { return snapshot.name == main; });
  if (!main.empty() && !is_main_here) choice += fmt::format("; refs/main names {}, which is not here", printable(main));
  for (const std::string& fault : faults) choice += "; " + fault;
  return choice;
}

/// Of a repository in a hub's cache.
Result<ModelFiles> files_in_repository(const std::string& repository, const Disk& disk) {
  const std::string folder = repository + "/" + std::string(kSnapshots);
  auto entries = disk.list(folder);
  if (!entries) return entries.error();
  const std::string main = main_commit(repository, disk);
  const std::vector<FolderEntry> snapshots = candidates(*std::move(entries), main);
  std::vector<std::string> faults;
  for (const FolderEntry& snapshot : snapshots) {
    auto model = files_of_snapshot(folder + "/" + snapshot.name, disk);
    if (!model && model.error().code != ErrorCode::kNotFound) return model;
    if (!model) {
      faults.push_back((snapshot.name == main ? "refs/main names " : "") + model.error().message);
      continue;
    }
    model->choice = choice_of(snapshot, snapshots, main, faults);
    return model;
  }
  std::string message = fmt::format("{}: holds no complete snapshot", repository);
  for (const std::string& fault : faults) message += "; " + fault;
  return Error{ErrorCode::kNotFound, std::move(message)};
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "" : path.substr(0, slash);
}

}  // namespace

Result<ModelFiles> find_model_files(const std::string& given, const Disk& disk) {
  const std::string path = without_slashes(given);
  auto entries = disk.list(path);
  if (entries) {
    const bool is_repository = std::any_of(entries->begin(), entries->end(), [](const FolderEntry& entry) {
      return entry.is_folder && entry.name == kSnapshots;
    });
    return is_repository ? files_in_repository(path, disk) : files_in_folder(path, *entries, disk);
  }
  if (entries.error().code != ErrorCode::kUnsupported) return entries.error();
  const std::string folder = folder_of(path);
  if (!path.ends_with(".json")) return ModelFiles{{path}, std::nullopt, folder, ""};
  auto beside = disk.list(folder.empty() ? "/" : folder);
  if (!beside) return beside.error();
  const bool has_folder = path.find('/') != std::string::npos;
  return indexed_files(folder, has_folder ? path.substr(folder.size() + 1) : path, files_of(*beside), disk);
}

}  // namespace rowtide::checkpoint
