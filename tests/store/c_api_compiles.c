/* The C ABI as a C11 program uses it: the header compiles as C, and one walk from a file to rows works. */
#include "c_api_compiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rowtide/rowtide.h"

_Static_assert(sizeof(rowtide_counters) == 21 * sizeof(uint64_t), "fixed-width fields, no padding");
_Static_assert(sizeof(rowtide_store_options) == 4 * sizeof(uint64_t), "fixed-width fields, no padding");

/* Keeps the first error's sentence; 1 if there was one. */
static int failed(rowtide_error* error, char* message, size_t message_bytes) {
  if (error == NULL) return 0;
  snprintf(message, message_bytes, "%s", rowtide_error_message(error));
  rowtide_error_free(error);
  return 1;
}

static int read_first_tokens(const rowtide_table* table, const int64_t* tokens, uint64_t token_count,
                             unsigned char* out, uint64_t out_bytes, char* message, size_t message_bytes) {
  const uint64_t row_id_count = token_count * rowtide_table_rows_per_token(table);
  rowtide_store_options options = {sizeof(options), 8, 0, ROWTIDE_MODE_DEFAULT};
  rowtide_store* store = NULL;
  rowtide_reader* reader = NULL;
  int64_t* history = calloc((size_t)rowtide_table_history_tokens(table), sizeof(*history));
  uint64_t* row_ids = calloc((size_t)row_id_count, sizeof(*row_ids));
  int failure = history == NULL || row_ids == NULL ||
                failed(rowtide_table_start(table, history), message, message_bytes) ||
                failed(rowtide_table_address(table, tokens, token_count, history, row_ids, row_id_count), message,
                       message_bytes) ||
                failed(rowtide_store_open(table, &options, &store), message, message_bytes) ||
                failed(rowtide_reader_open(store, &reader), message, message_bytes) ||
                failed(rowtide_reader_read(reader, row_ids, row_id_count, ROWTIDE_FORM_RAW, out, out_bytes), message,
                       message_bytes);
  rowtide_reader_close(reader);
  rowtide_store_close(store);
  free(row_ids);
  free(history);
  return failure;
}

int c_reads_the_rows_of(const char* path, const int64_t* tokens, uint64_t token_count, unsigned char* out,
                        uint64_t out_bytes, char* message, size_t message_bytes) {
  rowtide_checkpoint* checkpoint = NULL;
  if (failed(rowtide_checkpoint_open(path, &checkpoint), message, message_bytes)) return 1;
  const rowtide_table* table = rowtide_checkpoint_table(checkpoint, 0);
  const int failure =
      table == NULL || read_first_tokens(table, tokens, token_count, out, out_bytes, message, message_bytes);
  rowtide_checkpoint_close(checkpoint);
  return failure;
}
