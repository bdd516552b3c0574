#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "cli/doctor/checks.h"
#include "cli/text_table.h"
#include "io/kernel_text.h"
#include "rowtide/byte_size.h"

namespace rowtide::cli::doctor {
namespace {

constexpr std::uint64_t kOpenFilesEnough = 256;
constexpr int kCapIpcLock = 14;   // linux/capability.h
constexpr int kCapSysAdmin = 21;  // the same

struct KernelVersion {
  unsigned major = 0, minor = 0;
  bool before(unsigned a, unsigned b) const { return major < a || (major == a && minor < b); }
};

std::string first_line(const std::string& path) {
  const std::string text = io::kernel_text(path).value_or("");
  return text.substr(0, text.find('\n'));
}

std::string kernel_release(const System& system) {
  return printable(first_line(system.root + "/proc/sys/kernel/osrelease"));
}

std::optional<KernelVersion> kernel_version(const System& system) {
  KernelVersion version;
  const bool known = std::sscanf(kernel_release(system).c_str(), "%u.%u", &version.major, &version.minor) == 2;
  return known ? std::optional(version) : std::nullopt;
}

std::string process_status(const System& system) {
  return io::kernel_text(system.root + "/proc/self/status").value_or("");
}

/// Whether a seccomp filter judges this process's system calls (proc(5): 2 is SECCOMP_MODE_FILTER).
bool is_filtered(const System& system) { return io::named_number(process_status(system), "Seccomp:") == 2; }

bool has_capability(const System& system, int capability) {
  const std::string status = process_status(system);
  const std::size_t line = status.find("CapEff:");
  unsigned long long mask = 0;
  return line != std::string::npos && std::sscanf(status.c_str() + line, "CapEff: %llx", &mask) == 1 &&
         ((mask >> capability) & 1) != 0;
}

/// Of /proc/self/limits: the soft limit; nothing where there is none ("unlimited").
std::optional<std::uint64_t> soft_limit(const System& system, std::string_view name) {
  return io::named_number(io::kernel_text(system.root + "/proc/self/limits").value_or(""), name);
}

Finding check_kernel(const System& system) {
  Finding found{"kernel", Group::kSystem, Level::kOk, "Linux " + kernel_release(system), "", ""};
  const auto version = kernel_version(system);
  if (!version) {
    found.level = Level::kNote;
    found.finding = "the kernel does not tell its version in /proc/sys/kernel/osrelease";
    found.meaning = "what it can do is found out by trying";
  } else if (version->before(5, 6)) {
    found.level = Level::kWarning;
    found.meaning = "Rowtide is made for Linux 5.15 and later; the plain reads of io_uring came with 5.6";
    found.fix = "boot Linux 5.15 or later; in a container the kernel is the host's";
  }
  return found;
}

// docs/performance.md
constexpr const char* kThreadsInstead =
    "16 threads read by pread instead: the same bytes, but 0.75 to 0.96 of the reads a second and three times the "
    "processor time a read, as measured on one machine";

constexpr const char* kFilterFix =
    "docker or podman run --security-opt seccomp=FILE, FILE being their default profile with io_uring_setup, "
    "io_uring_enter and io_uring_register allowed; seccomp=unconfined lifts the whole filter";

Finding uring_refused(std::string finding, std::string fix) {
  return {"io_uring", Group::kSystem, Level::kWarning, std::move(finding), kThreadsInstead, std::move(fix)};
}

/// kernel.io_uring_disabled, new in Linux 6.6 and carried back by some: 1 refuses processes that have neither
/// CAP_SYS_ADMIN nor the group kernel.io_uring_group, 2 refuses all; both with EPERM.
std::optional<Finding> refused_by_sysctl(const System& system) {
  const std::string value = first_line(system.root + "/proc/sys/kernel/io_uring_disabled");
  if (value == "2") {
    return uring_refused("refused to everyone: the sysctl kernel.io_uring_disabled is 2",
                         "on the host: sudo sysctl -w kernel.io_uring_disabled=0; to keep it, a file in /etc/sysctl.d");
  }
  if (value == "1" && !has_capability(system, kCapSysAdmin)) {
    return uring_refused("refused to ordinary users: the sysctl kernel.io_uring_disabled is 1",
                         "on the host: sudo sysctl -w kernel.io_uring_disabled=0; or make a group of this user's the "
                         "one that may: sudo sysctl -w kernel.io_uring_group=GID");
  }
  return std::nullopt;
}

Finding refused_with_eperm(const System& system) {
  if (auto found = refused_by_sysctl(system)) return *found;
  if (is_filtered(system)) {
    return uring_refused("refused by a seccomp filter (EPERM), as containers' default profiles do", kFilterFix);
  }
  return uring_refused("refused (EPERM), neither by a seccomp filter nor by kernel.io_uring_disabled",
                       "look for a security module's rule: sudo dmesg | grep -i denied");
}

Finding refused_with_enosys(const System& system) {
  const auto version = kernel_version(system);
  if (version && version->before(5, 1)) {
    return uring_refused(fmt::format("not there: Linux {} has none, it came with 5.1", kernel_release(system)),
                         "boot Linux 5.15 or later; in a container the kernel is the host's");
  }
  if (is_filtered(system)) {
    return uring_refused(
        "not there for this process (ENOSYS), which runs under a seccomp filter: Podman's default "
        "profile answers so",
        kFilterFix);
  }
  return uring_refused("not there (ENOSYS): this kernel was built without it, or is no Linux kernel (gVisor)",
                       "boot a kernel with CONFIG_IO_URING=y; in a container the kernel is the host's");
}

Finding check_io_uring(const System& system) {
  switch (system.uring.ring) {
    case 0: return {"io_uring", Group::kSystem, Level::kOk, "works", "", ""};
    case EPERM: return refused_with_eperm(system);
    case ENOSYS: return refused_with_enosys(system);
    case ENOMEM:
      return uring_refused("no memory for a ring (ENOMEM): before Linux 5.12 rings count as locked memory",
                           "raise the limit on locked memory: ulimit -l unlimited, or docker run --ulimit memlock=-1");
    case EMFILE:
    case ENFILE:
      return uring_refused("no descriptor is left for a ring", "raise the limit on open files: ulimit -n 4096");
    default: return uring_refused(fmt::format("refused: {}", errno_text(system.uring.ring)), "");
  }
}

/// Buffers are registered with the ring, which pins their pages; these count as locked memory.
Finding check_locked_memory(const System& system) {
  const auto limit = soft_limit(system, "Max locked memory");
  Finding found{"locked_memory", Group::kSystem, Level::kOk, "", "", ""};
  found.finding = limit ? byte_size_text(*limit) + " may be locked" : "no limit on locked memory";
  if (limit && has_capability(system, kCapIpcLock)) found.finding += "; the limit does not hold for this process";
  if (system.uring.pinned == 0) return found;
  found.level = Level::kNote;
  found.finding += fmt::format("; a reader's buffer of {} cannot be pinned: {}", byte_size_text(kReaderBufferBytes),
                               errno_text(system.uring.pinned));
  found.meaning =
      "reads cost a tenth more processor time, and engines cannot lock weights (llama.cpp's --mlock); rows are the "
      "same";
  found.fix =
      "ulimit -l unlimited as root, or LimitMEMLOCK=infinity in a systemd unit, or a line '* - memlock unlimited' in "
      "/etc/security/limits.conf and a new login; docker run --ulimit memlock=-1";
  return found;
}

Finding check_open_files(const System& system) {
  const auto limit = soft_limit(system, "Max open files");
  Finding found{"open_files", Group::kSystem, Level::kOk, "", "", ""};
  found.finding = limit ? grouped(*limit) + " may be open" : "no limit on open files";
  if (!limit || *limit >= kOpenFilesEnough) return found;
  found.level = Level::kWarning;
  found.meaning = "each part of a split model and each reader's ring takes one, and an engine many for its connections";
  found.fix = "ulimit -n 4096; docker run --ulimit nofile=4096";
  return found;
}

Finding check_cpu(const System& system) {
  Finding found{"cpu", Group::kSystem, Level::kOk, fmt::format("rows are decoded with {}", system.instruction_set), "",
                ""};
  if (system.instruction_set != "scalar") return found;
  found.level = Level::kNote;
  found.finding = "rows are decoded one number at a time: no AVX2 with F16C, no AVX-512, no NEON";
  found.meaning = "decoding takes several times as long; reading cold rows takes far longer still";
  found.fix = "in a virtual machine, give it the host's CPU model (QEMU: -cpu host)";
  return found;
}

}  // namespace

Findings check_system(const System& system) {
  return {check_kernel(system), check_io_uring(system), check_locked_memory(system), check_open_files(system),
          check_cpu(system)};
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kOk: return "ok";
    case Level::kNote: return "note";
    case Level::kWarning: return "warning";
    case Level::kProblem: return "problem";
  }
  return "problem";
}

std::string_view group_name(Group group) {
  switch (group) {
    case Group::kSystem: return "System";
    case Group::kMemory: return "Memory";
    case Group::kStorage: return "Storage";
    case Group::kCheckpoint: return "Checkpoint";
    case Group::kEngine: return "llama.cpp";
  }
  return "";
}

}  // namespace rowtide::cli::doctor
