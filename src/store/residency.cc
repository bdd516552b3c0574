#include "store/residency.h"

#include <algorithm>

#include "base/error.h"
#include "io/system_memory.h"
#include "io/unified_memory.h"
#include "rowtide/byte_size.h"
#include "store/resident_rows.h"
#include "table/file_ranges.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kDefaultBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kDefaultShare = 8;  // of what is available, the default takes no more than one part in so many
constexpr std::uint64_t kAutoShare = 2;     // of what is available, the same for a table made resident unasked

Result<io::AvailableMemory> available_beside(const Table* table) {
  return io::available_memory(table != nullptr ? file_ranges(*table) : std::vector<io::FileRange>());
}

/// What a budget must hold for the whole table to be resident.
std::uint64_t resident_budget_bytes(const Table& table) {
  return table.bytes() + ResidentRows::kBufferBytes + kMemoryBytesMin;
}

std::uint64_t default_bytes(std::uint64_t available) {
  return std::max(kMemoryBytesMin, std::min(kDefaultBytes, available / kDefaultShare));
}

/// The budget where none is asked for.
std::uint64_t budget_unasked(const Table& table, Mode mode, const io::AvailableMemory& available) {
  const std::uint64_t standard = default_bytes(available.bytes());
  const std::uint64_t with_table = standard + table.bytes();
  const bool room_unasked = with_table <= available.bytes() / kAutoShare;
  const bool resident = mode == Mode::kResident || (mode == Mode::kAuto && room_unasked);
  return resident ? std::max(with_table, resident_budget_bytes(table)) : standard;
}

MemoryBudget::Held held(const StoreOptions& options) {
  if (!io::unified_memory().empty()) return MemoryBudget::Held::kCommitted;
  return options.yield_under_pressure ? MemoryBudget::Held::kYielding : MemoryBudget::Held::kAsNeeded;
}

/// "the budget of 4.000 GiB", or what other stores leave of it.
std::string budget_text(const MemoryBudget& budget) {
  const std::string all = "the memory budget of " + byte_size_text(budget.bytes());
  const std::uint64_t left = budget.left();
  return left == budget.bytes() ? all : fmt::format("the {} that are left of {}", byte_size_text(left), all);
}

Result<void> check_resident(const Table& table, const MemoryBudget& budget, const io::AvailableMemory& available) {
  const std::uint64_t whole = resident_budget_bytes(table);
  if (budget.left() < whole) {
    return make_error(ErrorCode::kResource,
                      "table {}: to be resident it needs {} of {}: raise the budget, or use the mode cache", table.name,
                      byte_size_text(whole), budget_text(budget));
  }
  if (available.bytes() < whole) {
    return make_error(ErrorCode::kResource,
                      "table {}: to be resident it needs {}, but no more is available than {}: use the mode cache",
                      table.name, byte_size_text(whole), available.text());
  }
  return {};
}

std::string auto_reason(const Table& table, Mode chosen, const MemoryBudget& budget,
                        const io::AvailableMemory& available) {
  return fmt::format("{}: its {} ({} with what else is needed) {} {}; available {}", mode_name(chosen),
                     byte_size_text(table.bytes()), byte_size_text(resident_budget_bytes(table)),
                     chosen == Mode::kResident ? "fit" : "do not fit", budget_text(budget), available.text());
}

}  // namespace

std::uint64_t default_memory_bytes() {
  const auto available = available_beside(nullptr);
  return available ? default_bytes(available->bytes()) : kMemoryBytesMin;
}

Result<Residency> decide_residency(const Table& table, const StoreOptions& options) {
  const auto available = available_beside(&table);
  if (!available) return available.error();
  auto budget =
      MemoryBudget::of_process(options.memory_bytes, budget_unasked(table, options.mode, *available), held(options));
  if (!budget) return budget.error();
  (*budget)->add_table(table);
  const std::uint64_t bytes = (*budget)->bytes();
  if (options.memory_bytes != 0 && bytes > available->bytes() && budget->use_count() == 1) {
    return make_error(ErrorCode::kResource, "a memory budget of {} is more than is available, {}: give less",
                      byte_size_text(bytes), available->text());
  }

  Residency residency{options.mode, *budget, {}};
  const auto resident = check_resident(table, **budget, *available);
  if (options.mode == Mode::kResident && !resident) return resident.error();
  if (options.mode == Mode::kAuto) {
    residency.mode = resident ? Mode::kResident : Mode::kCache;
    residency.reason = auto_reason(table, residency.mode, **budget, *available);
  }
  return residency;
}

}  // namespace rowtide
