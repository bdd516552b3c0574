// Hit shares of the bundle cache, scaled from the table they were measured on to others.
//
// What decides is how much text the cache remembers: the tokens whose bundles fit. So a memory is turned into tokens,
// by what one token's bundles take in the cache, and the measured curve is read there.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "sizing/data.h"
#include "sizing/speed.h"
#include "sizing/text_in_cache.h"

namespace rowtide::sizing {
namespace {

constexpr std::uint64_t kCurveFirstBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kCurveLastBytes = std::uint64_t{16} << 30;

/// Straight lines over the logarithm of x; beyond the last point that one's y.
class LogCurve {
 public:
  LogCurve(std::vector<double> x, std::vector<double> y) : y_(std::move(y)) {
    for (const double value : x) log_x_.push_back(std::log2(value));
  }

  double at(double x) const {
    const double log_x = std::log2(x);
    if (log_x >= log_x_.back()) return y_.back();
    std::size_t next = 1;  // below the first point its line goes on
    while (next + 1 < log_x_.size() && log_x_[next] < log_x) ++next;
    const double slope = (y_[next] - y_[next - 1]) / (log_x_[next] - log_x_[next - 1]);
    return y_[next - 1] + slope * (log_x - log_x_[next - 1]);
  }

 private:
  std::vector<double> log_x_, y_;
};

struct Shares {
  std::vector<LogCurve> corpora;  // over tokens remembered
  LogCurve unique;                // over tokens of a chunk
};

double measured_token_bytes(const nlohmann::json& measured) {
  const auto heads = measured.at("heads").get<std::uint32_t>();
  return measured.at("bundles_per_token").get<double>() *
         bundle_bytes_in_cache(heads, measured.at("row_bytes"), measured.at("rows"));
}

Shares read_shares() {
  const nlohmann::json json = nlohmann::json::parse(data::hit_shares);
  const nlohmann::json& curve = json.at("curve");
  std::vector<double> tokens;
  for (const double bytes : curve.at("memory_bytes"))
    tokens.push_back(bytes / measured_token_bytes(curve.at("measured")));
  std::vector<LogCurve> corpora;
  for (const nlohmann::json& corpus : curve.at("corpora")) corpora.emplace_back(tokens, corpus.at("shares"));

  const nlohmann::json& unique = json.at("unique");
  std::vector<double> both = unique.at("bigrams");
  const std::vector<double> trigrams = unique.at("trigrams");
  for (std::size_t i = 0; i < both.size(); ++i) both[i] = (both[i] + trigrams.at(i)) / 2;
  return {std::move(corpora), LogCurve(unique.at("chunk_tokens"), std::move(both))};
}

const Shares& shares() {
  static const Shares read = read_shares();
  return read;
}

HitSharePoint point_at(const Model& model, std::uint64_t memory_bytes) {
  HitSharePoint point;
  point.memory_bytes = memory_bytes;
  const double tokens = tokens_in_cache(model, memory_bytes);
  if (tokens <= 0) return point;
  point.least = 1;
  for (const LogCurve& corpus : shares().corpora) {
    const double share = std::clamp(corpus.at(tokens), 0.0, 1.0);
    point.share += share / static_cast<double>(shares().corpora.size());
    point.least = std::min(point.least, share);
    point.most = std::max(point.most, share);
  }
  return point;
}

}  // namespace

double bundle_bytes_in_cache(std::uint32_t heads, std::uint64_t row_bytes, std::uint64_t table_rows) {
  constexpr std::uint64_t kHeadBytes = 8, kPlaceBytes = 32;
  constexpr double kIndexBytes = 12.8, kGhostBytes = 16.0 / 3;
  const std::uint64_t id_bytes = table_rows <= std::uint64_t{1} << 32 ? 4 : 8;
  const std::uint64_t entry = kHeadBytes + heads * (id_bytes + row_bytes);
  return static_cast<double>((entry + kPlaceBytes - 1) / kPlaceBytes * kPlaceBytes) + kIndexBytes + kGhostBytes;
}

double tokens_in_cache(const Model& model, std::uint64_t memory_bytes) {
  double token_bytes = 0;
  for (const TableShape& table : model.tables) {
    const std::uint32_t heads = std::max(table.heads_per_order, 1u);
    token_bytes +=
        static_cast<double>(table.rows_per_token) / heads * bundle_bytes_in_cache(heads, table.row_bytes, table.rows);
  }
  return token_bytes > 0 ? static_cast<double>(memory_bytes) / token_bytes : 0;
}

std::vector<HitSharePoint> hit_share_curve(const Model& model) {
  std::vector<HitSharePoint> curve;
  if (model.tables.empty()) return curve;
  for (std::uint64_t bytes = kCurveFirstBytes; bytes <= kCurveLastBytes; bytes *= 2) {
    curve.push_back(point_at(model, bytes));
  }
  return curve;
}

double hit_share(const Model& model, std::uint64_t memory_bytes) { return point_at(model, memory_bytes).share; }

double unique_share(std::uint32_t chunk_tokens) { return shares().unique.at(std::max(chunk_tokens, 1u)); }

}  // namespace rowtide::sizing
