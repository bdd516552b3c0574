// rowtide calibrate: what a drive can do, and the depth to read it at.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/drive_subject.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "io/block_source.h"
#include "io/drive.h"
#include "io/measure_drive.h"

namespace rowtide::cli {
namespace {

constexpr std::uint64_t kScratchBytes = std::uint64_t{1} << 30;
constexpr double kSlowReadsPerS = 2000;

struct Calibrated {
  io::Drive drive;
  io::DriveFigures figures;
  std::optional<std::string> existing;
  std::uint64_t file_bytes = 0;
  std::string method;
  std::optional<std::string> kept;  // where
  std::vector<std::string> notes;
};

double best_rate(const io::DriveFigures& figures) {
  double best = 0;
  for (const auto& point : figures.depth_curve) best = std::max(best, point.second);
  return best;
}

Calibrated calibrate(const std::string& path) {
  Calibrated done;
  done.drive = value_of(io::drive_of(path));
  const DriveSubject subject = drive_subject_of(path, kScratchBytes);
  const auto source = value_of(io::open_block_source({subject.path()}, {.depth = io::kDepthMeasuredMax}));
  done.existing = subject.existing;
  done.file_bytes = source->file_bytes(0);
  done.method = source->method();
  {
    Progress progress("measuring");
    done.figures =
        value_of(io::measure_drive(*source, std::random_device{}(), [&](double share) { progress.update(share); }));
  }
  if (done.drive.in_memory) {
    done.notes.push_back("this folder lies in memory: there is no drive to calibrate, and nothing is kept");
  } else if (!source->direct()) {
    done.notes.push_back("no direct I/O here: these are figures of the page cache, and nothing is kept");
  } else {
    const auto kept = io::keep_figures(done.drive, done.figures);
    if (kept) done.kept = io::figures_path(done.drive);
    if (!kept) done.notes.push_back(fmt::format("the figures could not be kept: {}", kept.error().message));
  }
  const double best = best_rate(done.figures);
  if (best < kSlowReadsPerS) {
    done.notes.push_back(fmt::format(
        "{:.0f} reads/s at best: this looks like a hard disk or a throttled drive; cold rows will be slow", best));
  }
  double load = 0;
  const unsigned cores = std::thread::hardware_concurrency();
  if (::getloadavg(&load, 1) == 1 && load > cores) {
    done.notes.push_back(fmt::format(
        "{:.0f} tasks wanted the {} cores in the last minute, which makes small depths look slow; calibrate again on a "
        "quiet machine",
        load, cores));
  }
  if (!subject.existing && !done.drive.in_memory) {
    done.notes.push_back(
        "a file just written may come from a cache in or below the drive; name a model that was not read lately "
        "instead of its folder to be sure");
  }
  return done;
}

Json to_json(const Calibrated& done) {
  Json curve = Json::array();
  for (const auto& [depth, rate] : done.figures.depth_curve) {
    curve.push_back({{"depth", depth}, {"reads_per_s", rate}});
  }
  return {{"device", done.drive.name},
          {"block", done.figures.block_bytes},
          {"file", done.existing ? Json(*done.existing) : Json(nullptr)},
          {"file_bytes", done.file_bytes},
          {"method", done.method},
          {"serial_us", done.figures.serial_us},
          {"depth_curve", std::move(curve)},
          {"sequential_bytes_per_s", done.figures.sequential_bytes_per_s},
          {"best_depth", done.figures.best_depth},
          {"kept", done.kept ? Json(*done.kept) : Json(nullptr)},
          {"notes", done.notes}};
}

void print(const Calibrated& done) {
  const io::DriveFigures& figures = done.figures;
  fmt::print("{}\n", done.drive.name);
  fmt::print("{}", columns({{"read from", fmt::format("{}, {}", done.existing.value_or("a scratch file"),
                                                      size_text(done.file_bytes))},
                            {"by", done.method},
                            {"one read", fmt::format("{:.0f} us", figures.serial_us)},
                            {"sequential", fmt::format("{:.0f} MB/s", figures.sequential_bytes_per_s / 1e6)}},
                           2));
  fmt::print("\nReads of {} bytes a second, by how many are in flight\n", grouped(figures.block_bytes));
  std::vector<std::vector<std::string>> lines;
  for (const auto& [depth, rate] : figures.depth_curve) {
    lines.push_back({fmt::format("{:>3}", depth), fmt::format("{:>9}", grouped(static_cast<std::uint64_t>(rate)))});
    if (depth == figures.best_depth) lines.back().push_back("the least within 5 % of the best");
  }
  fmt::print("{}", columns(lines, 2));
  if (done.kept)
    fmt::print("\nKept in {}: stores on this drive take {} for their depth.\n", *done.kept, figures.best_depth);
  if (!done.kept && !done.notes.empty()) fmt::print("\n");
  for (const std::string& note : done.notes) fmt::print("Note: {}.\n", note);
}

}  // namespace

ExitCode run_calibrate(const Arguments& arguments) {
  std::string path;
  bool json = false;
  ArgumentParser parser(
      "rowtide calibrate",
      "Measures the drive below a folder for a few seconds: latency, reads a second by depth, sequential speed.\n"
      "Stores on that drive then take the best depth unless told another. Reads the largest file of the folder if it\n"
      "has 1 GiB or more, else a scratch file of up to 1 GiB that is gone afterwards, however the program ends.",
      "  rowtide calibrate .\n"
      "  rowtide calibrate --json models/full.gguf\n",
      json);
  parser.required_path(path, "a folder; or a file, which is then read and nothing written");
  if (!parser.parse(arguments)) return kExitDone;

  const Calibrated done = calibrate(path);
  if (json) {
    print_json(to_json(done));
  } else {
    print(done);
  }
  return kExitDone;
}

}  // namespace rowtide::cli
