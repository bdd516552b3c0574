/* Rowtide in C: the same nouns and verbs as the C++ headers, for engines and for other languages.
 *
 * A checkpoint is a model as published; opening one reads headers only. It has tables: arrays of encoded
 * rows that some layer reads at addresses which follow from the token ids. A store serves the rows of one
 * table out of the checkpoint's own file; it is shared by all threads. A reader is one thread's way to the
 * rows. Rows are exact, or the call fails.
 *
 *     rowtide_checkpoint *checkpoint;
 *     rowtide_store *store;
 *     rowtide_reader *reader;
 *     rowtide_error *error = rowtide_checkpoint_open("model.gguf", &checkpoint);
 *     if (error) { puts(rowtide_error_message(error)); rowtide_error_free(error); return 1; }
 *     const rowtide_table *table = rowtide_checkpoint_table(checkpoint, 0);
 *     ... rowtide_store_open(table, NULL, &store), rowtide_reader_open(store, &reader) ...
 *     rowtide_table_start(table, history);                          // once per sequence
 *     rowtide_table_address(table, tokens, n, history, ids, n * rows_per_token);
 *     rowtide_reader_read(reader, ids, n * rows_per_token, ROWTIDE_FORM_F32, out, out_bytes);
 *
 * Errors. A call that can fail returns NULL on success, else an error which the caller frees; then its
 * out-parameters are untouched, unless it says otherwise. A NULL argument is an error of the kind USAGE;
 * only the calls that cannot fail take it for granted that their handle is one.
 *
 * Threads. Checkpoints, tables and stores may be used by any number of threads at once; a reader by one
 * thread at a time. Closing is not a use: nobody else may be in a call with that handle.
 *
 * Text given back is UTF-8, ends in a zero byte and lives as long as the handle it came from.
 * Nothing here prints, exits or lets a C++ exception out.
 */
/* NOLINTBEGIN(readability-identifier-naming): the names of C. */
#ifndef ROWTIDE_ROWTIDE_H_
#define ROWTIDE_ROWTIDE_H_

#include <stdint.h>

#if defined(__GNUC__)
#define ROWTIDE_API __attribute__((visibility("default")))
#else
#define ROWTIDE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version. What the header says, and what the library that runs says: a program compares the two before anything
 * else. While MAJOR is 0, a program needs a library of the MINOR it was compiled with; PATCH does not matter. ---- */

#define ROWTIDE_VERSION_MAJOR 0
#define ROWTIDE_VERSION_MINOR 1
#define ROWTIDE_VERSION_PATCH 0
#define ROWTIDE_VERSION (ROWTIDE_VERSION_MAJOR * 10000 + ROWTIDE_VERSION_MINOR * 100 + ROWTIDE_VERSION_PATCH)

ROWTIDE_API uint32_t rowtide_version(void);

/* ---- Errors ---- */

typedef struct rowtide_error rowtide_error;

enum {
  ROWTIDE_ERROR_USAGE = 1,        /* the caller asked for something that makes no sense */
  ROWTIDE_ERROR_NOT_FOUND = 2,    /* a file or a table that is not there */
  ROWTIDE_ERROR_MALFORMED = 3,    /* bytes that contradict their format or themselves */
  ROWTIDE_ERROR_UNSUPPORTED = 4,  /* well-formed, but of a kind this version does not serve */
  ROWTIDE_ERROR_MISMATCH = 5,     /* two sources of one fact disagree */
  ROWTIDE_ERROR_OUT_OF_RANGE = 6, /* a row id outside the table */
  ROWTIDE_ERROR_IO = 7,           /* the operating system refused or failed a read */
  ROWTIDE_ERROR_RESOURCE = 8      /* memory, descriptors or another limit is exhausted */
};

ROWTIDE_API int32_t rowtide_error_code(const rowtide_error* error);
/* One sentence that names file, tensor, row, offset or value. */
ROWTIDE_API const char* rowtide_error_message(const rowtide_error* error);
/* NULL does nothing. */
ROWTIDE_API void rowtide_error_free(rowtide_error* error);

/* ---- Checkpoints ---- */

typedef struct rowtide_checkpoint rowtide_checkpoint;
typedef struct rowtide_table rowtide_table;

/* Opens a GGUF file, single or any part of a split set; a safetensors file, an index of shards, a checkpoint's folder,
 * or a hub's snapshot. A model whose addressing hashes compressed token ids uses its own tokenizer.json; without one
 * its tables have no addressing. */
ROWTIDE_API rowtide_error* rowtide_checkpoint_open(const char* path, rowtide_checkpoint** checkpoint);
/* NULL does nothing. Stores opened from its tables live on. */
ROWTIDE_API void rowtide_checkpoint_close(rowtide_checkpoint* checkpoint);
/* How many tables it has; a model without any has 0, which is no error. */
ROWTIDE_API uint64_t rowtide_checkpoint_table_count(const rowtide_checkpoint* checkpoint);
/* Table `index`, which belongs to the checkpoint and lives as long; NULL if there are not so many. */
ROWTIDE_API const rowtide_table* rowtide_checkpoint_table(const rowtide_checkpoint* checkpoint, uint64_t index);

/* ---- Tables ---- */

/* A table at a known place in one file, for callers that have parsed the checkpoint and bring their own
 * row ids: rows of `row_values` numbers in a row format of the names below, one after the other from byte
 * `offset` on; a scale outside the rows, where the format has one, is 1. `bundle_rows` rows, those of one n-gram,
 * are asked for next to each other; 1 if that is not known; up to 64. Close it; stores opened from it live on. */
ROWTIDE_API rowtide_error* rowtide_table_at(const char* name, const char* path, uint64_t offset, uint64_t rows,
                                            uint64_t row_values, const char* row_format, uint32_t bundle_rows,
                                            rowtide_table** table);
/* For tables of rowtide_table_at() only. NULL does nothing. */
ROWTIDE_API void rowtide_table_close(rowtide_table* table);

ROWTIDE_API const char* rowtide_table_name(const rowtide_table* table); /* the tensor's name */
ROWTIDE_API uint32_t rowtide_table_layer(const rowtide_table* table);   /* decoder layer, from 0 */
ROWTIDE_API uint64_t rowtide_table_rows(const rowtide_table* table);
ROWTIDE_API uint64_t rowtide_table_row_bytes(const rowtide_table* table); /* encoded */
ROWTIDE_API uint64_t rowtide_table_row_values(const rowtide_table* table);
/* "f32", "f16", "bf16", "q8_0", "q4_0", "iq4_nl", "fp8", "fp8_ue8m0" or "nvfp4". */
ROWTIDE_API const char* rowtide_table_row_format(const rowtide_table* table);

/* ---- Addressing: from token ids to row ids. Tables of rowtide_table_at() have none. ---- */

/* Rows that one token reads; 0 without addressing. */
ROWTIDE_API uint64_t rowtide_table_rows_per_token(const rowtide_table* table);
/* Length of a history: the last token ids of a sequence, oldest first; 0 without addressing. */
ROWTIDE_API uint64_t rowtide_table_history_tokens(const rowtide_table* table);
/* Writes the history before the first token of a sequence: history_tokens ids. */
ROWTIDE_API rowtide_error* rowtide_table_start(const rowtide_table* table, int64_t* history);
/* Row ids of `token_count` tokens that follow `history`, token by token; then `history` is what to carry to
 * the next chunk. Any split of a sequence gives the same ids. `row_id_count` must be token_count times
 * rows_per_token. */
ROWTIDE_API rowtide_error* rowtide_table_address(const rowtide_table* table, const int64_t* tokens,
                                                 uint64_t token_count, int64_t* history, uint64_t* row_ids,
                                                 uint64_t row_id_count);

/* ---- Stores ---- */

typedef struct rowtide_store rowtide_store;

/* Where a table's rows are kept. */
enum {
  ROWTIDE_MODE_DEFAULT = 0,  /* CACHE */
  ROWTIDE_MODE_DISK = 1,     /* nowhere: every batch is read from the files */
  ROWTIDE_MODE_CACHE = 2,    /* those asked for, as many as the budget holds */
  ROWTIDE_MODE_RESIDENT = 3, /* all of them, filled in the background */
  ROWTIDE_MODE_AUTO = 4      /* RESIDENT where the whole table fits the budget, else CACHE */
};

/* Set `size` to sizeof(rowtide_store_options); a 0 elsewhere is the library's own choice. Fields are only ever added at
 * the end; one that is set and that an older library does not know is an error. */
typedef struct rowtide_store_options {
  uint64_t size;
  uint64_t queue_depth;  /* reads in flight of one reader, and of all readers of one device; up to 1,024 */
  uint64_t memory_bytes; /* what all stores of the process may hold together; at least 32 MiB */
  uint64_t mode;         /* ROWTIDE_MODE_* */
} rowtide_store_options;

/* `options` may be NULL. Writes nothing to disk. */
ROWTIDE_API rowtide_error* rowtide_store_open(const rowtide_table* table, const rowtide_store_options* options,
                                              rowtide_store** store);
/* NULL does nothing. Readers that are still open keep what they need. */
ROWTIDE_API void rowtide_store_close(rowtide_store* store);
/* How blocks are read, for logs. */
ROWTIDE_API const char* rowtide_store_method(const rowtide_store* store);
/* "disk", "cache" or "resident": what was chosen. */
ROWTIDE_API const char* rowtide_store_mode(const rowtide_store* store);

/* A hint that these rows will be asked for soon, in this order, whole bundles: the rest of a prompt, say. They are
 * brought into the cache when nobody who waits needs the device. Returns at once; a hint may be lost. */
ROWTIDE_API rowtide_error* rowtide_store_prefetch(rowtide_store* store, const uint64_t* row_ids, uint64_t row_id_count);

/* What a store has done since it was opened. Set `size` to sizeof(rowtide_counters) before the call;
 * afterwards it says how many bytes the library filled in. Fields are only ever added at the end. */
typedef struct rowtide_counters {
  uint64_t size;
  uint64_t batches;
  uint64_t rows;        /* asked for, duplicates included */
  uint64_t unique_rows; /* distinct within their batch, of those not served from memory */
  uint64_t bundles;     /* n-grams; 0 where nothing is known of them */
  uint64_t hits;        /* rows served from memory */
  uint64_t blocks;      /* distinct blocks the batches needed */
  uint64_t reads;       /* read requests issued */
  uint64_t bytes_read;
  uint64_t wait_ns;      /* time batches spent waiting for the device */
  uint64_t memory_bytes; /* held by all stores of the process now: cache, index, resident, buffers */
  uint64_t budget_bytes; /* what they may hold */
  uint64_t cache_bytes;
  uint64_t index_bytes;
  uint64_t resident_bytes;
  uint64_t buffer_bytes;
  uint64_t resident_rows;        /* of this store's table */
  uint64_t prefetched_rows;      /* brought before anyone asked */
  uint64_t prefetched_rows_used; /* of these, asked for since */
  uint64_t prefetch_reads;
  uint64_t prefetch_bytes_read;
} rowtide_counters;

ROWTIDE_API rowtide_error* rowtide_store_counters(const rowtide_store* store, rowtide_counters* counters);

/* ---- Readers ---- */

typedef struct rowtide_reader rowtide_reader;

enum {
  ROWTIDE_FORM_RAW = 0, /* row_bytes bytes a row, as in the file */
  ROWTIDE_FORM_F32 = 1, /* row_values IEEE binary32 numbers a row */
  ROWTIDE_FORM_BF16 = 2 /* row_values bfloat16 numbers a row, rounded to nearest, ties to even */
};

ROWTIDE_API rowtide_error* rowtide_reader_open(rowtide_store* store, rowtide_reader** reader);
/* NULL does nothing. A batch in flight is given up. */
ROWTIDE_API void rowtide_reader_close(rowtide_reader* reader);

/* Starts a batch: row row_ids[i] goes to position i of `output`, which must be aligned for its form, have
 * exactly the size that the rows take (`output_bytes`), and stay valid until the batch is finished. The ids
 * are not needed after the call. One batch at a time. */
ROWTIDE_API rowtide_error* rowtide_reader_begin(rowtide_reader* reader, const uint64_t* row_ids, uint64_t row_id_count,
                                                int32_t form, void* output, uint64_t output_bytes);
/* Completes it. After an error the output is undefined and the reader is ready for the next batch. */
ROWTIDE_API rowtide_error* rowtide_reader_finish(rowtide_reader* reader);
/* Begins and finishes. */
ROWTIDE_API rowtide_error* rowtide_reader_read(rowtide_reader* reader, const uint64_t* row_ids, uint64_t row_id_count,
                                               int32_t form, void* output, uint64_t output_bytes);

#ifdef __cplusplus
}
#endif

#endif /* ROWTIDE_ROWTIDE_H_ */
/* NOLINTEND(readability-identifier-naming) */
