#include "cli/bench/rows_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "address/splitmix64.h"
#include "cli/failure.h"
#include "io/file.h"

namespace rowtide::cli {
namespace {

constexpr std::uint64_t kChunkTokens = 512;
constexpr std::uint64_t kVocabulary = 150'000;                    // of made tokens
constexpr int kSaltBits = 21;                                     // shifts token ids beyond any vocabulary
constexpr std::uint64_t kTextTokensMax = std::uint64_t{1} << 21;  // 8 MiB, 32 million rows and more

/// A number of 0 to 1, 1 left out.
double share_of(std::uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

/// Draws from 0..count-1 with probabilities that fall as 1 / (rank + 1): log-uniform, Zipf's law of exponent 1.
std::uint64_t zipf_rank(std::uint64_t random, std::uint64_t count) {
  const double rank = std::pow(static_cast<double>(count) + 1, share_of(random)) - 1;
  return std::min(static_cast<std::uint64_t>(rank), count - 1);
}

/// Stands for an addressing: n-grams of `orders`, each with `heads_per_order` heads of equal size. Any token id counts.
class EvenHeads final : public Addressing {
 public:
  EvenHeads(std::uint64_t rows, std::span<const std::uint32_t> orders, std::uint32_t heads_per_order)
      : orders_(orders.begin(), orders.end()), heads_(heads_per_order), head_rows_(rows / rows_per_token()) {}
  std::string_view family() const override { return "even_heads"; }
  std::span<const std::uint32_t> orders() const override { return orders_; }
  std::uint32_t heads_per_order() const override { return heads_; }
  std::uint64_t row_count() const override { return head_rows_ * rows_per_token(); }
  std::size_t history_tokens() const override { return orders_.back() - 1; }
  History start() const override { return History(history_tokens(), 0); }
  std::optional<TokenId> image_token_id() const override { return std::nullopt; }

  void rows(std::span<const TokenId> tokens, History& history, std::span<RowId> ids) const override {
    History window = start();  // oldest first
    const std::size_t known = std::min(history.size(), window.size());
    std::copy(history.end() - static_cast<std::ptrdiff_t>(known), history.end(),
              window.end() - static_cast<std::ptrdiff_t>(known));
    RowId* out = ids.data();
    for (const TokenId token : tokens) {
      window.push_back(token);
      out = hash(window, out);
      window.erase(window.begin());
    }
    history = std::move(window);
  }

 private:
  /// The rows of the n-grams that end with the window's last token.
  RowId* hash(const History& window, RowId* out) const {
    std::uint64_t ngram = 0, head = 0, tokens = 0;
    for (const std::uint32_t order : orders_) {
      for (; tokens < order; ++tokens) {
        ngram = splitmix64(ngram ^ static_cast<std::uint64_t>(window[window.size() - 1 - tokens]));
      }
      for (const std::uint64_t end = head + heads_; head < end; ++head) {
        *out++ = head * head_rows_ + splitmix64(ngram + head) % head_rows_;
      }
    }
    return out;
  }

  std::vector<std::uint32_t> orders_;  // ascending
  std::uint32_t heads_;
  std::uint64_t head_rows_;
};

/// The rows of an n-gram of token ids that are not negative and far from any vocabulary.
void rows_of_drawn(const Addressing& addressing, std::uint64_t ngram, std::span<RowId> ids) {
  constexpr int kTokenBits = 40;
  auto draw = [&](std::size_t i) { return static_cast<TokenId>(splitmix64(ngram + i) >> (64 - kTokenBits)); };
  History history;
  for (std::size_t i = 0; i < addressing.history_tokens(); ++i) history.push_back(draw(i + 1));
  const TokenId last = draw(0);
  addressing.rows({&last, 1}, history, ids);
}

/// Whether ids beyond the vocabulary have rows of their own. There are families to which they are all the same.
bool tells_any_ids_apart(const Addressing& addressing) {
  std::vector<RowId> some(addressing.rows_per_token()), others(some.size());
  rows_of_drawn(addressing, 1, some);
  rows_of_drawn(addressing, 2, others);
  return some != others;
}

bool is_by_tokens(BenchTrace trace) { return trace != BenchTrace::kUniform && trace != BenchTrace::kZipf; }

}  // namespace

BenchTraceMaker::BenchTraceMaker(const BenchRowsOptions& options, Table& table) : options_(options), rows_(table.rows) {
  if (!table.addressing && is_by_tokens(options.trace)) {
    constexpr std::uint32_t kOrders[] = {2, 3}, kHeads = 8;
    if (table.rows < 16)
      throw Failure(kExitRefused, "unsupported",
                    fmt::format("{}: {} rows are too few for 16 heads", table.components.front().extents.front().path,
                                table.rows));
    table.addressing = std::make_shared<EvenHeads>(table.rows, kOrders, kHeads);
    table.bundle_rows = kHeads;
  } else if (const auto own = table.addressing; own && !tells_any_ids_apart(*own)) {
    table.addressing = std::make_shared<EvenHeads>(table.rows, own->orders(), own->heads_per_order());
  }
  addressing_ = table.addressing;
  if (options.text) read_text(*options.text, kTextTokensMax);
  for (const std::size_t batch : batches()) {
    if (batch > table.rows) {
      throw usage_failure("--batch: {} rows are more than the table's {}", batch, table.rows);
    }
    if (is_by_tokens(options.trace) && batch % addressing_->rows_per_token() != 0) {
      throw usage_failure("--batch: {} is no multiple of {}, the rows of one token, as --trace {} needs", batch,
                          addressing_->rows_per_token(), options.trace_name);
    }
  }
}

std::vector<std::size_t> BenchTraceMaker::batches() const {
  if (!options_.batches.empty()) return options_.batches;
  switch (options_.trace) {
    case BenchTrace::kDecode: return {addressing_->rows_per_token()};
    case BenchTrace::kPrefill:
    case BenchTrace::kText: return {kChunkTokens * addressing_->rows_per_token()};
    default: break;
  }
  std::vector<std::size_t> batches;
  for (const std::size_t batch : {16, 128, 2048}) {
    if (batch <= rows_) batches.push_back(batch);
  }
  return batches.empty() ? std::vector<std::size_t>{static_cast<std::size_t>(rows_)} : batches;
}

std::vector<RowId> BenchTraceMaker::ids(std::uint64_t salt, std::size_t batch, std::uint64_t rows) const {
  if (!is_by_tokens(options_.trace)) return drawn(salt, rows);
  const std::uint64_t tokens = rows / addressing_->rows_per_token();
  if (!text_.empty() && tokens > text_.size()) {
    throw Failure(kExitRefused, "unsupported",
                  fmt::format("{}: holds {} tokens, and a measurement needs {}; give a longer text, or lower --rows, "
                              "--before or --batch",
                              *options_.text, text_.size(), tokens));
  }
  const bool is_decode = options_.trace == BenchTrace::kDecode;
  return streams(salt, is_decode ? batch / addressing_->rows_per_token() : 1, tokens);
}

/// Rows or n-grams, each drawn by itself.
std::vector<RowId> BenchTraceMaker::drawn(std::uint64_t salt, std::uint64_t rows) const {
  auto draw = [&](std::uint64_t i) {
    const std::uint64_t random = splitmix64(salt * kSplitmix64Gamma + i);
    return options_.trace == BenchTrace::kZipf ? splitmix64(~salt ^ zipf_rank(random, rows_)) : random;
  };
  std::vector<RowId> ids;
  if (!addressing_) {
    ids.resize(rows);
    for (std::uint64_t i = 0; i < rows; ++i) ids[i] = draw(i) % rows_;
    return ids;
  }
  const std::size_t per_token = addressing_->rows_per_token();
  ids.resize((rows + per_token - 1) / per_token * per_token);
  for (std::size_t at = 0; at < ids.size(); at += per_token) {
    rows_of_drawn(*addressing_, draw(at), std::span(ids).subspan(at, per_token));
  }
  ids.resize(rows);
  return ids;
}

/// `tokens` tokens, one of each stream in turn; streams follow one another in the text.
std::vector<RowId> BenchTraceMaker::streams(std::uint64_t salt, std::size_t stream_count, std::uint64_t tokens) const {
  const std::size_t per_token = addressing_->rows_per_token();
  std::vector<RowId> ids(tokens * per_token);
  const std::uint64_t steps = tokens / stream_count;
  std::vector<History> histories(stream_count, addressing_->start());
  for (std::uint64_t i = 0; i < tokens; ++i) {
    const std::uint64_t stream = i % stream_count;
    const TokenId next = token(salt, stream * steps + i / stream_count);
    addressing_->rows({&next, 1}, histories[stream], std::span(ids).subspan(i * per_token, per_token));
  }
  return ids;
}

TokenId BenchTraceMaker::token(std::uint64_t salt, std::uint64_t position) const {
  const TokenId plain =
      text_.empty() ? static_cast<TokenId>(zipf_rank(splitmix64(position), kVocabulary)) : TokenId{text_[position]};
  // What starts a sequence also separates texts, and is known by its id.
  const History start = addressing_->start();
  if (std::find(start.begin(), start.end(), plain) != start.end()) return plain;
  return plain + static_cast<TokenId>(salt << kSaltBits);
}

void BenchTraceMaker::read_text(const std::string& path, std::uint64_t tokens) {
  const auto file = opened(io::open_file(path));
  if (file->bytes() == 0 || file->bytes() % sizeof(std::int32_t) != 0) {
    throw Failure(kExitRefused, "malformed",
                  fmt::format("{}: {} bytes are no list of 32-bit token ids", path, file->bytes()));
  }
  text_.resize(std::min(tokens, file->bytes() / sizeof(std::int32_t)));
  check(file->read(0, std::as_writable_bytes(std::span(text_))));
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] < 0) {
      throw Failure(kExitRefused, "malformed", fmt::format("{}: token {} is {}, no token id", path, i, text_[i]));
    }
  }
}

}  // namespace rowtide::cli
