// rowtide doctor: what this machine can do, what is wrong with it, and what mends that.

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "cli/doctor/checks.h"
#include "cli/doctor/page.h"
#include "cli/doctor/place.h"
#include "cli/json_output.h"
#include "cli/terminal.h"
#include "rowtide/addressing.h"
#include "table/row_decoders.h"

namespace rowtide::cli {
namespace doctor {
namespace {

std::optional<std::uint64_t> shm_bytes() {
  struct statvfs system{};
  if (::statvfs("/dev/shm", &system) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(system.f_blocks) * system.f_frsize;
}

/// A file, or a folder that holds a model in several, or a hub's cache of one: Checkpoint::open() is then asked.
/// Another folder is a place where models would lie.
bool names_a_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return true;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    const std::filesystem::path name = entry.path().filename();
    if (name.extension() == ".safetensors" || name == "model.safetensors.index.json" || name == "snapshots")
      return true;
  }
  return false;
}

/// What can be read of `path` to measure the drive below it.
std::optional<std::string> subject_of(const std::string& path, const std::optional<Result<Checkpoint>>& checkpoint) {
  std::error_code ignored;
  if (!checkpoint) return path;
  if (!*checkpoint) return std::filesystem::is_regular_file(path, ignored) ? std::optional(path) : std::nullopt;
  const Checkpoint& opened = **checkpoint;
  return opened.tables().empty() ? opened.files().front().path
                                 : opened.tables().front().components.front().extents.front().path;
}

std::uint32_t rows_per_token(const Checkpoint& checkpoint) {
  std::uint32_t rows = 0;
  for (const Table& table : checkpoint.tables()) {
    if (table.addressing) rows += static_cast<std::uint32_t>(table.addressing->rows_per_token());
  }
  return rows;
}

struct Report {
  Findings findings;
  std::uint64_t suggested_memory_bytes = 0;

  void add(Findings more) { std::ranges::move(more, std::back_inserter(findings)); }
  bool ok() const {
    return std::ranges::none_of(findings, [](const Finding& finding) { return finding.level == Level::kProblem; });
  }
};

/// `path`: nothing where none was given.
Report examine(const std::optional<std::string>& path) {
  std::optional<Result<Checkpoint>> checkpoint;
  if (path && names_a_checkpoint(*path)) checkpoint = Checkpoint::open(*path);
  if (checkpoint && !*checkpoint && checkpoint->error().code == ErrorCode::kNotFound &&
      !std::filesystem::exists(*path)) {
    throw Failure(checkpoint->error());
  }
  const Checkpoint* const opened_one = checkpoint && *checkpoint ? &**checkpoint : nullptr;
  const auto available = io::available_memory();
  const System system{"", io::probe_uring(kReaderBufferBytes), row_decoders().back()->instruction_set, shm_bytes()};

  Report report;
  report.add(check_system(system));
  report.add(check_memory(system));
  const std::string place = path.value_or(".");
  report.add(check_storage(
      look_at_place(place, subject_of(place, checkpoint), opened_one == nullptr ? 0 : rows_per_token(*opened_one))));
  if (checkpoint) report.add(check_checkpoint(*checkpoint, available));
  const char* search_path = std::getenv("PATH");
  report.add(check_engine(probe_engine(search_path == nullptr ? "" : search_path)));
  report.suggested_memory_bytes = suggested_memory_bytes(opened_one, available);
  return report;
}

Json to_json(const Report& report) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back({{"id", finding.id},
                        {"level", level_name(finding.level)},
                        {"finding", finding.finding},
                        {"meaning", finding.meaning},
                        {"fix", finding.fix}});
  }
  return {{"ok", report.ok()},
          {"findings", std::move(findings)},
          {"suggested_memory_bytes", report.suggested_memory_bytes}};
}

}  // namespace
}  // namespace doctor

ExitCode run_doctor(const Arguments& arguments) {
  std::optional<std::string> path;
  bool json = false;
  ArgumentParser parser(
      "rowtide doctor",
      "What this machine can do for Rowtide, what is wrong with it, and the command that mends it: the kernel, "
      "memory,\n"
      "the drive below PATH, the checkpoint if PATH is one, and llama-server in PATH. Takes a few seconds: the drive "
      "is\n"
      "read for two of them, and llama-server is started without a model. A checkpoint is only read. In a folder\n"
      "without a large file a scratch file of 64 MiB is written, which is gone afterwards.\n\n"
      "The end is 1 where something keeps Rowtide from working; warnings do not.",
      "  rowtide doctor\n"
      "  rowtide doctor models/tidepool.gguf\n"
      "  rowtide doctor --json /models\n",
      json);
  parser.optional_path(path, "a checkpoint; or a file or folder on the drive where models lie, . without it");
  if (!parser.parse(arguments)) return kExitDone;

  const doctor::Report report = doctor::examine(path);
  if (json) {
    print_json(doctor::to_json(report));
  } else {
    fmt::print("{}",
               doctor::page_of(report.findings, report.suggested_memory_bytes, wants_colours(), page_width(80, 120)));
  }
  return report.ok() ? kExitDone : kExitNotSo;
}

}  // namespace rowtide::cli
