#include "io/drive.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "io/file.h"

namespace rowtide::io {
namespace {

constexpr std::string_view kFirstLine = "rowtide drive 1\n";
constexpr std::size_t kFileBytesMax = 4096;

/// A file of /sys: its text without blanks around it; empty where there is none.
std::string attribute(const std::string& path) {
  std::array<char, 256> text{};
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const ssize_t got = ::read(descriptor, text.data(), text.size());
  ::close(descriptor);
  const std::string_view all(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const auto begin = all.find_first_not_of(" \n\t");
  if (begin == std::string_view::npos) return {};
  return printable(all.substr(begin, all.find_last_not_of(" \n\t") + 1 - begin));
}

/// The folder of /sys of the whole disk that has this device number; empty where the number is no block device's.
std::string disk_folder(dev_t device) {
  const std::string link = fmt::format("/sys/dev/block/{}:{}", major(device), minor(device));
  std::array<char, PATH_MAX> resolved{};
  if (::realpath(link.c_str(), resolved.data()) == nullptr) return {};
  std::string folder = resolved.data();
  if (!attribute(folder + "/partition").empty()) folder.resize(folder.rfind('/'));
  return folder;
}

Drive block_drive(const std::string& folder) {
  Drive drive;
  drive.name = folder.substr(folder.rfind('/') + 1);
  // Names are given out anew at each start; whatever the drive says of itself is not.
  drive.identity = "name " + drive.name;
  for (const char* own : {"wwid", "serial", "device/wwid", "device/serial", "dm/uuid", "md/uuid"}) {
    const std::string value = attribute(folder + "/" + own);
    if (value.empty()) continue;
    drive.identity = fmt::format("{} {}", own, value);
    break;
  }
  drive.identity += fmt::format(" sectors {}", attribute(folder + "/size"));
  const std::string model = attribute(folder + "/device/model");
  if (!model.empty()) drive.name += " " + model;
  return drive;
}

/// A file system over no block device of its own: in memory, of the network, or over several drives.
Drive unnamed_drive(const struct statfs& system) {
  Drive drive;
  drive.in_memory = system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
  drive.name = drive.in_memory ? "memory" : fmt::format("file system {:x}", system.f_type);
  drive.identity = fmt::format("file system {:x} {:x} {:x} {}", system.f_type, system.f_fsid.__val[0],
                               system.f_fsid.__val[1], system.f_blocks);
  return drive;
}

/// The absolute folder for files that may be lost; empty where the environment names none.
std::string cache_folder() {
  const char* const named = ::secure_getenv("XDG_CACHE_HOME");
  if (named != nullptr && named[0] == '/') return named;
  const char* const home = ::secure_getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache" : std::string();
}

std::string text_of(const Drive& drive, const DriveFigures& figures) {
  std::string text(kFirstLine);
  text += fmt::format("name {}\nbest_depth {}\nblock_bytes {}\nserial_us {:.1f}\nsequential_bytes_per_s {:.0f}\n",
                      drive.name, figures.best_depth, figures.block_bytes, figures.serial_us,
                      figures.sequential_bytes_per_s);
  for (const auto& [depth, rate] : figures.depth_curve) text += fmt::format("reads_per_s {} {:.0f}\n", depth, rate);
  return text;
}

/// The number that follows `key` at the start of a line, if it is a whole line and within 1..most.
std::optional<std::uint32_t> number_of(std::string_view text, std::string_view key, std::uint32_t most) {
  const auto line = text.find(fmt::format("\n{} ", key));
  if (line == std::string_view::npos) return std::nullopt;
  text.remove_prefix(line + key.size() + 2);
  const auto length = text.find('\n');
  if (length == std::string_view::npos) return std::nullopt;
  const char* const end = text.begin() + length;
  std::uint32_t number = 0;
  const auto [stop, failure] = std::from_chars(text.begin(), end, number);
  if (failure != std::errc() || stop != end || number == 0 || number > most) return std::nullopt;
  return number;
}

/// What the file holds, if it begins as such a file does. kNotFound without a file; else what is wrong with it.
Result<std::string> kept_text(const std::string& path) {
  auto file = open_file(path);
  if (!file) return file.error();
  const std::uint64_t bytes = (*file)->bytes();
  if (bytes > kFileBytesMax) return make_error(ErrorCode::kMalformed, "{}: has {} bytes", path, bytes);
  std::string text(bytes, '\0');
  if (auto read = (*file)->read(0, std::as_writable_bytes(std::span(text))); !read) return read.error();
  if (!text.starts_with(kFirstLine) || !number_of(text, "best_depth", kDepthMax)) {
    return make_error(ErrorCode::kMalformed, "{}: holds no depth of 1 to {}", path, kDepthMax);
  }
  return text;
}

/// The text kept for the drive below `path`; one log line where a file is there and holds none.
std::optional<std::string> text_kept_for(const std::string& path) {
  const auto drive = drive_of(path);
  if (!drive) return std::nullopt;
  const std::string kept = figures_path(*drive);
  if (kept.empty()) return std::nullopt;
  auto text = kept_text(kept);
  if (text) return *std::move(text);
  if (text.error().code != ErrorCode::kNotFound) {
    log_line_once(LogLevel::kWarn,
                  fmt::format("{}; it is ignored, `rowtide calibrate` makes it anew", text.error().message));
  }
  return std::nullopt;
}

/// The amount at the start of `text`, which must be all of it and more than 0.
std::optional<double> amount_of(std::string_view text) {
  double amount = 0;
  const auto [stop, failure] = std::from_chars(text.begin(), text.end(), amount);
  if (failure != std::errc() || stop != text.end() || !std::isfinite(amount) || amount <= 0) return std::nullopt;
  return amount;
}

/// One line of a kept file; those of other keys are left alone.
void read_line(std::string_view line, DriveFigures& figures) {
  const auto gap = line.find(' ');
  if (gap == std::string_view::npos) return;
  const std::string_view key = line.substr(0, gap), value = line.substr(gap + 1);
  if (key == "serial_us") figures.serial_us = amount_of(value).value_or(0);
  if (key == "sequential_bytes_per_s") figures.sequential_bytes_per_s = amount_of(value).value_or(0);
  const auto second = value.find(' ');
  if (key != "reads_per_s" || second == std::string_view::npos) return;
  const auto depth = amount_of(value.substr(0, second)), rate = amount_of(value.substr(second + 1));
  if (depth && rate && *depth <= kDepthMax) figures.depth_curve.emplace_back(static_cast<std::uint32_t>(*depth), *rate);
}

/// Writes `text` into a new file beside `path` and puts it in its place.
Result<void> replace_file(const std::string& path, std::string_view text) {
  std::string beside = path + ".XXXXXX";
  const int descriptor = ::mkostemp(beside.data(), O_CLOEXEC);
  if (descriptor < 0) return make_error(ErrorCode::kIo, "{}: cannot be written: {}", path, errno_text(errno));
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  const bool whole = written >= 0 && static_cast<std::size_t>(written) == text.size() && ::fsync(descriptor) == 0;
  int failure = whole ? 0 : written >= 0 && errno == 0 ? ENOSPC : errno;
  ::close(descriptor);
  if (failure == 0 && ::rename(beside.c_str(), path.c_str()) != 0) failure = errno;
  if (failure == 0) return {};
  ::unlink(beside.c_str());
  return make_error(ErrorCode::kIo, "{}: cannot be written: {}", path, errno_text(failure));
}

}  // namespace

Result<Drive> drive_of(const std::string& path) {
  struct stat info{};
  struct statfs system{};
  if (::stat(path.c_str(), &info) != 0 || ::statfs(path.c_str(), &system) != 0) {
    const ErrorCode code = errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
    return make_error(code, "{}: cannot be examined: {}", path, errno_text(errno));
  }
  const std::string folder = disk_folder(info.st_dev);
  return folder.empty() ? unnamed_drive(system) : block_drive(folder);
}

std::string figures_path(const Drive& drive) {
  const std::string folder = cache_folder();
  if (folder.empty()) return {};
  const std::string digest = sha256_hex(std::as_bytes(std::span(drive.identity)));
  return fmt::format("{}/rowtide/drive-{}", folder, digest.substr(0, 16));
}

Result<void> keep_figures(const Drive& drive, const DriveFigures& figures) {
  const std::string path = figures_path(drive);
  if (path.empty()) {
    return make_error(ErrorCode::kIo, "figures of {} cannot be kept: neither XDG_CACHE_HOME nor HOME is set",
                      drive.name);
  }
  // The folder for caches may be missing as well; whatever is not made here is noticed by the write.
  const std::string folder = path.substr(0, path.rfind('/'));
  for (auto end = folder.find('/', 1); end != std::string::npos; end = folder.find('/', end + 1)) {
    ::mkdir(folder.substr(0, end).c_str(), 0700);
  }
  ::mkdir(folder.c_str(), 0700);
  return replace_file(path, text_of(drive, figures));
}

std::optional<DriveFigures> calibrated_figures(const std::string& path) {
  const auto text = text_kept_for(path);
  if (!text) return std::nullopt;
  DriveFigures figures;
  figures.best_depth = number_of(*text, "best_depth", kDepthMax).value_or(0);
  figures.block_bytes = number_of(*text, "block_bytes", 1u << 30).value_or(0);
  for (std::string_view left = *text; !left.empty();) {
    const auto length = std::min(left.find('\n'), left.size() - 1);
    read_line(left.substr(0, length), figures);
    left.remove_prefix(length + 1);
  }
  const bool is_whole = figures.block_bytes != 0 && figures.serial_us > 0 && figures.sequential_bytes_per_s > 0 &&
                        !figures.depth_curve.empty();
  return is_whole ? std::optional(std::move(figures)) : std::nullopt;
}

std::optional<std::uint32_t> calibrated_depth(const std::string& path) {
  const auto text = text_kept_for(path);
  return text ? number_of(*text, "best_depth", kDepthMax) : std::nullopt;
}

}  // namespace rowtide::io
