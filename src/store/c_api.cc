// The C ABI (rowtide/rowtide.h) over the C++ API: handles, errors and argument checks; no logic of its own.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "rowtide/checkpoint.h"
#include "rowtide/rowtide.h"
#include "rowtide/store.h"

struct rowtide_error {
  rowtide::Error error;
};

struct rowtide_table {
  rowtide::Table table;
};

struct rowtide_checkpoint {
  std::vector<rowtide_table> tables;
};

struct rowtide_store {
  std::shared_ptr<rowtide::Store> store;
};

struct rowtide_reader {
  std::shared_ptr<rowtide::Store> store;  // kept until the reader below is gone
  std::unique_ptr<rowtide::Reader> reader;
};

namespace {

using rowtide::ErrorCode;
using rowtide::make_error;
using rowtide::Result;

// Handed out when there is no memory for an error; never freed.
rowtide_error& out_of_memory() {
  static rowtide_error error{{ErrorCode::kResource, "out of memory"}};  // short enough to need no allocation
  return error;
}

rowtide_error* give(rowtide::Error error) { return new rowtide_error{std::move(error)}; }

// Runs `body`, which gives a Result<void>, and turns its error, or an exception, into an error handle.
template <class Body>
rowtide_error* guarded(Body body) noexcept {
  try {
    try {
      const Result<void> result = body();
      return result ? nullptr : give(result.error());
    } catch (const std::bad_alloc&) {
      return &out_of_memory();
    } catch (const std::exception& exception) {
      return give(make_error(ErrorCode::kResource, "unexpected failure: {}", exception.what()));
    }
  } catch (...) {
    return &out_of_memory();
  }
}

struct Argument {
  template <class Pointee>
  Argument(Pointee* given, const char* its_name) : pointer(static_cast<const void*>(given)), name(its_name) {}

  const void* pointer;
  const char* name;
};

Result<void> present(std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.pointer == nullptr) return make_error(ErrorCode::kUsage, "argument {} is NULL", argument.name);
  }
  return {};
}

// An array may be NULL if it has no elements.
Argument array(const void* pointer, std::uint64_t count, const char* name) {
  return {count == 0 ? static_cast<const void*>(name) : pointer, name};
}

Result<const rowtide::Addressing*> addressing_of(const rowtide_table& table) {
  if (table.table.addressing) return table.table.addressing.get();
  return make_error(ErrorCode::kUsage, "table {} has no addressing: its row ids come from the caller",
                    table.table.name);
}

Result<void> address(const rowtide::Addressing& addressing, std::span<const rowtide::TokenId> tokens,
                     std::int64_t* history, std::span<rowtide::RowId> row_ids) {
  const std::size_t width = addressing.rows_per_token();
  if (row_ids.size() / width != tokens.size() || row_ids.size() % width != 0) {
    return make_error(ErrorCode::kUsage, "{} tokens have {} row ids each, but room is given for {} in all",
                      tokens.size(), width, row_ids.size());
  }
  rowtide::History carried(history, history + addressing.history_tokens());
  addressing.rows(tokens, carried, row_ids);
  assert(carried.size() == addressing.history_tokens());
  std::copy(carried.begin(), carried.end(), history);
  return {};
}

constexpr std::uint64_t kOptionsBytesMin = 32;    // of version 0.1.0
constexpr std::uint64_t kOptionsBytesMax = 4096;  // more is no size, but a field that was never set

/// The options of a caller whose header may be older, with fewer fields, or newer: what it knows beyond this library
/// must be left to the library.
Result<rowtide_store_options> known_options(const rowtide_store_options& given) {
  const std::uint64_t size = given.size;
  if (size < kOptionsBytesMin || size > kOptionsBytesMax || size % sizeof(std::uint64_t) != 0) {
    return make_error(ErrorCode::kUsage, "rowtide_store_options of {} bytes; set size to sizeof(rowtide_store_options)",
                      size);
  }
  rowtide_store_options known{};
  std::memcpy(&known, &given, std::min<std::uint64_t>(size, sizeof(known)));
  for (std::uint64_t at = sizeof(known); at < size; at += sizeof(std::uint64_t)) {
    std::uint64_t unknown = 0;
    std::memcpy(&unknown, reinterpret_cast<const char*>(&given) + at, sizeof(unknown));
    if (unknown == 0) continue;
    return make_error(ErrorCode::kUsage,
                      "rowtide_store_options of {} bytes has {} at byte {}: an option that this library, version {}, "
                      "does not know",
                      size, unknown, at, ROWTIDE_VERSION);
  }
  return known;
}

Result<rowtide::StoreOptions> store_options(const rowtide_store_options* any) {
  rowtide::StoreOptions options;
  if (any == nullptr) return options;
  const auto given = known_options(*any);
  if (!given) return given.error();
  if (given->queue_depth > UINT32_MAX) {
    return make_error(ErrorCode::kUsage, "queue depth {} is more than 1024", given->queue_depth);
  }
  options.queue_depth = static_cast<std::uint32_t>(given->queue_depth);
  options.memory_bytes = given->memory_bytes;
  switch (given->mode) {
    case ROWTIDE_MODE_DEFAULT: break;
    case ROWTIDE_MODE_DISK: options.mode = rowtide::Mode::kDisk; break;
    case ROWTIDE_MODE_CACHE: options.mode = rowtide::Mode::kCache; break;
    case ROWTIDE_MODE_RESIDENT: options.mode = rowtide::Mode::kResident; break;
    case ROWTIDE_MODE_AUTO: options.mode = rowtide::Mode::kAuto; break;
    default: return make_error(ErrorCode::kUsage, "mode {} is none of ROWTIDE_MODE_*", given->mode);
  }
  return options;
}

Result<rowtide::Output> output_of(std::int32_t form, void* data, std::uint64_t bytes) {
  std::size_t alignment = 0;
  rowtide::Output output{rowtide::Output::Form::kRaw, static_cast<std::byte*>(data), bytes};
  switch (form) {
    case ROWTIDE_FORM_RAW: alignment = 1; break;
    case ROWTIDE_FORM_F32: alignment = alignof(float), output.form = rowtide::Output::Form::kF32; break;
    case ROWTIDE_FORM_BF16: alignment = alignof(std::uint16_t), output.form = rowtide::Output::Form::kBf16; break;
    default: return make_error(ErrorCode::kUsage, "output form {} is none of ROWTIDE_FORM_*", form);
  }
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
    return make_error(ErrorCode::kUsage, "the output is not aligned to the {} bytes of its numbers", alignment);
  }
  return output;
}

using Verb = Result<void> (rowtide::Reader::*)(std::span<const rowtide::RowId>, rowtide::Output);

rowtide_error* start_batch(Verb verb, rowtide_reader* reader, const std::uint64_t* row_ids, std::uint64_t row_id_count,
                           std::int32_t form, void* data, std::uint64_t bytes) {
  return guarded([&]() -> Result<void> {
    auto given = present({{reader, "reader"}, array(row_ids, row_id_count, "row_ids"), array(data, bytes, "output")});
    if (!given) return given;
    auto output = output_of(form, data, bytes);
    if (!output) return output.error();
    return (*reader->reader.*verb)({row_ids, row_id_count}, *output);
  });
}

}  // namespace

std::uint32_t rowtide_version(void) { return ROWTIDE_VERSION; }

std::int32_t rowtide_error_code(const rowtide_error* error) {
  switch (error->error.code) {
    case ErrorCode::kUsage: return ROWTIDE_ERROR_USAGE;
    case ErrorCode::kNotFound: return ROWTIDE_ERROR_NOT_FOUND;
    case ErrorCode::kMalformed: return ROWTIDE_ERROR_MALFORMED;
    case ErrorCode::kUnsupported: return ROWTIDE_ERROR_UNSUPPORTED;
    case ErrorCode::kMismatch: return ROWTIDE_ERROR_MISMATCH;
    case ErrorCode::kOutOfRange: return ROWTIDE_ERROR_OUT_OF_RANGE;
    case ErrorCode::kIo: return ROWTIDE_ERROR_IO;
    case ErrorCode::kResource: return ROWTIDE_ERROR_RESOURCE;
  }
  return ROWTIDE_ERROR_RESOURCE;
}

const char* rowtide_error_message(const rowtide_error* error) { return error->error.message.c_str(); }

void rowtide_error_free(rowtide_error* error) {
  if (error != &out_of_memory()) delete error;
}

rowtide_error* rowtide_checkpoint_open(const char* path, rowtide_checkpoint** checkpoint) {
  return guarded([&]() -> Result<void> {
    if (auto given = present({{path, "path"}, {checkpoint, "checkpoint"}}); !given) return given;
    auto opened = rowtide::Checkpoint::open(path);
    if (!opened) return opened.error();
    auto handle = std::make_unique<rowtide_checkpoint>();
    for (const rowtide::Table& table : opened->tables()) handle->tables.push_back({table});
    *checkpoint = handle.release();
    return {};
  });
}

void rowtide_checkpoint_close(rowtide_checkpoint* checkpoint) { delete checkpoint; }

std::uint64_t rowtide_checkpoint_table_count(const rowtide_checkpoint* checkpoint) { return checkpoint->tables.size(); }

const rowtide_table* rowtide_checkpoint_table(const rowtide_checkpoint* checkpoint, std::uint64_t index) {
  return index < checkpoint->tables.size() ? &checkpoint->tables[index] : nullptr;
}

rowtide_error* rowtide_table_at(const char* name, const char* path, std::uint64_t offset, std::uint64_t rows,
                                std::uint64_t row_values, const char* row_format, std::uint32_t bundle_rows,
                                rowtide_table** table) {
  return guarded([&]() -> Result<void> {
    auto given = present({{name, "name"}, {path, "path"}, {row_format, "row_format"}, {table, "table"}});
    if (!given) return given;
    const auto format = rowtide::row_format_named(row_format);
    if (!format) return make_error(ErrorCode::kUnsupported, "table {}: no row format is named {}", name, row_format);
    auto described = rowtide::table_at(name, path, offset, rows, row_values, *format, bundle_rows);
    if (!described) return described.error();
    *table = new rowtide_table{*std::move(described)};
    return {};
  });
}

void rowtide_table_close(rowtide_table* table) { delete table; }

const char* rowtide_table_name(const rowtide_table* table) { return table->table.name.c_str(); }
std::uint32_t rowtide_table_layer(const rowtide_table* table) { return table->table.layer; }
std::uint64_t rowtide_table_rows(const rowtide_table* table) { return table->table.rows; }
std::uint64_t rowtide_table_row_bytes(const rowtide_table* table) { return table->table.row_bytes; }
std::uint64_t rowtide_table_row_values(const rowtide_table* table) { return table->table.row_values; }

const char* rowtide_table_row_format(const rowtide_table* table) {
  return rowtide::row_format_name(table->table.row_format).data();
}

std::uint64_t rowtide_table_rows_per_token(const rowtide_table* table) {
  return table->table.addressing ? table->table.addressing->rows_per_token() : 0;
}

std::uint64_t rowtide_table_history_tokens(const rowtide_table* table) {
  return table->table.addressing ? table->table.addressing->history_tokens() : 0;
}

rowtide_error* rowtide_table_start(const rowtide_table* table, std::int64_t* history) {
  return guarded([&]() -> Result<void> {
    if (auto given = present({{table, "table"}, {history, "history"}}); !given) return given;
    auto addressing = addressing_of(*table);
    if (!addressing) return addressing.error();
    const rowtide::History start = (*addressing)->start();
    std::copy(start.begin(), start.end(), history);
    return {};
  });
}

rowtide_error* rowtide_table_address(const rowtide_table* table, const std::int64_t* tokens, std::uint64_t token_count,
                                     std::int64_t* history, std::uint64_t* row_ids, std::uint64_t row_id_count) {
  return guarded([&]() -> Result<void> {
    auto given = present({{table, "table"},
                          array(tokens, token_count, "tokens"),
                          {history, "history"},
                          array(row_ids, row_id_count, "row_ids")});
    if (!given) return given;
    auto addressing = addressing_of(*table);
    if (!addressing) return addressing.error();
    return address(**addressing, {tokens, token_count}, history, {row_ids, row_id_count});
  });
}

rowtide_error* rowtide_store_open(const rowtide_table* table, const rowtide_store_options* options,
                                  rowtide_store** store) {
  return guarded([&]() -> Result<void> {
    if (auto given = present({{table, "table"}, {store, "store"}}); !given) return given;
    auto wanted = store_options(options);
    if (!wanted) return wanted.error();
    auto opened = rowtide::Store::open(table->table, *wanted);
    if (!opened) return opened.error();
    *store = new rowtide_store{*std::move(opened)};
    return {};
  });
}

void rowtide_store_close(rowtide_store* store) { delete store; }

const char* rowtide_store_method(const rowtide_store* store) { return store->store->method().c_str(); }

const char* rowtide_store_mode(const rowtide_store* store) {
  return rowtide::mode_name(store->store->mode()).data();  // zero-terminated
}

rowtide_error* rowtide_store_prefetch(rowtide_store* store, const std::uint64_t* row_ids, std::uint64_t row_id_count) {
  return guarded([&]() -> Result<void> {
    if (auto given = present({{store, "store"}, array(row_ids, row_id_count, "row_ids")}); !given) return given;
    store->store->prefetch({row_ids, row_id_count});
    return {};
  });
}

rowtide_error* rowtide_store_counters(const rowtide_store* store, rowtide_counters* counters) {
  return guarded([&]() -> Result<void> {
    if (auto given = present({{store, "store"}, {counters, "counters"}}); !given) return given;
    if (counters->size < sizeof(counters->size)) {
      return make_error(ErrorCode::kUsage, "rowtide_counters of {} bytes; set its size before the call",
                        counters->size);
    }
    const rowtide::Counters now = store->store->counters();
    const std::uint64_t size = std::min<std::uint64_t>(counters->size, sizeof(rowtide_counters));
    const rowtide_counters filled{.size = size,
                                  .batches = now.batches,
                                  .rows = now.rows,
                                  .unique_rows = now.unique_rows,
                                  .bundles = now.bundles,
                                  .hits = now.hits,
                                  .blocks = now.blocks,
                                  .reads = now.reads,
                                  .bytes_read = now.bytes_read,
                                  .wait_ns = now.wait_ns,
                                  .memory_bytes = now.memory_bytes,
                                  .budget_bytes = now.budget_bytes,
                                  .cache_bytes = now.cache_bytes,
                                  .index_bytes = now.index_bytes,
                                  .resident_bytes = now.resident_bytes,
                                  .buffer_bytes = now.buffer_bytes,
                                  .resident_rows = now.resident_rows,
                                  .prefetched_rows = now.prefetched_rows,
                                  .prefetched_rows_used = now.prefetched_rows_used,
                                  .prefetch_reads = now.prefetch_reads,
                                  .prefetch_bytes_read = now.prefetch_bytes_read};
    std::memcpy(counters, &filled, size);
    return {};
  });
}

rowtide_error* rowtide_reader_open(rowtide_store* store, rowtide_reader** reader) {
  return guarded([&]() -> Result<void> {
    if (auto given = present({{store, "store"}, {reader, "reader"}}); !given) return given;
    auto opened = store->store->reader();
    if (!opened) return opened.error();
    *reader = new rowtide_reader{store->store, *std::move(opened)};
    return {};
  });
}

void rowtide_reader_close(rowtide_reader* reader) { delete reader; }

rowtide_error* rowtide_reader_begin(rowtide_reader* reader, const std::uint64_t* row_ids, std::uint64_t row_id_count,
                                    std::int32_t form, void* output, std::uint64_t output_bytes) {
  return start_batch(&rowtide::Reader::begin, reader, row_ids, row_id_count, form, output, output_bytes);
}

rowtide_error* rowtide_reader_finish(rowtide_reader* reader) {
  return guarded([&]() -> Result<void> {
    if (auto given = present({{reader, "reader"}}); !given) return given;
    return reader->reader->finish();
  });
}

rowtide_error* rowtide_reader_read(rowtide_reader* reader, const std::uint64_t* row_ids, std::uint64_t row_id_count,
                                   std::int32_t form, void* output, std::uint64_t output_bytes) {
  return start_batch(&rowtide::Reader::read, reader, row_ids, row_id_count, form, output, output_bytes);
}
