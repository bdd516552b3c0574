// The ways of gathering rows that are compared. All are given the same files and ids and deliver the rows' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/bench/rows_source.h"

namespace rowtide::cli {

/// Where a method finds a row that is in memory.
enum class Warmth { kStore, kPageCache, kCopy, kNowhere };

/// What a method has counted since it was opened; nothing where it cannot tell.
struct MethodCounts {
  std::optional<std::uint64_t> reads = {};  // calls or requests that read from the files
  std::optional<std::uint64_t> hits = {};   // rows served from memory
  std::optional<std::uint64_t> wait_ns = {};
  std::optional<std::uint64_t> bytes_read = {};      // by its own count; else the kernel's is taken
  std::uint64_t budget_bytes = 0, memory_bytes = 0;  // what it may hold, what it holds now
};

class GatherMethod {
 public:
  virtual ~GatherMethod() = default;
  virtual Warmth warmth() const = 0;
  /// Rows `ids[i]` go to `out` + i * row_bytes. Throws a Failure.
  virtual void gather(std::span<const RowId> ids, std::byte* out) = 0;
  virtual MethodCounts counts() const { return {}; }
  /// How it reads, where there are several ways.
  virtual std::string way() const { return {}; }
};

struct MethodSettings {
  std::uint64_t memory_bytes = 0;
  bool resident = false;
};

/// Any of bench_methods() but fio. `copied` are the ids that memcpy will be asked for; it copies the pages they lie in,
/// or, resident, the whole table. Throws a Failure; one of code "unsupported" says that the method cannot be had here.
std::unique_ptr<GatherMethod> open_method(const std::string& name, const BenchSource& source,
                                          const MethodSettings& settings, std::span<const RowId> copied);

std::unique_ptr<GatherMethod> open_rowtide(const BenchSource& source, const MethodSettings& settings);
std::unique_ptr<GatherMethod> open_memcpy(const BenchSource& source, bool whole, std::span<const RowId> copied);
enum class MapAdvice { kNone, kRandom, kWillneed };
std::unique_ptr<GatherMethod> open_mapped(const BenchSource& source, MapAdvice advice);
std::unique_ptr<GatherMethod> open_pread(const BenchSource& source, std::size_t threads);
std::unique_ptr<GatherMethod> open_uring(const BenchSource& source);

/// The source's files, opened for reading.
class OpenFiles {
 public:
  /// `flags` besides O_RDONLY. Throws a Failure.
  OpenFiles(const BenchSource& source, int flags);
  ~OpenFiles();
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;
  int operator[](std::uint32_t file) const { return descriptors_[file]; }
  std::uint64_t bytes(std::uint32_t file) const { return bytes_[file]; }
  std::size_t count() const { return descriptors_.size(); }

 private:
  void close() const;
  std::vector<int> descriptors_;
  std::vector<std::uint64_t> bytes_;
};

/// An aligned piece of a file: a page of the page cache, or a block of the device.
struct Page {
  std::uint32_t file;
  std::uint64_t index;
  auto operator<=>(const Page&) const = default;
};
/// The pieces of `page_bytes` that rows lie in, ascending and each once.
void pages_of(const BenchSource& source, std::span<const RowId> ids, std::vector<Page>& pages,
              std::uint64_t page_bytes);

/// Calls `take(file, first page, page count)` for each run of neighbouring pages.
template <class Take>
void for_each_run(std::span<const Page> pages, Take take) {
  for (std::size_t begin = 0, end = 0; begin < pages.size(); begin = end) {
    for (end = begin + 1; end < pages.size(); ++end) {
      if (pages[end].file != pages[begin].file || pages[end].index != pages[end - 1].index + 1) break;
    }
    take(pages[begin].file, pages[begin].index, end - begin);
  }
}

}  // namespace rowtide::cli
