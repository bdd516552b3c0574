// What a table's rows cost in each place: reads, their time, and how much of it the layers before their use hide.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sizing/speed.h"

namespace rowtide::sizing {
namespace {

constexpr double kHostRowUs = 0.075;   // a row gathered by one CPU thread; a copy in memory takes 0.05 to 0.1
constexpr double kHostCopyUs = 10;     // a copy of gathered rows to the device, started and waited for: estimate
constexpr double kDeviceGatherUs = 4;  // a gather by the device: 3.7 to 8 us for 1 to 4 tokens, vllm-project/vllm#57893
constexpr double kSmallReadShare = 0.5;  // of a link's rate, for reads of a row each: estimate
constexpr double kHiddenShare = 0.001;   // what adds less to a step or chunk counts as hidden

/// One pass that needs rows: a decode step, or a chunk of a prompt.
struct Batch {
  double tokens = 0;   // of all replicas together
  double missed = 0;   // share of lookups that must be read
  double pass_us = 0;  // that the pass takes without the table
  double passes_per_s = 0;
};

struct BatchCost {
  double reads_per_s = 0, limit_share = 0;
  double us = 0, us_added = 0;
};

class Coster {
 public:
  Coster(const Request& request, EngineId engine, Placement placement, std::uint64_t cache_bytes, const Speed& speed)
      : request_(request), engine_(engine), placement_(placement), speed_(speed) {
    // Ranks of several nodes each serve a part of every bundle, so their caches hold parts of the same text.
    const double nodes_sharing = std::max(1.0, static_cast<double>(request.tp) / request.devices_per_node());
    if (placement == Placement::kNvme) {
      hit_share_ =
          hit_share(request.model, static_cast<std::uint64_t>(static_cast<double>(cache_bytes) * nodes_sharing));
    }
  }

  TableCost cost() const;

 private:
  bool is_read() const { return placement_ == Placement::kNvme; }
  double per_node(double of_all) const { return of_all / std::max(request_.nodes, 1u); }
  /// Whether a pass waits for all rows before it begins: llama.cpp gathers as the graph begins, and the disk tiers of
  /// vLLM, all of them forks', stage rows before the forward pass.
  bool reads_before_all() const { return engine_ == EngineId::kLlamaCpp || (engine_ == EngineId::kVllm && is_read()); }
  double bytes_of_node() const;
  double bytes_per_s() const;
  double row_bytes_mean() const;
  double time_us(double rows, double reads, double some_missed) const;
  double added_us(const Batch& batch, const std::vector<double>& table_us) const;
  BatchCost cost_of(const Batch& batch) const;
  Batch step() const;
  Batch chunk() const;
  std::string link_name() const;
  std::string bottleneck(const TableCost& cost) const;
  std::vector<std::string> assumptions() const;

  const Request& request_;
  EngineId engine_;
  Placement placement_;
  const Speed& speed_;
  double hit_share_ = 1;
};

/// In memory a replica's ranks hold the table once, on its nodes; on disk it lies in the checkpoint, whole.
double Coster::bytes_of_node() const {
  const double whole = static_cast<double>(request_.table_bytes());
  const double ranks_of_node = request_.devices_per_node();
  if (is_read()) return whole;
  if (placement_ == Placement::kDevice) return whole * ranks_of_node / request_.tp;
  return whole * std::min(1.0, ranks_of_node / request_.tp);
}

/// What moves rows in this place.
double Coster::bytes_per_s() const {
  const Device& device = request_.machine.device;
  switch (placement_) {
    case Placement::kDevice: return device.bandwidth_bytes_per_s * device.bandwidth_share;
    case Placement::kPinned: return device.host_link.bytes_per_s * kSmallReadShare;
    case Placement::kHost: return device.host_link.bytes_per_s;
    case Placement::kRemote: return device.node_link.bytes_per_s * kSmallReadShare;
    case Placement::kNvme: break;
  }
  return 0;
}

double Coster::row_bytes_mean() const {
  return static_cast<double>(request_.model.table_bytes_per_token()) /
         std::max(request_.model.table_rows_per_token(), 1u);
}

/// Of one node's part of a batch. A batch waits for its first read, and then as long as the drive takes for all.
double Coster::time_us(double rows, double reads, double some_missed) const {
  const double bytes = rows * row_bytes_mean();
  const double carried_us = bytes_per_s() > 0 ? bytes / bytes_per_s() * 1e6 : 0;
  switch (placement_) {
    case Placement::kDevice:
    case Placement::kPinned: return kDeviceGatherUs + carried_us;
    case Placement::kHost:
      return rows * kHostRowUs + (request_.machine.device.is_unified ? 0 : kHostCopyUs + carried_us);
    case Placement::kRemote: return request_.machine.device.node_link.latency_us + kHostCopyUs + carried_us;
    case Placement::kNvme: break;
  }
  const DriveRates& drive = request_.machine.drive;
  return some_missed * drive.serial_us + reads / drive.reads_per_s * 1e6 + rows * kHostRowUs;
}

/// Each table's rows come one after the other, and each has until its layer begins; waiting for one gives the next
/// time.
double Coster::added_us(const Batch& batch, const std::vector<double>& table_us) const {
  double added = 0, come = 0;
  for (std::size_t i = 0; i < table_us.size(); ++i) {
    come += table_us[i];
    const double before =
        reads_before_all() ? 0 : batch.pass_us * request_.model.tables[i].layer / std::max(request_.model.layers, 1u);
    added += std::max(0.0, come - before - added);
  }
  return added;
}

BatchCost Coster::cost_of(const Batch& batch) const {
  const Model& model = request_.model;
  BatchCost cost;
  std::vector<double> table_us;
  double moved_per_pass = 0;
  for (const TableShape& table : model.tables) {
    const double rows = per_node(batch.tokens * table.rows_per_token);
    const double reads = per_node(batch.tokens * table.reads_per_token()) * batch.missed;
    const double lookups = batch.tokens * table.rows_per_token / std::max(table.heads_per_order, 1u);
    table_us.push_back(time_us(rows, reads, 1 - std::pow(1 - batch.missed, lookups)));
    moved_per_pass += is_read() ? reads : rows;
  }
  for (const double us : table_us) cost.us += us;
  cost.us_added = added_us(batch, table_us);
  cost.reads_per_s = moved_per_pass * batch.passes_per_s;
  const double most = is_read() ? request_.machine.drive.reads_per_s : bytes_per_s() / std::max(row_bytes_mean(), 1.0);
  cost.limit_share = most > 0 ? cost.reads_per_s / most : 0;
  return cost;
}

Batch Coster::step() const {
  const double stream_tok_s = request_.decode_tok_s.value_or(speed_.decode_tok_s);
  Batch batch;
  batch.tokens = request_.concurrency * (1.0 + request_.speculate);
  batch.missed = 1 - hit_share_;
  batch.pass_us = speed_.decode_tok_s > 0 ? speed_.tokens_per_step / speed_.decode_tok_s * 1e6 : 0;
  batch.passes_per_s = stream_tok_s / speed_.tokens_per_step;
  return batch;
}

/// A chunk asks for each of its bundles once; what the cache serves beyond that, it has from before the chunk.
Batch Coster::chunk() const {
  const double prompt_tok_s = request_.prefill_tok_s.value_or(speed_.prefill_tok_s);
  Batch batch;
  batch.tokens = static_cast<double>(request_.chunk) * std::max(request_.dp, 1u);
  batch.missed = std::min(unique_share(request_.chunk), 1 - hit_share_);
  batch.pass_us = speed_.prefill_tok_s > 0 ? request_.chunk / speed_.prefill_tok_s * 1e6 : 0;
  batch.passes_per_s = prompt_tok_s / request_.chunk;
  return batch;
}

std::string Coster::link_name() const {
  const Device& device = request_.machine.device;
  switch (placement_) {
    case Placement::kDevice: return "device memory";
    case Placement::kPinned:
    case Placement::kHost: return device.host_link.name;
    case Placement::kRemote: return device.node_link.name;
    case Placement::kNvme: return "drive";
  }
  return "";
}

std::string Coster::bottleneck(const TableCost& cost) const {
  const bool is_prefill = cost.limit_share_prefill >= cost.limit_share_decode;
  const double share = std::max(cost.limit_share_prefill, cost.limit_share_decode);
  const double most = is_read() ? request_.machine.drive.reads_per_s : bytes_per_s() / std::max(row_bytes_mean(), 1.0);
  return fmt::format("{}: {:.{}f} % of {} {}/s {}", link_name(), share * 100, share < 0.1 ? 1 : 0,
                     static_cast<std::uint64_t>(most), is_read() ? "reads" : "rows",
                     is_prefill ? "in prefill" : "in decode");
}

std::vector<std::string> Coster::assumptions() const {
  const Model& model = request_.model;
  std::vector<std::string> texts;
  if (request_.nodes > 1) texts.push_back("rows are spread evenly over the nodes, as with heads dealt out in turn");
  if (engine_ == EngineId::kLlamaCpp) {
    texts.push_back("llama.cpp gathers rows as its graph begins: nothing hides them within a step or chunk");
  } else if (reads_before_all()) {
    texts.push_back("forks of vLLM with a disk tier stage rows before the pass begins: nothing hides them");
  } else if (model.first_table_layer() == 0) {
    texts.push_back("rows are needed before the first layer: nothing hides them");
  } else {
    texts.push_back(
        fmt::format("rows are asked for as a step begins, and hidden behind the {} of {} layers before their use",
                    model.first_table_layer(), model.layers));
  }
  if (!is_read()) return texts;
  const DriveRates& drive = request_.machine.drive;
  texts.push_back(fmt::format("drive: {:.0f} reads/s, {:.0f} us for the first ({})", drive.reads_per_s, drive.serial_us,
                              drive.source));
  texts.push_back(
      "hit share: of Rowtide's cache on text read once, mean of five corpora; by the text whose bundles fit, and "
      "beyond "
      "4 GiB of the measured table held at its last value");
  if (model.family != "qwen_ple") {
    texts.push_back("hit share: measured with bigrams and trigrams; longer n-grams repeat less");
  }
  if (engine_ != EngineId::kLlamaCpp) {
    texts.push_back(fmt::format("{} keeps rows in the page cache instead, which serves less in the same memory",
                                engine_name(engine_)));
  }
  return texts;
}

TableCost Coster::cost() const {
  TableCost cost;
  cost.placement = placement_;
  cost.bytes = static_cast<std::uint64_t>(bytes_of_node());
  cost.hit_share = hit_share_;
  const Batch of_step = step(), of_chunk = chunk();
  const BatchCost decode = cost_of(of_step), prefill = cost_of(of_chunk);
  cost.reads_per_s_decode = decode.reads_per_s;
  cost.reads_per_s_prefill = prefill.reads_per_s;
  cost.limit_share_decode = decode.limit_share;
  cost.limit_share_prefill = prefill.limit_share;
  cost.us_per_step = decode.us;
  cost.us_per_step_added = decode.us_added;
  cost.ms_per_chunk = prefill.us / 1e3;
  cost.ms_per_chunk_added = prefill.us_added / 1e3;
  cost.is_hidden_decode = decode.us_added <= kHiddenShare * of_step.pass_us;
  cost.is_hidden_prefill = prefill.us_added <= kHiddenShare * of_chunk.pass_us;
  cost.bottleneck = bottleneck(cost);
  cost.assumptions = assumptions();
  return cost;
}

}  // namespace

TableCost table_cost(const Request& request, EngineId engine, Placement placement, std::uint64_t cache_bytes,
                     const Speed& without_table) {
  return Coster(request, engine, placement, cache_bytes, without_table).cost();
}

}  // namespace rowtide::sizing
