#include "cli/bench/rows_method.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "cli/failure.h"
#include "rowtide/store.h"

namespace rowtide::cli {
namespace {

class RowtideMethod final : public GatherMethod {
 public:
  RowtideMethod(const BenchSource& source, const MethodSettings& settings)
      : row_bytes_(source.table.row_bytes),
        store_(value_of(Store::open(source.table, {.memory_bytes = settings.memory_bytes,
                                                   .mode = settings.resident ? Mode::kResident : Mode::kCache}))),
        reader_(value_of(store_->reader())) {}

  Warmth warmth() const override { return Warmth::kStore; }
  void gather(std::span<const RowId> ids, std::byte* out) override {
    check(reader_->read(ids, raw({out, ids.size() * row_bytes_})));
  }
  MethodCounts counts() const override {
    const Counters counters = store_->counters();
    return {counters.reads,      counters.hits,         counters.wait_ns,
            counters.bytes_read, counters.budget_bytes, counters.memory_bytes};
  }
  std::string way() const override { return store_->method(); }

 private:
  std::uint64_t row_bytes_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace

std::unique_ptr<GatherMethod> open_rowtide(const BenchSource& source, const MethodSettings& settings) {
  return std::make_unique<RowtideMethod>(source, settings);
}

std::unique_ptr<GatherMethod> open_method(const std::string& name, const BenchSource& source,
                                          const MethodSettings& settings, std::span<const RowId> copied) {
  if (name == "rowtide") return open_rowtide(source, settings);
  if (name == "memcpy") return open_memcpy(source, settings.resident, copied);
  if (name == "mmap") return open_mapped(source, MapAdvice::kNone);
  if (name == "mmap_random") return open_mapped(source, MapAdvice::kRandom);
  if (name == "mmap_willneed") return open_mapped(source, MapAdvice::kWillneed);
  if (name == "pread1") return open_pread(source, 1);
  if (name == "pread8") return open_pread(source, 8);
  if (name == "pread32") return open_pread(source, 32);
  return open_uring(source);
}

OpenFiles::OpenFiles(const BenchSource& source, int flags) {
  for (const std::string& path : source.paths()) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
    struct stat status;
    if (fd < 0 || ::fstat(fd, &status) != 0) {
      const int error = errno;
      if (fd >= 0) ::close(fd);
      close();
      const bool no_direct = (flags & O_DIRECT) != 0 && error == EINVAL;
      throw Failure(kExitFailed, no_direct ? "unsupported" : "io", fmt::format("{}: {}", path, errno_text(error)));
    }
    descriptors_.push_back(fd);
    bytes_.push_back(static_cast<std::uint64_t>(status.st_size));
  }
}

OpenFiles::~OpenFiles() { close(); }

void OpenFiles::close() const {
  for (const int fd : descriptors_) ::close(fd);
}

void pages_of(const BenchSource& source, std::span<const RowId> ids, std::vector<Page>& pages,
              std::uint64_t page_bytes) {
  pages.clear();
  for (const RowId id : ids) {
    for (const RowMap::Part& part : source.map.parts()) {
      const auto place = part.place(id);
      const std::uint64_t last = (place.offset + part.bytes - 1) / page_bytes;
      for (std::uint64_t page = place.offset / page_bytes; page <= last; ++page) pages.push_back({place.file, page});
    }
  }
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
}

}  // namespace rowtide::cli
