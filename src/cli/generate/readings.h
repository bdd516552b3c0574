// One prompt read and continued twice in this process, cold and then warm, with the gathers timed.
#pragma once

#include "cli/generate/generate.h"
#include "cli/json_output.h"

namespace rowtide::cli {

/// Reads the first `prompt_tokens` tokens of options.prompt, all if there are fewer, and generates options.tokens; then
/// forgets the sequence and does it again. The rows are asked for by the plug-in alone, as in an engine that it is
/// loaded into: none is fetched ahead. `{table_rows, prompt_tokens, generated_tokens, load_seconds, first_row_seconds,
/// readings[{state, gather_seconds, rows, missed_rows, prompt_seconds, generate_seconds, reads, store_bytes,
/// page_cache_bytes, private_bytes, logits_sha256}]}`. Throws a Failure.
Json measure_readings(const GenerateOptions& options, std::uint32_t prompt_tokens);

}  // namespace rowtide::cli
