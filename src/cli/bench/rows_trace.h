// Which rows a measurement asks for, in which order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/bench/rows_options.h"
#include "rowtide/table.h"

namespace rowtide::cli {

class BenchTraceMaker {
 public:
  /// Throws a Failure: a text that cannot be read. Where the trace needs addressing and the table has none, the table
  /// is given one of 2 orders of 8 heads; where its own knows no ids beyond the vocabulary, one of as many heads.
  BenchTraceMaker(const BenchRowsOptions& options, Table& table);

  /// The batches asked for, or the trace's own.
  std::vector<std::size_t> batches() const;

  /// Ids of `rows` rows in whole batches of `batch` (rows is a multiple of it). Two `salt`s give traces of the same
  /// shape on other rows. Throws a Failure if the text is too short.
  std::vector<RowId> ids(std::uint64_t salt, std::size_t batch, std::uint64_t rows) const;

 private:
  std::vector<RowId> drawn(std::uint64_t salt, std::uint64_t rows) const;
  std::vector<RowId> streams(std::uint64_t salt, std::size_t stream_count, std::uint64_t tokens) const;
  TokenId token(std::uint64_t salt, std::uint64_t position) const;
  void read_text(const std::string& path, std::uint64_t tokens);

  const BenchRowsOptions& options_;
  std::uint64_t rows_;
  std::shared_ptr<const Addressing> addressing_;
  std::vector<std::int32_t> text_;
};

}  // namespace rowtide::cli
