#include "cli/doctor/place.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "cli/drive_subject.h"
#include "cli/failure.h"
#include "cli/log_sink.h"
#include "cli/progress.h"
#include "io/block_source.h"
#include "io/scratch_file.h"
#include "rowtide/log.h"

namespace rowtide::cli::doctor {
namespace {

/// Keeps the library's log lines, which the findings say in their own words, off standard error.
class LogLines {
 public:
  LogLines() {
    set_log_sink([this](LogLevel, std::string_view line) { text_ += std::string(line) + "\n"; });
  }
  ~LogLines() { install_log_sink(); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  std::string line_with(std::string_view words) const {
    const std::size_t at = text_.find(words);
    if (at == std::string::npos) return {};
    const std::size_t begin = text_.rfind('\n', at) == std::string::npos ? 0 : text_.rfind('\n', at) + 1;
    return text_.substr(begin, text_.find('\n', at) - begin);
  }

 private:
  std::string text_;
};

std::string with_name(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

void read_there(Place& place, const std::string& subject_path) {
  DriveSubject subject = drive_subject_of(subject_path, io::ScratchFile::kBytesLeast);
  place.scratch = subject.scratch.has_value();
  const std::string path = subject.path();
  const LogLines lines;
  const std::uint32_t depth = std::min(place.calibrated_depth.value_or(io::kDepthMeasuredMax), io::kDepthMeasuredMax);
  const auto source = value_of(io::open_block_source({path}, {.depth = depth}));
  place.opened = true;
  place.by_uring = source->method().starts_with("io_uring");
  place.direct = source->direct();
  place.block_bytes = source->block_bytes();
  place.why_not_direct = with_name(lines.line_with("using buffered reads"), path, place.path);
  Progress progress("reading");
  place.glance = value_of(
      io::glance_at_drive(*source, depth, std::random_device{}(), [&](double share) { progress.update(share); }));
}

}  // namespace

Place look_at_place(const std::string& path, const std::optional<std::string>& subject, std::uint32_t rows_per_token) {
  Place place;
  place.path = path;
  place.rows_per_token = rows_per_token;
  place.drive = opened(io::drive_of(path));
  std::error_code failed;
  const std::filesystem::path canonical = std::filesystem::canonical(path, failed);
  if (!failed) place.mount = io::mount_of(canonical.string());
  place.calibrated_depth = io::calibrated_depth(path);
  if (!subject) return place;
  try {
    read_there(place, *subject);
  } catch (const Failure& failure) {
    place.failed = failure.what();
  }
  return place;
}

}  // namespace rowtide::cli::doctor
