#include "ggml/serving.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "rowtide/byte_size.h"
#include "rowtide/checkpoint.h"
#include "rowtide/file_place.h"
#include "rowtide/log.h"

namespace rowtide::ggml {
namespace {

// Versions whose llama.cpp the tests run against; another is served too, and named in the log line.
constexpr std::array<std::string_view, 2> kTestedGgmlVersions = {"0.25.1", "0.26.0"};

constexpr std::size_t kSignBytesMax = std::size_t{1} << 20;

/// What makes two tensors the same table.
struct Key {
  std::string name, source, inode;
  std::uint64_t place = 0;  // offset in the file, or address in memory
  std::uint64_t rows = 0, row_values = 0;
  ggml_type type{};
  bool operator==(const Key&) const = default;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::pair<Key, std::weak_ptr<Serving>>> servings;
  StoreOptions store_options;
  std::map<std::string, std::vector<RowId>> hints;  // by table, for those that are not served yet
  int sign = -1;

  void drop_expired() {
    std::erase_if(servings, [](const auto& entry) { return entry.second.expired(); });
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

/// Writes the sign anew. The lock is held.
void refresh_sign(Registry& state) {
  if (state.sign < 0) return;
  nlohmann::json tables = nlohmann::json::array();
  for (const auto& [key, weak] : state.servings) {
    if (const auto serving = weak.lock()) {
      tables.push_back({{"name", serving->name}, {"source", serving->source}, {"method", serving->method}});
    }
  }
  const nlohmann::json document = {
      {"plugin", "rowtide"}, {"version", ROWTIDE_VERSION}, {"ggml_version", ggml_version()}, {"tables", tables}};
  const std::string text = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kSignBytesMax) return;
  const ssize_t written = ::pwrite(state.sign, text.data(), text.size(), 0);
  if (written != static_cast<ssize_t>(text.size()) || ::ftruncate(state.sign, written) != 0) {
    log_line(LogLevel::kWarn, "the sign for launchers could not be written");
  }
}

/// How rows are read, and how they are kept.
std::string kept_text(const Serving& serving) {
  if (!serving.store) return serving.method;
  return fmt::format("{}; mode {}, budget {}", serving.method, mode_name(serving.store->mode()),
                     byte_size_text(serving.store->counters().budget_bytes));
}

void log_serving(const Serving& serving, const ggml_tensor& tensor) {
  const bool tested =
      std::find(kTestedGgmlVersions.begin(), kTestedGgmlVersions.end(), ggml_version()) != kTestedGgmlVersions.end();
  const std::uint64_t bytes = static_cast<std::uint64_t>(tensor.ne[1]) * tensor.nb[1];
  log_line(LogLevel::kInfo,
           fmt::format("serving {} ({} rows of {} values, {}, {}) from {}: {}; ggml {}{}", serving.name, tensor.ne[1],
                       tensor.ne[0], row_format_name(*row_format_of(tensor.type)), byte_size_text(bytes),
                       serving.source, kept_text(serving), ggml_version(), tested ? "" : " (untested version)"));
}

void hand_over_hints(Registry& state, const Serving& serving) {
  const auto hint = state.hints.find(serving.name);
  if (hint == state.hints.end()) return;
  if (serving.store) serving.store->prefetch(hint->second);
  state.hints.erase(hint);
}

/// The table as the checkpoint describes it, which knows its n-grams; or, of a checkpoint that Rowtide does not know,
/// as ggml does.
Result<Table> table_behind(const ggml_tensor& tensor, const FilePlace& place) {
  const auto rows = static_cast<std::uint64_t>(tensor.ne[1]), row_values = static_cast<std::uint64_t>(tensor.ne[0]);
  const RowFormat format = *row_format_of(tensor.type);
  if (const auto checkpoint = Checkpoint::open(place.path)) {
    for (const Table& table : checkpoint->tables()) {
      const Component& component = table.components.front();
      const bool same = table.components.size() == 1 && component.extents.size() == 1 &&
                        component.extents[0].path == place.path && component.extents[0].offset == place.offset &&
                        table.rows == rows && table.row_values == row_values && table.row_format == format;
      if (same) return table;
    }
  }
  log_line(LogLevel::kDebug, fmt::format("{}: describes no table {} as it is mapped, so every row is kept by itself",
                                         place.path, tensor.name));
  return table_at(tensor.name, place.path, place.offset, rows, row_values, format);
}

Result<std::shared_ptr<Store>> open_store(const ggml_tensor& tensor, const FilePlace& place,
                                          const StoreOptions& options) {
  auto table = table_behind(tensor, place);
  if (!table) return table.error();
  return Store::open(*std::move(table), options);
}

void gather_from_memory(Serving& serving, const std::string& why) {
  serving.source = "memory";
  serving.method = fmt::format("gather in memory ({})", why);
}

/// Fills in where the rows come from.
Result<void> choose_source(Serving& serving, const ggml_tensor& tensor, const Result<FilePlace>& place,
                           const StoreOptions& options) {
  if (!place) {
    gather_from_memory(serving, place.error().message);
    return {};
  }
  auto store = open_store(tensor, *place, options);
  if (!is_still_there(*place)) {  // so nobody knows which file the store has opened
    gather_from_memory(serving, fmt::format("{} was replaced while it was opened", place->path));
    return {};
  }
  if (!store) return store.error();
  serving.source = place->path;
  serving.store = *std::move(store);
  serving.method = serving.store->method();
  return {};
}

}  // namespace

ServedTable Serving::snapshot() const {
  ServedTable served{name, source, method, {}, {}};
  if (store) {
    served.mode = store->mode();
    served.counters = store->counters();
  } else {
    served.counters.rows = served.counters.hits = memory_rows;
    served.counters.batches = memory_batches;
  }
  return served;
}

std::optional<RowFormat> row_format_of(ggml_type type) {
  switch (type) {
    case GGML_TYPE_F32: return RowFormat::kF32;
    case GGML_TYPE_F16: return RowFormat::kF16;
    case GGML_TYPE_BF16: return RowFormat::kBf16;
    case GGML_TYPE_Q8_0: return RowFormat::kQ8_0;
    case GGML_TYPE_Q4_0: return RowFormat::kQ4_0;
    case GGML_TYPE_IQ4_NL: return RowFormat::kIq4Nl;
    default: return std::nullopt;
  }
}

Result<std::shared_ptr<Serving>> serving_of(const ggml_tensor& tensor) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(tensor.ne[1]) * tensor.nb[1];
  const auto place = find_file_place(tensor.data, bytes);
  const Key key{tensor.name,
                place ? place->path : "memory",
                place ? place->inode : "",
                place ? place->offset : reinterpret_cast<std::uintptr_t>(tensor.data),
                static_cast<std::uint64_t>(tensor.ne[1]),
                static_cast<std::uint64_t>(tensor.ne[0]),
                tensor.type};

  std::lock_guard lock(registry().mutex);
  registry().drop_expired();
  for (const auto& [known, weak] : registry().servings) {
    if (known != key) continue;
    if (auto serving = weak.lock()) return serving;
  }
  auto serving = std::make_shared<Serving>();
  serving->name = tensor.name;
  if (auto chosen = choose_source(*serving, tensor, place, registry().store_options); !chosen) return chosen.error();
  registry().servings.emplace_back(key, serving);
  log_serving(*serving, tensor);
  refresh_sign(registry());
  hand_over_hints(registry(), *serving);
  return serving;
}

std::vector<ServedTable> served_tables() {
  std::lock_guard lock(registry().mutex);
  std::vector<ServedTable> tables;
  for (const auto& [key, weak] : registry().servings) {
    if (const auto serving = weak.lock()) tables.push_back(serving->snapshot());
  }
  return tables;
}

void prefetch(const std::string& name, std::span<const RowId> ids) {
  std::lock_guard lock(registry().mutex);
  bool served = false;
  for (const auto& [key, weak] : registry().servings) {
    if (key.name != name) continue;
    const auto serving = weak.lock();
    if (!serving) continue;
    served = true;
    if (serving->store) serving->store->prefetch(ids);
  }
  if (served) return;
  auto& hints = registry().hints[name];
  hints.insert(hints.end(), ids.begin(), ids.end());
}

void serve_with(const StoreOptions& options) {
  std::lock_guard lock(registry().mutex);
  registry().store_options = options;
}

void put_up_sign() {
  std::lock_guard lock(registry().mutex);
  if (registry().sign >= 0) return;
  rlimit file_size{};
  ::getrlimit(RLIMIT_FSIZE, &file_size);
  if (file_size.rlim_cur < kSignBytesMax) {  // writing more than the limit would kill the process
    log_line(LogLevel::kWarn, "no sign for launchers: the limit on file sizes (ulimit -f) is too small");
    return;
  }
  const int descriptor = ::memfd_create("rowtide-status", MFD_CLOEXEC);
  // Never in the place of a standard stream that was closed, or the host would print into it.
  registry().sign = descriptor < 0 ? -1 : ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (descriptor >= 0) ::close(descriptor);
  if (registry().sign < 0) log_line(LogLevel::kWarn, "no sign for launchers: the kernel refuses a memory file");
  refresh_sign(registry());
}

}  // namespace rowtide::ggml
