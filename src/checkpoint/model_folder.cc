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
constexpr std::string_view kGgufEnding = ".gguf";
constexpr std::string_view kUsualName = "model";
constexpr std::string_view kConfigName = "config.json";
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

/// Names that begin with a dot are none of a checkpoint's: "._model.safetensors" is what macOS notes of that file.
std::vector<std::string> ending_in(const std::vector<std::string>& names, std::string_view ending) {
  std::vector<std::string> found;
  std::copy_if(names.begin(), names.end(), std::back_inserter(found),
               [&](const std::string& name) { return name.ends_with(ending) && !name.starts_with('.'); });
  return found;
}

bool contains(const std::vector<std::string>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

std::string usual_name(std::string_view ending) { return std::string(kUsualName) + std::string(ending); }

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

ModelFiles one_file(const std::string& folder, const std::string& name) {
  return {{folder + "/" + name}, std::nullopt, folder, ""};
}

/// Of a folder in which nothing says what is to be opened.
Error no_choice(const std::string& folder, const std::vector<std::string>& names) {
  if (const auto indexes = ending_in(names, kIndexEnding); !indexes.empty()) {
    return make_error(ErrorCode::kNotFound, "{}: holds several checkpoints ({}); name one of these files", folder,
                      enumerated(indexes));
  }
  if (const auto files = ending_in(names, kFileEnding); !files.empty()) {
    return make_error(ErrorCode::kNotFound,
                      "{}: holds {} safetensors files ({}), but no index (*{}) that names those which belong together: "
                      "fetch the index, or name one file",
                      folder, files.size(), enumerated(files), kIndexEnding);
  }
  const auto ggufs = ending_in(names, kGgufEnding);
  return make_error(ErrorCode::kNotFound, "{}: holds no *{} file and no *{}{}", folder, kFileEnding, kIndexEnding,
                    ggufs.empty() ? "" : fmt::format("; name its GGUF file ({})", enumerated(ggufs)));
}

/// The usual file, else the usual index, else the only index, else the only file.
Result<ModelFiles> files_in_folder(const std::string& folder, const std::vector<FolderEntry>& entries,
                                   const Disk& disk) {
  const std::vector<std::string> names = files_of(entries);
  const std::vector<std::string> files = ending_in(names, kFileEnding);
  const std::vector<std::string> indexes = ending_in(names, kIndexEnding);
  const std::string usual_file = usual_name(kFileEnding);
  const std::string usual_index = usual_name(kIndexEnding);
  if (contains(files, usual_file)) return one_file(folder, usual_file);
  if (contains(indexes, usual_index)) return indexed_files(folder, usual_index, names, disk);
  if (indexes.size() == 1) return indexed_files(folder, indexes.front(), names, disk);
  if (indexes.empty() && files.size() == 1) return one_file(folder, files.front());
  return no_choice(folder, names);
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
  std::erase_if(entries, [](const FolderEntry& entry) { return !entry.is_folder || entry.name.starts_with('.'); });
  std::stable_sort(entries.begin(), entries.end(), [&](const FolderEntry& a, const FolderEntry& b) {
    if ((a.name == main) != (b.name == main)) return a.name == main;
    return a.modified_ns > b.modified_ns;
  });
  return entries;
}

/// A snapshot that holds every safetensors file it should. It is complete if it has a config.json too.
struct Fetched {
  FolderEntry snapshot;
  ModelFiles model;
  bool has_config = false;
};

Result<Fetched> fetched_snapshot(const std::string& folder, const FolderEntry& snapshot, const Disk& disk) {
  auto entries = disk.list(folder);
  if (!entries) return entries.error();
  auto model = files_in_folder(folder, *entries, disk);
  if (!model) return model.error();
  return Fetched{snapshot, *std::move(model), contains(files_of(*entries), kConfigName)};
}

/// As Safetensors::choice(), of a snapshot before which others were passed over for their `faults`.
std::string choice_of(const Fetched& chosen, const std::vector<FolderEntry>& snapshots, const std::string& main,
                      const std::vector<std::string>& faults) {
  const std::string& name = chosen.snapshot.name;
  const bool is_main = name == main;
  if (snapshots.size() == 1 && (is_main || main.empty())) return "";
  std::string choice = fmt::format("snapshot {} of {} is open: {}", printable(name), snapshots.size(),
                                   !chosen.has_config ? "none is complete, and it holds all its safetensors files"
                                   : is_main          ? "refs/main names it"
                                                      : "the newest that is complete");
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
  std::optional<Fetched> chosen;
  for (const FolderEntry& snapshot : snapshots) {
    const std::string path = folder + "/" + snapshot.name;
    auto fetched = fetched_snapshot(path, snapshot, disk);
    if (!fetched && fetched.error().code != ErrorCode::kNotFound) return fetched.error();
    const bool is_complete = fetched && fetched->has_config;
    if (!is_complete) {
      faults.push_back((snapshot.name == main ? "refs/main names " : "") +
                       (fetched ? fmt::format("{}: lacks {}", path, kConfigName) : fetched.error().message));
    }
    if (fetched && (is_complete || !chosen)) chosen = *std::move(fetched);
    if (is_complete) break;
  }
  if (chosen) {
    chosen->model.choice = choice_of(*chosen, snapshots, main, faults);
    return std::move(chosen->model);
  }
  std::string message = fmt::format("{}: holds no complete snapshot", repository);
  for (const std::string& fault : faults) message += "; " + fault;
  return Error{ErrorCode::kNotFound, std::move(message)};
}

/// A folder that holds safetensors files or an index of its own is a model's, whatever else lies in it.
bool is_repository(const std::vector<FolderEntry>& entries) {
  const std::vector<std::string> names = files_of(entries);
  if (!ending_in(names, kFileEnding).empty() || !ending_in(names, kIndexEnding).empty()) return false;
  return std::any_of(entries.begin(), entries.end(),
                     [](const FolderEntry& entry) { return entry.is_folder && entry.name == kSnapshots; });
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
    return is_repository(*entries) ? files_in_repository(path, disk) : files_in_folder(path, *entries, disk);
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
