// Gathers from memory: the files mapped, with three kinds of advice, and a copy of them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "cli/bench/rows_method.h"
#include "cli/bench/rows_state.h"
#include "cli/failure.h"

namespace rowtide::cli {
namespace {

/// Address space of the length of each file.
class Mappings {
 public:
  /// Of the files themselves, or, without descriptors, of anonymous memory.
  Mappings(const BenchSource& source, const OpenFiles& files, bool anonymous) {
    for (std::uint32_t file = 0; file < files.count(); ++file) {
      const std::size_t bytes = files.bytes(file);
      const int flags = anonymous ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
      const int protection = anonymous ? PROT_READ | PROT_WRITE : PROT_READ;
      void* const map = ::mmap(nullptr, bytes, protection, flags, anonymous ? -1 : files[file], 0);
      if (map == MAP_FAILED) {
        throw Failure(kExitFailed, "resource",
                      fmt::format("{}: mapping {} bytes: {}", source.paths()[file], bytes, errno_text(errno)));
      }
      maps_.push_back({static_cast<std::byte*>(map), bytes});
    }
  }
  ~Mappings() {
    for (const auto& map : maps_) ::munmap(map.data(), map.size());
  }
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  std::span<std::byte> operator[](std::uint32_t file) const { return maps_[file]; }
  std::size_t count() const { return maps_.size(); }
  void gather(const RowMap& places, std::span<const RowId> ids, std::byte* out) const {
    for (const RowId id : ids) {
      for (const RowMap::Part& part : places.parts()) {
        const auto place = part.place(id);
        std::memcpy(out, maps_[place.file].data() + place.offset, part.bytes);
        out += part.bytes;
      }
    }
  }

 private:
  std::vector<std::span<std::byte>> maps_;
};

std::uint64_t major_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_majflt);
}

class MappedMethod final : public GatherMethod {
 public:
  MappedMethod(const BenchSource& source, MapAdvice advice)
      : source_(source), maps_(source, OpenFiles(source, 0), false), advice_(advice), faults_before_(major_faults()) {
    if (advice == MapAdvice::kNone) return;
    for (std::uint32_t file = 0; file < maps_.count(); ++file) {
      ::madvise(maps_[file].data(), maps_[file].size(), MADV_RANDOM);
    }
    if (advice == MapAdvice::kWillneed) self_ = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  }
  ~MappedMethod() override {
    if (self_ >= 0) ::close(self_);
  }

  Warmth warmth() const override { return Warmth::kPageCache; }
  void gather(std::span<const RowId> ids, std::byte* out) override {
    if (advice_ == MapAdvice::kWillneed) announce(ids);
    maps_.gather(source_.map, ids, out);
  }
  /// One read a major fault; how many an advice starts, nobody tells.
  MethodCounts counts() const override {
    if (advice_ == MapAdvice::kWillneed) return {};
    return {.reads = major_faults() - faults_before_};
  }

 private:
  /// One advice for all pages of the batch: process_madvise takes 1,024 ranges at once.
  void announce(std::span<const RowId> ids) {
    constexpr std::size_t kRangesMax = 1024;
    pages_of(source_, ids, pages_, source_.page_bytes);
    ranges_.clear();
    for_each_run(std::span<const Page>(pages_), [&](std::uint32_t file, std::uint64_t first, std::uint64_t count) {
      ranges_.push_back({maps_[file].data() + first * source_.page_bytes, count * source_.page_bytes});
    });
    for (std::size_t at = 0; at < ranges_.size(); at += kRangesMax) {
      const std::size_t count = std::min(kRangesMax, ranges_.size() - at);
      if (self_ >= 0 && ::syscall(SYS_process_madvise, self_, &ranges_[at], count, MADV_WILLNEED, 0) > 0) continue;
      for (std::size_t i = at; i < at + count; ++i) {
        ::madvise(ranges_[i].iov_base, ranges_[i].iov_len, MADV_WILLNEED);
      }
    }
  }

  const BenchSource& source_;
  Mappings maps_;
  MapAdvice advice_;
  std::uint64_t faults_before_;
  int self_ = -1;
  std::vector<Page> pages_;
  std::vector<iovec> ranges_;
};

class CopyMethod final : public GatherMethod {
 public:
  CopyMethod(const BenchSource& source, bool whole, std::span<const RowId> copied)
      : source_(source), maps_(source, OpenFiles(source, 0), true) {
    const OpenFiles files(source, 0);
    if (whole) {
      copy_table(files);
    } else {
      copy_pages(files, copied);
    }
  }

  Warmth warmth() const override { return Warmth::kCopy; }
  void gather(std::span<const RowId> ids, std::byte* out) override { maps_.gather(source_.map, ids, out); }
  MethodCounts counts() const override { return {.reads = 0}; }

 private:
  static constexpr std::string_view kWhat = "a copy in memory";

  void copy_table(const OpenFiles& files) {
    check_memory_for(source_, source_.table.bytes(), kWhat, "unsupported");
    for (std::uint32_t file = 0; file < files.count(); ++file) {
      const auto range = source_.range(file);
      ::madvise(maps_[file].data(), maps_[file].size(), MADV_HUGEPAGE);
      copy(files, file, range.begin, range.end);
    }
  }

  void copy_pages(const OpenFiles& files, std::span<const RowId> copied) {
    std::vector<Page> pages;
    const std::uint64_t page_bytes = source_.page_bytes;
    pages_of(source_, copied, pages, page_bytes);
    check_memory_for(source_, pages.size() * page_bytes, kWhat, "unsupported");
    auto each = [&](auto take) {
      for_each_run(std::span<const Page>(pages), [&](std::uint32_t file, std::uint64_t first, std::uint64_t count) {
        take(file, first * page_bytes, std::min((first + count) * page_bytes, files.bytes(file)));
      });
    };
    each([&](std::uint32_t file, std::uint64_t begin, std::uint64_t end) {
      ::posix_fadvise(files[file], static_cast<off_t>(begin), static_cast<off_t>(end - begin), POSIX_FADV_WILLNEED);
    });
    each([&](std::uint32_t file, std::uint64_t begin, std::uint64_t end) { copy(files, file, begin, end); });
  }

  void copy(const OpenFiles& files, std::uint32_t file, std::uint64_t begin, std::uint64_t end) const {
    while (begin < end) {
      const ssize_t got = ::pread(files[file], maps_[file].data() + begin, end - begin, static_cast<off_t>(begin));
      if (got > 0) {
        begin += static_cast<std::uint64_t>(got);
      } else if (got == 0 || errno != EINTR) {
        throw Failure(kExitFailed, "io", fmt::format("{}: copying into memory failed", source_.paths()[file]));
      }
    }
  }

  const BenchSource& source_;
  Mappings maps_;
};

}  // namespace

std::unique_ptr<GatherMethod> open_mapped(const BenchSource& source, MapAdvice advice) {
  return std::make_unique<MappedMethod>(source, advice);
}

std::unique_ptr<GatherMethod> open_memcpy(const BenchSource& source, bool whole, std::span<const RowId> copied) {
  return std::make_unique<CopyMethod>(source, whole, copied);
}

}  // namespace rowtide::cli
