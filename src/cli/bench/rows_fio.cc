#include "cli/bench/rows_fio.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"

extern char** environ;

namespace rowtide::cli {
namespace {

constexpr std::size_t kFioDepth = 256;  // the store's default

/// fio separates names of files by colons.
std::string fio_files(const BenchSource& source) {
  std::string names;
  for (const std::string& path : source.paths()) {
    if (!names.empty()) names += ':';
    for (const char c : path) {
      if (c == ':') names += '\\';
      names += c;
    }
  }
  return names;
}

std::vector<std::string> fio_arguments(const BenchSource& source, std::size_t batch, std::uint64_t reads) {
  std::vector<std::string> arguments{"fio",
                                     "--name=random",
                                     "--readonly",
                                     "--direct=1",
                                     "--rw=randread",
                                     "--ioengine=io_uring",
                                     "--randrepeat=0",
                                     "--norandommap=1",
                                     "--output-format=json"};
  auto add = [&](std::string_view name, const auto& value) {
    arguments.push_back(fmt::format("--{}={}", name, value));
  };
  add("filename", fio_files(source));
  add("bs", source.block_bytes);
  add("number_ios", reads);
  add("iodepth", std::min(batch, kFioDepth));
  if (batch < kFioDepth) {
    for (const char* name : {"iodepth_batch_submit", "iodepth_batch_complete_min", "iodepth_batch_complete_max"}) {
      add(name, batch);
    }
  }
  if (source.paths().size() == 1) {
    const auto range = source.range(0);
    const std::uint64_t begin = range.begin / source.block_bytes * source.block_bytes;
    const std::uint64_t bytes = (range.end - begin) / source.block_bytes * source.block_bytes;
    if (bytes > 0) {
      add("offset", begin);
      add("size", bytes);
      // Without a limit of its own fio ends when it has read as many bytes as there are.
      add("io_size", reads * source.block_bytes);
    }
  }
  return arguments;
}

struct Ran {
  int status = -1;
  std::string output;
};

/// What the program wrote to standard output; status 127 where it is not installed.
Ran run_program(const std::vector<std::string>& arguments) {
  Ran ran;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ran;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  char buffer[4096];
  for (ssize_t got = 1; error == 0 && got != 0;) {
    got = ::read(ends[0], buffer, sizeof buffer);
    if (got > 0) ran.output.append(buffer, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  ::close(ends[0]);
  if (error != 0) {
    ran.status = 127;
  } else {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  return ran;
}

}  // namespace

std::variant<FioRun, std::string> run_fio(const BenchSource& source, std::size_t batch, std::uint64_t reads) {
  using nlohmann::json;
  const Ran ran = run_program(fio_arguments(source, batch, reads));
  if (ran.status == 127) return "fio is not installed";
  const std::size_t start = ran.output.find('{');
  const json parsed = start == std::string::npos ? json() : json::parse(ran.output.substr(start), nullptr, false);
  if (ran.status != 0 || !parsed.is_object() || !parsed.contains("jobs")) {
    return fmt::format("fio failed (exit status {})", ran.status);
  }
  const json& job = parsed["jobs"][0];
  const json& read = job["read"];
  const double seconds = read.value("runtime", 0.0) / 1e3;
  const double done = read.value("total_ios", 0.0);
  if (done == 0 || seconds == 0) return "fio read nothing";
  const double cpu_share = (job.value("usr_cpu", 0.0) + job.value("sys_cpu", 0.0)) / 100;
  return FioRun{read.value("iops", 0.0), static_cast<std::uint64_t>(done), 1e6 * cpu_share * seconds / done};
}

}  // namespace rowtide::cli
