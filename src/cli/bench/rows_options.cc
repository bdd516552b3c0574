#include "cli/bench/rows_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "cli/failure.h"
#include "cli/input.h"

namespace rowtide::cli {
namespace {

constexpr std::uint64_t kRowBytesMax = 4096;
constexpr std::uint64_t kBatchRowsMax = std::uint64_t{1} << 24;
constexpr std::uint64_t kRowBytesDefault = 90;  // as in the released Qwen3.8-Flash-Next as IQ4_NL

constexpr const char* kDescription =
    "Gathers rows of one file by Rowtide and by the ways of reading it is to be compared with, in one run.\n\n"
    "Methods: rowtide; memcpy (from a copy in memory: the lower bound); fio (random reads of blocks, for reads/s);\n"
    "mmap, mmap_random (MADV_RANDOM), mmap_willneed (MADV_RANDOM, and one MADV_WILLNEED for the pages of a batch);\n"
    "pread1, pread8, pread32 (threads, one buffered pread a row); uring64 (O_DIRECT, one read a row, 64 in flight,\n"
    "duplicates read again).\n\n"
    "States: cold (nobody maps the file, it is evicted, and found evicted), warm (every row asked for is in Rowtide's\n"
    "cache; for methods that read through the page cache, there), resident (the whole table), mixed:SHARE (that share\n"
    "of the rows warm). What does not read through the page cache, fio and uring64, is measured cold and mixed "
    "only.\n\n"
    "Traces: uniform; zipf (exponent 1); decode (every stream reads one token's rows a step); prefill (chunks of one\n"
    "sequence); text (chunks of --text). Where the table has addressing, rows come through it: drawn n-grams, or "
    "token\n"
    "ids, by themselves Zipf of exponent 1 over 150,000. Heads of equal size stand for it where its family knows no "
    "ids\n"
    "beyond the vocabulary (deepseek_engram, unigram), as many as the table has; and for a bare file, 16 of them, in\n"
    "decode and prefill. Cold and mixed, every measurement has a trace of the same shape on other rows: token ids are\n"
    "shifted beyond the vocabulary, n-grams and rows are drawn anew. The share of blocks that an earlier measurement\n"
    "had read all the same is reported.\n\n"
    "Every method's rows are checked, outside of what is timed. Repeats are interleaved, and the methods' order\n"
    "changes from one to the next; but mmap comes last, since it reads far around each row what others are to find\n"
    "unread. A measurement of more than five seconds is not repeated.";

constexpr const char* kExamples =
    "  rowtide bench rows model.gguf --batch 16,2048,8192 --memory 1GiB\n"
    "  rowtide bench rows --raw table.bin --row-bytes 160 --state warm --json\n"
    "  rowtide bench rows --synthetic 4GiB --trace decode --method rowtide,mmap,fio\n"
    "  rowtide bench rows model.gguf --trace text --text tokens.i32le --memory 1GiB\n";

struct GivenText {
  std::optional<std::string> row_bytes, offset, synthetic, folder, batch, memory, rows, before, method;
};

std::uint64_t whole_number(std::string_view option, std::string_view given, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  if (error == std::errc() && end == given.data() + given.size() && number >= least && number <= most) return number;
  throw usage_failure("{}: '{}' is not a whole number of {} to {}", option, given, least, most);
}

std::vector<std::string> method_list(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    std::string name = list.substr(start, end - start);
    const auto& known = bench_methods();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw usage_failure("--method: unknown method '{}'{}; methods are {}", name, suggestion(name, known),
                          fmt::join(known, ", "));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    start = end + 1;
  }
  return names;
}

std::vector<std::size_t> batch_list(const std::string& list) {
  std::vector<std::size_t> batches;
  for (std::int64_t given : parse_ids("--batch", list)) {
    if (given < 1 || static_cast<std::uint64_t>(given) > kBatchRowsMax) {
      throw usage_failure("--batch: {} rows; a batch has 1 to {}", given, kBatchRowsMax);
    }
    batches.push_back(static_cast<std::size_t>(given));
  }
  if (batches.empty()) throw usage_failure("--batch: the list is empty");
  return batches;
}

void set_state(BenchRowsOptions& options) {
  constexpr std::string_view kMixed = "mixed:";
  const std::string& name = options.state_name;
  if (name == "cold") {
    options.state = BenchState::kCold;
  } else if (name == "warm") {
    options.state = BenchState::kWarm;
  } else if (name == "resident") {
    options.state = BenchState::kResident;
  } else {
    options.state = BenchState::kMixed;
    const std::string_view share = std::string_view(name).substr(std::min(name.size(), kMixed.size()));
    auto [end, error] = std::from_chars(share.data(), share.data() + share.size(), options.warm_share);
    const bool is_share =
        error == std::errc() && end == share.data() + share.size() && options.warm_share > 0 && options.warm_share < 1;
    if (!name.starts_with(kMixed) || !is_share) {
      throw usage_failure("--state: '{}' is none of cold, warm, resident, mixed:SHARE (a share between 0 and 1)", name);
    }
  }
}

void set_trace(BenchRowsOptions& options) {
  const std::vector<std::pair<std::string_view, BenchTrace>> names{{"uniform", BenchTrace::kUniform},
                                                                   {"zipf", BenchTrace::kZipf},
                                                                   {"decode", BenchTrace::kDecode},
                                                                   {"prefill", BenchTrace::kPrefill},
                                                                   {"text", BenchTrace::kText}};
  for (const auto& [name, trace] : names) {
    if (options.trace_name == name) options.trace = trace;
  }
  const bool reads_tokens = options.trace == BenchTrace::kDecode || options.trace == BenchTrace::kText;
  if (options.text && !reads_tokens) throw usage_failure("--text belongs to --trace text or --trace decode");
  if (options.trace == BenchTrace::kText && !options.text) throw usage_failure("--trace text needs --text FILE");
  if (options.text && !options.path) {
    throw usage_failure("--text needs PATH, a checkpoint: a bare file has no addressing to turn token ids into rows");
  }
}

void check_source(const BenchRowsOptions& options, const GivenText& given) {
  const int sources = int{options.path.has_value()} + int{options.raw.has_value()} + int{given.synthetic.has_value()};
  if (sources != 1)
    throw usage_failure("give one of PATH, --raw FILE and --synthetic SIZE; see rowtide bench rows --help");
  if (options.raw && !given.row_bytes) throw usage_failure("--raw needs --row-bytes N");
  if (options.path && given.row_bytes)
    throw usage_failure("--row-bytes belongs to --raw and --synthetic: a checkpoint says it itself");
  if (given.offset && !options.raw) throw usage_failure("--offset belongs to --raw");
  if (given.folder && !given.synthetic) throw usage_failure("--dir belongs to --synthetic");
  if (options.row_bytes % 2 != 0) {
    throw usage_failure("--row-bytes: {}: no row format that is served has rows of an odd number of bytes",
                        options.row_bytes);
  }
}

void take(const GivenText& given, BenchRowsOptions& options) {
  options.row_bytes = kRowBytesDefault;
  if (given.row_bytes) options.row_bytes = whole_number("--row-bytes", *given.row_bytes, 2, kRowBytesMax);
  if (given.offset) options.offset = whole_number("--offset", *given.offset, 0, INT64_MAX);
  if (given.synthetic) options.synthetic_bytes = parse_size("--synthetic", *given.synthetic);
  if (given.folder) options.folder = *given.folder;
  if (given.memory) options.memory_bytes = parse_size("--memory", *given.memory);
  if (given.rows) options.rows = whole_number("--rows", *given.rows, 1, std::uint64_t{1} << 32);
  if (given.before) options.rows_before = whole_number("--before", *given.before, 0, std::uint64_t{1} << 32);
  if (given.batch) options.batches = batch_list(*given.batch);
  options.methods = given.method ? method_list(*given.method) : bench_methods();
}

}  // namespace

const std::vector<std::string>& bench_methods() {
  static const std::vector<std::string> names{"rowtide",       "memcpy", "fio",    "mmap",    "mmap_random",
                                              "mmap_willneed", "pread1", "pread8", "pread32", "uring64"};
  return names;
}

bool read_bench_rows_options(const Arguments& arguments, BenchRowsOptions& options) {
  GivenText given;
  std::optional<std::string> state;
  ArgumentParser parser("rowtide bench rows", kDescription, kExamples, options.json);
  parser.optional_path(options.path, "a checkpoint; its first table is read");
  parser.optional("--raw", "FILE", options.raw, "a file of rows, one after the other");
  parser.optional("--row-bytes", "N", given.row_bytes, "bytes of a row, even (90 for --synthetic)");
  parser.optional("--offset", "N", given.offset, "where in the --raw file the rows start (0)");
  parser.optional("--synthetic", "SIZE", given.synthetic, "make a file of this size, and remove it afterwards");
  parser.optional("--dir", "FOLDER", given.folder, "where to make it (the current folder)");
  parser.optional("--method", "LIST", given.method, "which methods (all)");
  parser.optional("--batch", "LIST", given.batch,
                  "rows of a batch (16,128,2048; decode: one token's; prefill, text: 512 tokens')");
  parser.choice("--trace", {"uniform", "zipf", "decode", "prefill", "text"}, options.trace_name,
                "which rows (uniform)");
  parser.optional("--text", "FILE", options.text, "token ids of a text, 32-bit little-endian, for text and decode");
  parser.optional("--state", "STATE", state, "cold, warm, resident or mixed:SHARE (cold)");
  parser.optional("--memory", "SIZE", given.memory, "Rowtide's memory budget (its default)");
  parser.optional("--rows", "N", given.rows,
                  "rows of one measurement, in whole batches (8192 or two seconds' cold and mixed, else 131072)");
  parser.optional("--before", "N", given.before, "rows of the same trace that are served before, not timed (0)");
  parser.number("--repeat", options.repeat, 1, 1000, "measurements of each method and batch");
  if (!parser.parse(arguments)) return false;
  if (state) options.state_name = *state;
  take(given, options);
  check_source(options, given);
  set_state(options);
  set_trace(options);
  return true;
}

}  // namespace rowtide::cli
