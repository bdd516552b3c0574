#include "sizing/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace rowtide::sizing {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kCacheUnasked = 4 * kGiB;
// Of a unified memory's reserve, what the table's cache may not take: watchdogs of such machines act below 6 GB.
constexpr std::uint64_t kSystemLeast = 8 * kGiB;

std::uint64_t rounded(double bytes) { return static_cast<std::uint64_t>(std::llround(std::max(0.0, bytes))); }

std::string over_ranks(std::uint64_t bytes, std::uint32_t ranks) {
  return ranks == 1 ? "whole" : fmt::format("{} / {} ranks", gib(static_cast<double>(bytes)), ranks);
}

/// Adds up one layout. Bytes are of the fullest device and node.
class Layouter {
 public:
  Layouter(const Request& request, const Layout& layout)
      : request_(request), layout_(layout), device_(request.machine.device), engine_(engine(layout.engine)) {}

  MemoryPlan plan() {
    const bool unified = device_.is_unified;
    Pool device = device_pool();
    add_weights(device);
    add_other(device);
    if (is_on(Placement::kDevice)) add_table(device, request_.tp, "over the tensor-parallel ranks");
    Pool host = host_pool();
    add_host_side(unified ? device : host);
    add_kept(device);
    result_.pools.push_back(std::move(device));
    if (!unified) result_.pools.push_back(std::move(host));
    result_.pools.push_back(disk_pool());
    for (const Pool& pool : result_.pools) result_.missing_bytes += pool.missing_bytes();
    if (short_in_fraction_ > result_.missing_bytes) result_.missing_bytes = short_in_fraction_;
    if (result_.missing_bytes > 0) result_.shortage = shortage();
    return std::move(result_);
  }

 private:
  bool is_on(Placement placement) const { return layout_.placement == placement; }
  std::uint32_t sequences() const { return (request_.concurrency + request_.dp - 1) / request_.dp; }
  std::uint32_t expert_ranks() const { return request_.ep > 1 ? request_.ep : request_.tp; }

  Pool device_pool() const {
    Pool pool;
    pool.name = device_.is_unified ? "unified memory" : "device memory";
    pool.each = request_.devices > 1 ? "of each device" : "";
    pool.capacity_bytes = device_.visible_bytes;
    pool.capacity_source =
        fmt::format("sold as {}, {} visible", device_.sold_as, gib(static_cast<double>(device_.visible_bytes)));
    return pool;
  }

  Pool host_pool() const {
    Pool pool;
    pool.name = "host memory";
    pool.each = request_.nodes > 1 ? "of each node" : "";
    pool.capacity_bytes = request_.machine.host_memory_bytes;
    pool.capacity_source =
        request_.machine.is_this ? "as the kernel shows it" : "assumed; --host-memory says otherwise";
    return pool;
  }

  void add_weights(Pool& pool) {
    if (request_.weights) {
      pool.items.push_back({"weights", *request_.weights, "as given", "measured"});
      weights_ = *request_.weights;
      return;
    }
    for (std::size_t i = 0; i < kParts; ++i) {
      const Part part = static_cast<Part>(i);
      const PartSize& size = request_.model.part(part);
      if (part == Part::kTable || size.bytes == 0) continue;
      const bool expert = part == Part::kRoutedExpert || part == Part::kDraftExpert;
      const std::uint32_t ranks = expert ? expert_ranks() : request_.tp;
      const std::uint64_t each = (size.bytes + ranks - 1) / ranks;
      pool.items.push_back({std::string(part_name(part)), each, over_ranks(size.bytes, ranks), size.source});
      weights_ += each;
    }
  }

  /// Activations, runtime, graphs.
  void add_other(Pool& pool) {
    if (request_.other) {
      pool.items.push_back({"activations, runtime, graphs", *request_.other, "as given", "measured"});
      other_ = *request_.other;
      return;
    }
    const std::size_t first = pool.items.size();
    const Model& model = request_.model;
    // llama.cpp computes in f32 and has room for the logits of a whole chunk; the others in bf16, and choose first.
    const bool is_llama = layout_.engine == EngineId::kLlamaCpp;
    const std::uint32_t value_bytes = is_llama ? 4 : 2;
    const std::string source = is_llama ? "estimate, as the buffers of llama.cpp v0.5.0" : "estimate";
    const std::uint64_t residual = 4 * model.streams * model.hidden * value_bytes;
    const std::uint64_t experts = 3 * std::uint64_t{model.experts_per_token} * model.expert_width * value_bytes;
    pool.items.push_back(
        {"activations", request_.chunk * (residual + experts),
         fmt::format("chunk {} x ({} streams x {} x 4 + {} experts x {} x 3) x {} B", request_.chunk, model.streams,
                     model.hidden, model.experts_per_token, model.expert_width, value_bytes),
         source});
    const std::uint64_t positions = is_llama ? request_.chunk : std::uint64_t{sequences()} * (1 + request_.speculate);
    pool.items.push_back({"logits", positions * model.vocabulary * 4,
                          fmt::format("{} positions x {} x 4 B", positions, model.vocabulary), source});
    std::uint64_t row_values = 0;
    for (const TableShape& table : model.tables) row_values += table.rows_per_token * table.row_values;
    if (row_values != 0) {
      pool.items.push_back({"table rows of a chunk", request_.chunk * row_values * value_bytes,
                            fmt::format("chunk {} x {} values x {} B", request_.chunk, row_values, value_bytes),
                            source});
    }
    pool.items.push_back({"runtime", engine_.runtime_bytes, "fixed", engine_.runtime_source});
    if (engine_.graph_bytes != 0 && device_.id != "cpu") {
      pool.items.push_back({"captured graphs", engine_.graph_bytes, "fixed", engine_.graph_source});
    }
    for (std::size_t i = first; i < pool.items.size(); ++i) other_ += pool.items[i].bytes;
  }

  void add_table(Pool& pool, std::uint32_t shares, const std::string& how) {
    const std::uint64_t bytes = (request_.table_bytes() + shares - 1) / shares;
    pool.items.push_back({"conditional-memory table", bytes,
                          over_ranks(request_.table_bytes(), shares) + (shares > 1 ? ", " + how : ""),
                          request_.table ? "measured" : request_.model.part(Part::kTable).source});
    table_in_memory_ += bytes;
  }

  /// Of the table, each node holds what its ranks need, once.
  std::uint32_t node_shares() const { return std::max(1u, request_.tp / request_.devices_per_node()); }

  void add_host_side(Pool& pool) {
    const bool in_host = is_on(Placement::kPinned) || is_on(Placement::kHost);
    if (in_host) add_table(pool, node_shares(), "each node what its ranks need");
    if (is_on(Placement::kPinned)) add_pinned_rounding(pool);
    if (is_on(Placement::kNvme)) {
      result_.cache_bytes = std::min(request_.memory.value_or(kCacheUnasked), request_.table_bytes());
      pool.items.push_back({"table cache", result_.cache_bytes, "budget", request_.memory ? "asked for" : "default"});
    }
    if (!device_.is_unified && engine_.host_bytes != 0) {
      pool.items.push_back({"engine's host side", engine_.host_bytes * request_.devices_per_node(),
                            fmt::format("{} ranks", request_.devices_per_node()), engine_.host_source});
    }
    add_reserve(pool);
  }

  void add_reserve(Pool& pool) {
    std::uint64_t reserve = request_.host_reserve;
    std::string source = request_.host_reserve_source;
    const auto& available = request_.machine.host_available_bytes;
    if (available && *available < pool.capacity_bytes && pool.capacity_bytes - *available > reserve) {
      reserve = pool.capacity_bytes - *available;
      source = "in use on this machine now; page cache that can be dropped is not counted";
    }
    reserve_ = reserve;
    // The reserve of a unified memory has room for the pages of a table; a cache takes their place.
    const std::uint64_t within =
        device_.is_unified && reserve > kSystemLeast ? std::min(result_.cache_bytes, reserve - kSystemLeast) : 0;
    pool.items.push_back({"host reserve", reserve - within,
                          within == 0 ? gib(static_cast<double>(reserve))
                                      : fmt::format("{} less the table cache, which takes the place of page cache",
                                                    gib(static_cast<double>(reserve))),
                          source});
  }

  /// PyTorch's pinned allocator gives powers of two.
  void add_pinned_rounding(Pool& pool) {
    const std::uint32_t ranks = std::min(request_.tp, request_.devices_per_node());
    const std::uint64_t tables = std::max<std::uint64_t>(1, request_.model.tables.size());
    const std::uint64_t block = request_.table_bytes() / (std::uint64_t{request_.tp} * tables);
    const std::uint64_t lost = (std::bit_ceil(block) - block) * ranks * tables;
    pool.items.push_back({"rounding of pinned memory", lost,
                          fmt::format("{} blocks of {} take {} each", ranks * tables, gib(static_cast<double>(block)),
                                      gib(static_cast<double>(std::bit_ceil(block)))),
                          "vllm-project/vllm#53042, sgl-project/sglang#40626"});
  }

  /// Keys, values and states: what is needed, what there is.
  void add_kept(Pool& pool) {
    KvPlan& kv = result_.kv;
    const bool drafts = request_.speculate > 0;
    kv.terms = kv_terms(request_.model, request_.kv, drafts, request_.tp);
    kv.bytes_per_token = kv_bytes_per_token(request_.model, request_.kv, drafts, request_.tp);
    const double positions = static_cast<double>(request_.context) * sequences();
    const std::uint32_t copies = state_copies();
    const double states = state_bytes() * copies * sequences();
    const std::uint64_t need = rounded(kv.bytes_per_token * positions + states);
    const double room = static_cast<double>(pool.capacity_bytes) - static_cast<double>(pool.used_bytes());
    double pool_bytes = room;
    if (request_.memory_fraction) {
      pool_bytes = std::min(room, fraction_room(pool));
      add_fraction(pool, room, need);
    } else {
      add_kept_items(pool, positions, copies);
      kv.asked_bytes = need;
      kv.bytes = need;
    }
    room_ = pool_bytes;
    need_ = need;
    const double for_tokens = std::max(0.0, pool_bytes - states);
    if (kv.bytes_per_token > 0) kv.tokens = static_cast<std::uint64_t>(for_tokens / kv.bytes_per_token);
    const double sequence = kv.bytes_per_token * static_cast<double>(request_.context) + state_bytes() * copies;
    if (sequence > 0) {
      kv.concurrency_most = static_cast<std::uint32_t>(std::clamp(pool_bytes / sequence, 0.0, 1e6)) * request_.dp;
    }
    set_band(pool);
  }

  double state_bytes() const {
    return state_bytes_per_sequence(request_.model, request_.kv, request_.state, request_.speculate, request_.tp);
  }

  /// Engines with a prefix cache keep a snapshot of each sequence's states.
  std::uint32_t state_copies() const { return layout_.engine == EngineId::kLlamaCpp ? 1 : 2; }

  void add_kept_items(Pool& pool, double positions, std::uint32_t copies) {
    for (const MemoryTerm& term : result_.kv.terms) {
      pool.items.push_back({term.name, rounded(term.bytes * positions),
                            fmt::format("{} = {:.10g} B a token x {} tokens x {} sequences", term.formula, term.bytes,
                                        request_.context, sequences()),
                            "configuration"});
    }
    for (const MemoryTerm& term :
         state_terms(request_.model, request_.kv, request_.state, request_.speculate, request_.tp)) {
      pool.items.push_back({"state, " + term.name, rounded(term.bytes * copies * sequences()),
                            fmt::format("{} x {} sequences{}", term.formula, sequences(),
                                        copies > 1 ? " x 2: one snapshot for the prefix cache" : ""),
                            "configuration"});
    }
  }

  /// What the engine's share of the memory leaves for keys, values and states.
  double fraction_room(const Pool& pool) const {
    const double on_device = is_on(Placement::kDevice) ? static_cast<double>(table_in_memory_) : 0;
    return *request_.memory_fraction * static_cast<double>(pool.capacity_bytes) - static_cast<double>(weights_) -
           static_cast<double>(other_) - on_device;
  }

  void add_fraction(Pool& pool, double room, std::uint64_t need) {
    KvPlan& kv = result_.kv;
    const double asked = fraction_room(pool);
    kv.asked_bytes = rounded(asked);
    kv.bytes = rounded(std::min(asked, room));
    const std::string formula = fmt::format("{:g} x {} - {} of weights - {} of other", *request_.memory_fraction,
                                            gib(static_cast<double>(pool.capacity_bytes)),
                                            gib(static_cast<double>(weights_)), gib(static_cast<double>(other_)));
    pool.items.push_back({"keys, values and states", kv.bytes, formula, "memory fraction"});
    if (asked <= 0) {
      result_.warnings.push_back(fmt::format("memory fraction {:g} leaves {} for keys and values: {}",
                                             *request_.memory_fraction, gib(asked), formula));
    } else if (room < asked) {
      result_.warnings.push_back(fmt::format(
          "keys and values are cut from {} to {}: at the memory fraction {:g} the engine would leave the host {}, less "
          "than its reserve of {}",
          gib(asked), gib(std::max(0.0, room)), *request_.memory_fraction,
          gib(static_cast<double>(reserve_) - (asked - room)), gib(static_cast<double>(reserve_))));
    }
    if (const double given = std::min(asked, room); given < static_cast<double>(need)) {
      short_in_fraction_ = rounded(static_cast<double>(need) - given);
    }
  }

  void set_band(const Pool& pool) {
    if (!device_.is_unified || pool.capacity_bytes == 0) return;
    const double capacity = static_cast<double>(pool.capacity_bytes);
    const double on_device = is_on(Placement::kDevice) ? static_cast<double>(table_in_memory_) : 0;
    const double low = (static_cast<double>(weights_ + other_ + need_) + on_device) / capacity;
    const double high = (capacity - static_cast<double>(reserve_)) / capacity;
    if (low < high) result_.memory_fraction_band = {low, high};
  }

  Pool disk_pool() const {
    Pool pool;
    pool.name = "disk";
    pool.each = request_.nodes > 1 ? "of each node" : "";
    const std::uint64_t checkpoint = request_.model.bytes_total();
    pool.items.push_back({"checkpoint", checkpoint, "whole", request_.model.source});
    if (layout_.engine == EngineId::kSglang && is_on(Placement::kNvme)) {
      pool.items.push_back({"table file of the engine", request_.table_bytes(),
                            "a copy of the table, written at every start", "sgl-project/sglang#37995"});
    }
    if (request_.machine.disk_free_bytes) {
      const bool is_there = request_.model.is_measured && request_.machine.is_this;
      pool.capacity_bytes = *request_.machine.disk_free_bytes + (is_there ? checkpoint : 0);
      pool.capacity_source = is_there ? "free now, and the checkpoint that is there" : "free now";
    } else {
      pool.capacity_source = "not known";
    }
    return pool;
  }

  /// Which term is too large for what is left.
  std::string shortage() const {
    const double need = static_cast<double>(need_);
    for (std::size_t i = 1; i < result_.pools.size(); ++i) {
      const Pool& pool = result_.pools[i];
      if (pool.missing_bytes() == 0) continue;
      return fmt::format("{} short of {}", gib(static_cast<double>(pool.missing_bytes())), pool.name);
    }
    if (request_.memory_fraction && room_ < need && result_.memory_fraction_band) {
      return fmt::format("the memory fraction {:g} is below the {:.2f} to {:.2f} that work", *request_.memory_fraction,
                         result_.memory_fraction_band->first, result_.memory_fraction_band->second);
    }
    const double reserve = device_.is_unified ? static_cast<double>(reserve_) : 0;
    if (room_ <= 0 && room_ + reserve > 0) {
      const double left = static_cast<double>(device_.visible_bytes) - static_cast<double>(weights_ + table_in_memory_);
      return fmt::format("{:.1f} GB ({}) are left beside the weights, which the host reserve of {} eats", left / 1e9,
                         gib(left), gib(reserve));
    }
    if (room_ > 0 && need > 0) {
      return fmt::format("{} are left for keys, values and states, which the context of {} x {} sequences needs {} of",
                         gib(room_), request_.context, request_.concurrency, gib(need));
    }
    return "";
  }

  const Request& request_;
  const Layout& layout_;
  const Device& device_;
  const Engine& engine_;
  MemoryPlan result_;
  std::uint64_t weights_ = 0, other_ = 0, table_in_memory_ = 0, reserve_ = 0, need_ = 0, short_in_fraction_ = 0;
  double room_ = 0;  // for keys, values and states; below 0 where not even the rest fits
};

}  // namespace

std::string gib(double bytes) {
  const double gibibytes = bytes / static_cast<double>(kGiB);
  return fmt::format("{:.{}f} GiB", gibibytes, std::abs(gibibytes) < 10 ? 2 : 1);
}

std::uint64_t Pool::used_bytes() const {
  std::uint64_t used = 0;
  for (const PoolItem& item : items) used += item.bytes;
  return used;
}

std::uint64_t Pool::free_bytes() const {
  const std::uint64_t used = used_bytes();
  return used < capacity_bytes ? capacity_bytes - used : 0;
}

std::uint64_t Pool::missing_bytes() const {
  const std::uint64_t used = used_bytes();
  return capacity_bytes != 0 && used > capacity_bytes ? used - capacity_bytes : 0;
}

MemoryPlan plan_memory(const Request& request, const Layout& layout) { return Layouter(request, layout).plan(); }

}  // namespace rowtide::sizing
