/* The rows that a sequence of tokens reads, by the C interface. Prints one a line: its id, and its bytes in hex.
 *
 *     cc rows.c $(pkg-config --cflags --libs rowtide) -o rows
 *     ./rows MODEL TOKEN...
 */
#include <inttypes.h>
#include <rowtide/rowtide.h>
#include <stdio.h>
#include <stdlib.h>

/* Says what went wrong, if something did. */
static int failed(rowtide_error* error) {
  if (error == NULL) return 0;
  fprintf(stderr, "rows: error %" PRId32 ": %s\n", rowtide_error_code(error), rowtide_error_message(error));
  rowtide_error_free(error);
  return 1;
}

static void print_rows(const uint64_t* ids, uint64_t id_count, const unsigned char* bytes, uint64_t row_bytes) {
  for (uint64_t i = 0; i < id_count; ++i) {
    printf("%" PRIu64 " ", ids[i]);
    for (uint64_t byte = 0; byte < row_bytes; ++byte) printf("%02x", bytes[i * row_bytes + byte]);
    putchar('\n');
  }
}

/* 1 if that failed. */
static int read_rows(const rowtide_table* table, const int64_t* tokens, uint64_t token_count) {
  const uint64_t id_count = token_count * rowtide_table_rows_per_token(table);
  const uint64_t row_bytes = rowtide_table_row_bytes(table);
  int64_t* history = calloc(rowtide_table_history_tokens(table) + 1, sizeof(*history));
  uint64_t* ids = calloc(id_count + 1, sizeof(*ids));
  unsigned char* bytes = malloc(id_count * row_bytes + 1);
  rowtide_store* store = NULL;
  rowtide_reader* reader = NULL;
  const int failure = history == NULL || ids == NULL || bytes == NULL || failed(rowtide_table_start(table, history)) ||
                      failed(rowtide_table_address(table, tokens, token_count, history, ids, id_count)) ||
                      failed(rowtide_store_open(table, NULL, &store)) || failed(rowtide_reader_open(store, &reader)) ||
                      failed(rowtide_reader_read(reader, ids, id_count, ROWTIDE_FORM_RAW, bytes, id_count * row_bytes));
  if (!failure) print_rows(ids, id_count, bytes, row_bytes);
  rowtide_reader_close(reader);
  rowtide_store_close(store);
  free(bytes);
  free(ids);
  free(history);
  return failure;
}

int main(int argc, char** argv) {
  if (rowtide_version() / 100 != ROWTIDE_VERSION / 100) { /* of another MINOR */
    fprintf(stderr, "rows: compiled with the header of version %d, run with library version %" PRIu32 "\n",
            ROWTIDE_VERSION, rowtide_version());
    return 1;
  }
  if (argc < 3) {
    fputs("usage: rows MODEL TOKEN...\n", stderr);
    return 2;
  }
  const uint64_t token_count = (uint64_t)argc - 2;
  int64_t* tokens = calloc(token_count, sizeof(*tokens));
  if (tokens == NULL) return 1;
  for (uint64_t i = 0; i < token_count; ++i) tokens[i] = strtoll(argv[i + 2], NULL, 10);

  rowtide_checkpoint* checkpoint = NULL;
  int failure = failed(rowtide_checkpoint_open(argv[1], &checkpoint));
  if (!failure && rowtide_checkpoint_table_count(checkpoint) == 0) {
    fprintf(stderr, "rows: %s has no table\n", argv[1]);
    failure = 1;
  }
  if (!failure) failure = read_rows(rowtide_checkpoint_table(checkpoint, 0), tokens, token_count);
  rowtide_checkpoint_close(checkpoint);
  free(tokens);
  return failure;
}
