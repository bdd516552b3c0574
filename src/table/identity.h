// The identity of a table: what table_identity() computes, through any kind of file.
//
// 32 lower-case hex digits: XXH3, 128 bits, seed 0, in canonical (big-endian) form, over these bytes. Numbers are u64,
// little-endian; a text is its length as a number, then its bytes.
//
//   text     "rowtide table identity 2"
//   numbers  rows, row values, row bytes
//   text     row format name
//   number   the binary32 word of the scale
//   addressing, or the text "none":
//     text     family name
//     numbers  heads per order, count of orders, each order, row count, history tokens
//     numbers  count of ids of the start history, each id; image token id (2^64 - 1 if there is none)
//     numbers  the row ids of the tokens 0, 1, ..., 63 from the start of a sequence (ids from 2^63 on never occur).
//              They stand for the constants, whatever those are in the family at hand.
//   number   count of components
//   per component:
//     text     name
//     numbers  its bytes of a row, count of extents
//     per extent, ascending by first row:
//       numbers  rows, number of its file (0, 1, ... in the order in which files come up here)
//   number   count of files
//   per file:
//     number   length of the header (0: not known)
//     bytes    the header: all that stands before the tensor data
//   samples, per component: its parts of the rows, in order and without gaps, are cut into n blocks of 4,096 bytes (the
//   last may be shorter); k = min(n, 64) of them are taken, block i * (n - 1) / (k - 1) for i = 0 .. k - 1 (block 0 if
//   k = 1):
//     number   block index
//     bytes    the block
//
// So a table keeps its identity when its file is moved or renamed, and loses it when rows, headers or the cut into
// files change. A change of rows outside the samples that leaves the headers alone is not seen.
#pragma once

#include <string>

#include "io/file.h"
#include "rowtide/table.h"

namespace rowtide {

inline constexpr std::uint64_t kIdentityBlockBytes = 4096;
inline constexpr std::uint64_t kIdentityBlocks = 64;

/// As table_identity(table), its files opened by `open`. Memory: some 64 KiB.
Result<std::string> table_identity(const Table& table, const io::FileOpener& open);

}  // namespace rowtide
