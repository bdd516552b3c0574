#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raw rows of `tokens`, a sequence from its start, out of the first table of the checkpoint at `path`.
 * 0, or 1 with the sentence of the error in `message`. */
int c_reads_the_rows_of(const char* path, const int64_t* tokens, uint64_t token_count, unsigned char* out,
                        uint64_t out_bytes, char* message, size_t message_bytes);

#ifdef __cplusplus
}
#endif
