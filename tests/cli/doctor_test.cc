// The doctor's checks, shown machines of all kinds; its page; and programs that hang, crash or print without end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <string>

#include "base/error.h"
#include "cli/doctor/checks.h"
#include "cli/doctor/limited_run.h"
#include "cli/doctor/page.h"
#include "support/fake_machine.h"

namespace rowtide::cli::doctor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

constexpr std::uint64_t kMib = std::uint64_t{1} << 20, kGib = std::uint64_t{1} << 30;

const Finding& named(const Findings& findings, std::string_view id) {
  const auto at = std::ranges::find(findings, id, &Finding::id);
  if (at == findings.end()) throw std::runtime_error("no finding " + std::string(id));
  return *at;
}

/// A machine on which everything is as it should be.
class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    machine_.put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    status(0, "000001ffffffffff");
    limits("8388608", "1024");
    meminfo(32 * kGib, 0, 0);
    machine_.put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    system_ = {machine_.root(), {}, "avx2", 16 * kGib};
  }

  void status(int seccomp, const std::string& capabilities) {
    machine_.put("/proc/self/status", "Name:\trowtide\nVmSize:\t  1000 kB\nCapEff:\t" + capabilities +
                                          "\nNoNewPrivs:\t1\nSeccomp:\t" + std::to_string(seccomp) +
                                          "\nSeccomp_filters:\t1\n");
  }
  void limits(const std::string& locked, const std::string& files) {
    machine_.put("/proc/self/limits",
                 "Limit                     Soft Limit           Hard Limit           Units     \n"
                 "Max open files            " +
                     files +
                     "                 1048576              files     \n"
                     "Max locked memory         " +
                     locked +
                     "              unlimited              bytes     \n"
                     "Max address space         unlimited            unlimited            bytes     \n");
  }
  void meminfo(std::uint64_t available, std::uint64_t swap, std::uint64_t swap_free) {
    const auto line = [](const char* name, std::uint64_t bytes) {
      return name + std::string("   ") + std::to_string(bytes / 1024) + " kB\n";
    };
    machine_.put("/proc/meminfo", line("MemTotal:", 64 * kGib) + line("MemFree:", kGib) +
                                      line("MemAvailable:", available) + line("SwapTotal:", swap) +
                                      line("SwapFree:", swap_free));
  }
  Finding system(std::string_view id) const { return named(check_system(system_), id); }
  Finding memory(std::string_view id) const { return named(check_memory(system_), id); }
  Finding refused(int ring_errno) {
    system_.uring.ring = ring_errno;
    const Finding found = system("io_uring");
    EXPECT_EQ(found.level, Level::kWarning);
    EXPECT_THAT(found.meaning, HasSubstr("pread"));
    return found;
  }

  FakeMachine machine_;
  System system_;
};

TEST_F(DoctorTest, FindsNothingWrongWhereNothingIs) {
  Findings all = check_system(system_);
  for (Finding& found : check_memory(system_)) all.push_back(std::move(found));
  for (const Finding& found : all) {
    EXPECT_EQ(found.level, Level::kOk) << found.id << ": " << found.finding;
    EXPECT_FALSE(found.finding.empty()) << found.id;
    EXPECT_EQ(found.fix, "") << found.id;
  }
  EXPECT_THAT(system("kernel").finding, HasSubstr("6.1.0-18-amd64"));
}

TEST_F(DoctorTest, KernelsTooOldForItsReads) {
  for (const auto& [release, level] : {std::pair{"5.15.0-91-generic", Level::kOk},
                                       {"5.6.0", Level::kOk},
                                       {"6.18.1", Level::kOk},
                                       {"10.0", Level::kOk},
                                       {"5.5.19", Level::kWarning},
                                       {"4.18.0-553.el8", Level::kWarning},
                                       {"fast", Level::kNote}}) {
    machine_.put("/proc/sys/kernel/osrelease", release + std::string("\n"));
    EXPECT_EQ(system("kernel").level, level) << release;
  }
}

TEST_F(DoctorTest, IoUringRefusedByTheSysctlToEveryone) {
  machine_.put("/proc/sys/kernel/io_uring_disabled", "2\n");
  status(2, "0000000000000000");  // in a container too the sysctl is the host's
  const Finding found = refused(EPERM);
  EXPECT_THAT(found.finding, HasSubstr("kernel.io_uring_disabled is 2"));
  EXPECT_THAT(found.fix, AllOf(HasSubstr("sysctl -w kernel.io_uring_disabled=0"), Not(HasSubstr("seccomp"))));
}

TEST_F(DoctorTest, IoUringRefusedByTheSysctlToOrdinaryUsers) {
  machine_.put("/proc/sys/kernel/io_uring_disabled", "1\n");
  status(0, "0000000000000000");
  EXPECT_THAT(refused(EPERM).fix, HasSubstr("kernel.io_uring_group"));
  status(2, "000001ffffffffff");  // whoever administers the system may: it is the filter then
  EXPECT_THAT(refused(EPERM).finding, AllOf(HasSubstr("seccomp"), Not(HasSubstr("sysctl"))));
}

TEST_F(DoctorTest, IoUringRefusedByASeccompFilter) {
  machine_.put("/proc/sys/kernel/io_uring_disabled", "0\n");
  status(2, "00000000a80425fb");
  for (const int error : {EPERM, ENOSYS}) {
    const Finding found = refused(error);
    EXPECT_THAT(found.finding, HasSubstr("seccomp filter"));
    EXPECT_THAT(found.fix, AllOf(HasSubstr("--security-opt seccomp="), HasSubstr("io_uring_setup")));
  }
}

TEST_F(DoctorTest, IoUringRefusedOtherwise) {
  EXPECT_THAT(refused(EPERM).finding, HasSubstr("neither"));
  EXPECT_THAT(refused(ENOSYS).fix, HasSubstr("CONFIG_IO_URING"));
  EXPECT_THAT(refused(ENOMEM).fix, HasSubstr("ulimit -l"));
  EXPECT_THAT(refused(EMFILE).fix, HasSubstr("ulimit -n"));
  EXPECT_THAT(refused(EINVAL).finding, HasSubstr(errno_text(EINVAL)));
  machine_.put("/proc/sys/kernel/osrelease", "4.19.0\n");
  EXPECT_THAT(refused(ENOSYS).finding, HasSubstr("5.1"));
}

TEST_F(DoctorTest, LockedMemory) {
  EXPECT_THAT(system("locked_memory").finding, HasSubstr("8.0 MiB may be locked; the limit does not hold"));
  status(0, "0000000000000000");
  limits("65536", "1024");
  EXPECT_EQ(system("locked_memory").finding, "65536 bytes may be locked");
  system_.uring.pinned = ENOMEM;
  const Finding found = system("locked_memory");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_THAT(found.finding, AllOf(HasSubstr("65536 bytes"), HasSubstr("4.0 MiB cannot be pinned")));
  EXPECT_THAT(found.fix, AllOf(HasSubstr("ulimit -l"), HasSubstr("--ulimit memlock=-1")));
  limits("unlimited", "1024");
  EXPECT_THAT(system("locked_memory").finding, HasSubstr("no limit"));
}

TEST_F(DoctorTest, OpenFiles) {
  limits("8388608", "255");
  EXPECT_EQ(system("open_files").level, Level::kWarning);
  EXPECT_THAT(system("open_files").finding, HasSubstr("255"));
  limits("8388608", "256");
  EXPECT_EQ(system("open_files").level, Level::kOk);
  limits("8388608", "unlimited");
  EXPECT_EQ(system("open_files").level, Level::kOk);
}

TEST_F(DoctorTest, ProcessorsWithoutTheirInstructions) {
  system_.instruction_set = "scalar";
  EXPECT_EQ(system("cpu").level, Level::kNote);
}

TEST_F(DoctorTest, TooLittleMemory) {
  meminfo(31 * kMib, 0, 0);
  EXPECT_EQ(memory("memory").level, Level::kProblem);
  EXPECT_THAT(memory("memory").meaning, HasSubstr("32.0 MiB"));
  meminfo(500 * kMib, 0, 0);
  EXPECT_EQ(memory("memory").level, Level::kWarning);
  machine_.put("/proc/meminfo", "MemTotal: 1 kB\n");
  EXPECT_EQ(memory("memory").level, Level::kNote);
  EXPECT_THAT(memory("memory").finding, HasSubstr("MemAvailable"));
}

TEST_F(DoctorTest, CgroupOfVersion2) {
  machine_.put("/proc/self/cgroup", "0::/box\n");
  machine_.put("/proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  machine_.put("/sys/fs/cgroup/box/memory.current", std::to_string(3 * kGib));
  machine_.put("/sys/fs/cgroup/box/memory.max", "max\n");
  EXPECT_EQ(memory("cgroup").finding, "no limit on this process's groups");
  machine_.put("/sys/fs/cgroup/box/memory.max", std::to_string(8 * kGib));
  EXPECT_EQ(memory("cgroup").level, Level::kOk);
  EXPECT_THAT(memory("cgroup").finding, HasSubstr("allows 8.000 GiB, of which 5.000 GiB are left"));
  machine_.put("/sys/fs/cgroup/box/memory.high", std::to_string(3 * kGib + 512 * kMib));
  EXPECT_EQ(memory("cgroup").level, Level::kWarning);
  EXPECT_THAT(memory("cgroup").finding, HasSubstr("512.0 MiB are left"));
  EXPECT_EQ(memory("memory").level, Level::kWarning);
  EXPECT_THAT(memory("memory").fix, HasSubstr("--memory"));
}

TEST_F(DoctorTest, CgroupOfVersion1) {
  machine_.put("/proc/self/cgroup", "4:memory:/box\n1:cpu:/box\n");
  machine_.put("/proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  machine_.put("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(kGib));
  machine_.put("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(kGib));
  machine_.put("/sys/fs/cgroup/memory/box/memory.stat", "total_inactive_file " + std::to_string(100 * kMib) + "\n");
  EXPECT_EQ(memory("cgroup").level, Level::kWarning);
  EXPECT_THAT(memory("cgroup").finding, HasSubstr("allows 1.000 GiB, of which 100.0 MiB are left"));
}

TEST_F(DoctorTest, Swap) {
  meminfo(32 * kGib, 8 * kGib, 7 * kGib);
  EXPECT_EQ(memory("swap").level, Level::kOk);
  meminfo(32 * kGib, 8 * kGib, 5 * kGib);
  EXPECT_EQ(memory("swap").level, Level::kNote);
  EXPECT_THAT(memory("swap").finding, HasSubstr("8.000 GiB, 3.000 GiB of it in use"));
}

TEST_F(DoctorTest, HugePages) {
  machine_.put("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(memory("huge_pages").level, Level::kNote);
  EXPECT_THAT(memory("huge_pages").fix, HasSubstr("transparent_hugepage/enabled"));
  machine_.put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
  EXPECT_EQ(memory("huge_pages").level, Level::kOk);
  machine_.put("/sys/kernel/mm/transparent_hugepage/enabled", "");
  EXPECT_EQ(memory("huge_pages").level, Level::kNote);
}

TEST_F(DoctorTest, SharedMemoryOfAContainer) {
  system_.shm_bytes = 64 * kMib;
  EXPECT_EQ(memory("shared_memory").level, Level::kNote);
  EXPECT_THAT(memory("shared_memory").fix, HasSubstr("--shm-size"));
  system_.shm_bytes = std::nullopt;
  EXPECT_EQ(memory("shared_memory").level, Level::kNote);
}

TEST_F(DoctorTest, UnifiedMemory) {
  machine_.put("/sys/class/dmi/id/product_name", "NVIDIA_DGX_Spark\n");
  EXPECT_EQ(memory("unified_memory").level, Level::kNote);
  EXPECT_THAT(memory("unified_memory").finding, HasSubstr("NVIDIA DGX Spark"));
}

/// A fast local drive with a calibration.
Place good_place() {
  Place place;
  place.path = "/models/m.gguf";
  place.mount = io::Mount{"259:1", "/", "/models", "ext4", "rw"};
  place.drive = {"nvme0n1", "serial 1", false};
  place.opened = place.by_uring = true;
  place.direct = true;
  place.block_bytes = 4096;
  place.glance = io::DriveGlance{80, 256, 400'000};
  place.calibrated_depth = 128;
  place.rows_per_token = 16;
  return place;
}

TEST(DoctorStorage, AGoodPlace) {
  const Findings findings = check_storage(good_place());
  for (const Finding& found : findings) EXPECT_EQ(found.level, Level::kOk) << found.id << ": " << found.finding;
  EXPECT_THAT(named(findings, "file_system").finding, HasSubstr("ext4, mounted at /models"));
  // 16 rows at 400,000 a second take 40 us, less than one read does.
  EXPECT_THAT(named(findings, "drive").finding, AllOf(HasSubstr("400,000 reads/s at 256"), HasSubstr("32.0 times"),
                                                      HasSubstr("16 rows take 0.1 ms"), HasSubstr("25,000 tokens/s")));
  EXPECT_THAT(named(findings, "calibration").finding, HasSubstr("128"));
}

TEST(DoctorStorage, FileSystems) {
  for (const auto& [type, level] : {std::pair{"xfs", Level::kOk},
                                    {"overlay", Level::kOk},
                                    {"btrfs", Level::kOk},
                                    {"nfs4", Level::kWarning},
                                    {"cifs", Level::kWarning},
                                    {"9p", Level::kWarning},
                                    {"virtiofs", Level::kWarning},
                                    {"fuse.sshfs", Level::kWarning},
                                    {"fuse.gocryptfs", Level::kNote},
                                    {"fuseblk", Level::kNote},
                                    {"tmpfs", Level::kNote},
                                    {"zfs", Level::kNote}}) {
    Place place = good_place();
    place.mount->type = type;
    EXPECT_EQ(named(check_storage(place), "file_system").level, level) << type;
  }
  Place place = good_place();
  place.mount.reset();
  EXPECT_EQ(named(check_storage(place), "file_system").level, Level::kNote);
}

TEST(DoctorStorage, Drives) {
  Place place = good_place();
  place.glance = io::DriveGlance{8'000, 32, 180};
  const Finding disk = named(check_storage(place), "drive");
  EXPECT_EQ(disk.level, Level::kWarning);
  EXPECT_THAT(disk.meaning, HasSubstr("hard disk"));
  EXPECT_THAT(disk.finding, HasSubstr("16 rows take 88.9 ms"));
  place.by_uring = false;
  EXPECT_THAT(named(check_storage(place), "drive").finding, HasSubstr("180 reads/s by 16 threads"));
  place.glance = io::DriveGlance{500, 256, 12'000};
  EXPECT_EQ(named(check_storage(place), "drive").level, Level::kNote);
  place.glance.reset();
  place.failed = "m.gguf: a file of 100 bytes is too small";
  EXPECT_EQ(named(check_storage(place), "drive").level, Level::kNote);
  EXPECT_THAT(named(check_storage(place), "drive").finding, HasSubstr("100 bytes"));
}

TEST(DoctorStorage, WithoutDirectReads) {
  Place place = good_place();
  place.direct = false;
  place.why_not_direct = "m.gguf: the file system offers no direct I/O";
  const Findings findings = check_storage(place);
  EXPECT_EQ(named(findings, "direct_io").level, Level::kWarning);
  EXPECT_EQ(named(findings, "direct_io").finding, place.why_not_direct);
  EXPECT_THROW(named(findings, "calibration"), std::runtime_error);  // nothing of it would be kept
}

TEST(DoctorStorage, WithoutCalibration) {
  Place place = good_place();
  place.calibrated_depth.reset();
  EXPECT_EQ(named(check_storage(place), "calibration").level, Level::kNote);
  EXPECT_THAT(named(check_storage(place), "calibration").fix, HasSubstr("rowtide calibrate '/models/m.gguf'"));
  place.path = "it's here";
  EXPECT_THAT(named(check_storage(place), "calibration").fix, HasSubstr("rowtide calibrate 'it'\\''s here'"));
  place.drive.in_memory = true;
  EXPECT_THROW(named(check_storage(place), "calibration"), std::runtime_error);
}

Result<io::AvailableMemory> available(std::uint64_t bytes) {
  io::AvailableMemory memory;
  memory.available_bytes = bytes;
  return memory;
}

TEST(DoctorCheckpoint, SuggestsTheWholeTableWhereItFits) {
  const auto checkpoint = Checkpoint::open(ROWTIDE_SOURCE_DIR "/models/tidepool.gguf");
  ASSERT_TRUE(checkpoint.ok());
  const std::uint64_t table = checkpoint->bytes_table(), weights = checkpoint->bytes_rest();
  const std::uint64_t whole = (table + kMib - 1) / kMib * kMib + 64 * kMib;
  EXPECT_EQ(suggested_memory_bytes(&*checkpoint, available(weights + 2 * whole)), whole);
  EXPECT_THAT(named(check_checkpoint(checkpoint, available(weights + 2 * whole)), "table_memory").meaning,
              HasSubstr("--mode resident --memory " + std::to_string(whole / kMib) + "MiB"));
  EXPECT_EQ(suggested_memory_bytes(&*checkpoint, available(weights + 2 * whole - 1)), 32 * kMib);
  EXPECT_EQ(named(check_checkpoint(checkpoint, available(weights + 2 * whole - 1)), "table_memory").level, Level::kOk);
  EXPECT_EQ(named(check_checkpoint(checkpoint, available(weights)), "table_memory").level, Level::kWarning);
}

TEST(DoctorCheckpoint, SuggestsWhatAStoreTakesWithoutOne) {
  EXPECT_EQ(suggested_memory_bytes(nullptr, available(100 * kGib)), kGib);
  EXPECT_EQ(suggested_memory_bytes(nullptr, available(4 * kGib)), 512 * kMib);
  EXPECT_EQ(suggested_memory_bytes(nullptr, available(kMib)), 32 * kMib);
  EXPECT_EQ(suggested_memory_bytes(nullptr, Error{ErrorCode::kUnsupported, "no /proc"}), 32 * kMib);
}

TEST(DoctorCheckpoint, RefusalsAreToldAsTheyAre) {
  for (const ErrorCode code : {ErrorCode::kMalformed, ErrorCode::kUnsupported, ErrorCode::kNotFound, ErrorCode::kIo}) {
    const Findings findings = check_checkpoint(Error{code, "m.gguf: is broken"}, available(kGib));
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].level, Level::kProblem);
    EXPECT_EQ(findings[0].finding, "m.gguf: is broken");
    EXPECT_FALSE(findings[0].fix.empty());
  }
}

TEST(DoctorEngine, EachOutcome) {
  using Plugin = EngineProbe::Plugin;
  EngineProbe probe;
  EXPECT_EQ(named(check_engine(probe), "llama_server").level, Level::kNote);
  EXPECT_EQ(named(check_engine(probe), "plug_in").level, Level::kNote);
  probe.plug_in = "/p/librowtide-ggml.so";
  EXPECT_EQ(named(check_engine(probe), "plug_in").level, Level::kOk);
  probe.llama_server = "/bin/llama-server";
  EXPECT_EQ(named(check_engine(probe), "llama_server").level, Level::kWarning);
  probe.version = "version: 1";
  EXPECT_EQ(named(check_engine(probe), "llama_server").level, Level::kOk);
  for (const auto& [outcome, level] : {std::pair{Plugin::kServes, Level::kNote},
                                       {Plugin::kListed, Level::kNote},
                                       {Plugin::kListedOnly, Level::kWarning},
                                       {Plugin::kRefused, Level::kProblem},
                                       {Plugin::kEnded, Level::kProblem},
                                       {Plugin::kTimeOut, Level::kWarning},
                                       {Plugin::kNotTried, Level::kNote}}) {
    probe.outcome = outcome;
    EXPECT_EQ(named(check_engine(probe), "plug_in").level, level) << static_cast<int>(outcome);
    EXPECT_FALSE(named(check_engine(probe), "plug_in").fix.empty()) << static_cast<int>(outcome);
  }
  probe.outcome = Plugin::kServes;
  probe.from_environment = true;
  EXPECT_EQ(named(check_engine(probe), "plug_in").level, Level::kOk);
  probe.plug_in_missing = true;
  EXPECT_EQ(named(check_engine(probe), "plug_in").level, Level::kProblem);
}

TEST(DoctorEngine, WhatMendsARefusalFollowsItsReason) {
  EngineProbe probe;
  probe.llama_server = "/bin/llama-server";
  probe.plug_in = "/p/librowtide-ggml.so";
  probe.outcome = EngineProbe::Plugin::kRefused;
  for (const auto& [reason, words] : {std::pair{"rowtide: not serving: ROWTIDE_MODE is 'fast'", "unset"},
                                      {"incompatible API version", "v0.6.0"},
                                      {"no CPU backend found", "libraries"},
                                      {"undefined symbol: ggml_x", "shared"},
                                      {"", "GGML_BACKEND_DL"}}) {
    probe.reason = reason;
    EXPECT_THAT(named(check_engine(probe), "plug_in").finding, HasSubstr(reason));
    EXPECT_THAT(named(check_engine(probe), "plug_in").fix, HasSubstr(words)) << reason;
  }
}

TEST(DoctorPage, GroupsLevelsAndWhatMends) {
  const Findings findings{{"kernel", Group::kSystem, Level::kOk, "Linux", "", ""},
                          {"io_uring", Group::kSystem, Level::kWarning, "refused", "slower", "allow it"},
                          {"swap", Group::kMemory, Level::kProblem, "gone", "bad", "bring it back"}};
  EXPECT_EQ(page_of(findings, 512 * kMib, false, 100),
            "System\n"
            "  ok       kernel          Linux\n"
            "  warning  io uring        refused\n"
            "                           slower\n"
            "                           Mend: allow it\n"
            "\nMemory\n"
            "  problem  swap            gone\n"
            "                           bad\n"
            "                           Mend: bring it back\n"
            "\n1 problem stands in the way, 1 warning. Memory to begin with: --memory 512MiB.\n");
  EXPECT_THAT(page_of(findings, kGib, true, 100),
              AllOf(HasSubstr("\033[33mwarning\033[0m  io uring"), HasSubstr("\033[31mproblem\033[0m")));
}

TEST(DoctorPage, LinesAreNoWiderThanAsked) {
  const std::string words = "some words that fill more than one line, then one that is " + std::string(90, 'x');
  const std::string page = page_of({{"kernel", Group::kSystem, Level::kNote, words, words, words}}, kGib, false, 80);
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.size() <= 80 || line == std::string(27, ' ') + std::string(90, 'x')) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
  }
}

LimitedRun shell(const std::string& script, std::chrono::milliseconds limit,
                 const std::function<bool(pid_t)>& far_enough = {}) {
  return run_limited("/bin/sh", {"-c", script}, {"PATH=/usr/bin:/bin", "GREETING=hello"}, limit, far_enough);
}

TEST(LimitedRunTest, TellsHowAProgramEndsAndWhatItPrints) {
  const LimitedRun good = shell("echo $GREETING; echo error >&2; cat", 60s);
  EXPECT_TRUE(good.succeeded());
  EXPECT_EQ(good.output, "hello\nerror\n");
  const LimitedRun bad = shell("exit 3", 60s);
  EXPECT_FALSE(bad.succeeded());
  EXPECT_EQ(bad.status_text(), "ended with code 3");
  EXPECT_EQ(shell("kill -SEGV $$", 60s).status_text(), "was killed by signal 11");
  EXPECT_FALSE(run_limited("/no/such/program", {}, {}, 60s).succeeded());
}

TEST(LimitedRunTest, EndsWhatHangsWithAllThatItStarted) {
  const FakeMachine folder;
  folder.put("/x", "");
  const std::string file = folder.root() + "/pid";
  const LimitedRun run = shell("sleep 1000 & echo $! > " + file + "; trap '' TERM; sleep 1000", 300ms);
  EXPECT_EQ(run.end, LimitedRun::End::kTimeOut);
  pid_t grandchild = 0;
  std::ifstream(file) >> grandchild;
  ASSERT_GT(grandchild, 0);
  const auto is_gone = [&] {  // or dead and not yet waited for by whoever inherited it
    std::string line;
    std::getline(std::ifstream("/proc/" + std::to_string(grandchild) + "/stat"), line);
    return line.empty() || line.find(") Z ") != std::string::npos || line.find(") X ") != std::string::npos;
  };
  for (int i = 0; i < 1000 && !is_gone(); ++i) ::usleep(10'000);
  EXPECT_TRUE(is_gone());
}

TEST(LimitedRunTest, StopsWhatHasGoneFarEnough) {
  int asked = 0;
  const LimitedRun run = shell("sleep 1000", 60s, [&](pid_t) { return ++asked == 3; });
  EXPECT_EQ(run.end, LimitedRun::End::kStopped);
  EXPECT_EQ(asked, 3);
}

TEST(LimitedRunTest, KeepsTheBeginningOfEndlessOutput) {
  const LimitedRun run = shell("while true; do echo again and again; done", 500ms);
  EXPECT_EQ(run.end, LimitedRun::End::kTimeOut);
  EXPECT_EQ(run.output.size(), 65536u);
  EXPECT_TRUE(run.output.starts_with("again and again\n"));
  EXPECT_TRUE(shell("echo done; exec >&- 2>&-; sleep 0.2", 60s).succeeded());
}

}  // namespace
}  // namespace rowtide::cli::doctor
