// The rows that a sequence of tokens reads, by the C++ interface. Prints one a line: its id, and its numbers.
//
//     cmake -S . -B build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build
//     build/rows MODEL TOKEN...
#include <rowtide/checkpoint.h>
#include <rowtide/store.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

int failed(const rowtide::Error& error) {
  std::fprintf(stderr, "rows: %s\n", error.message.c_str());
  return 1;
}

int print_rows(const rowtide::Table& table, const std::vector<rowtide::TokenId>& tokens) {
  auto store = rowtide::Store::open(table);
  if (!store) return failed(store.error());
  auto reader = (*store)->reader();
  if (!reader) return failed(reader.error());

  rowtide::History history = table.addressing->start();
  std::vector<rowtide::RowId> ids(tokens.size() * table.addressing->rows_per_token());
  table.addressing->rows(tokens, history, ids);
  std::vector<float> numbers(ids.size() * table.row_values);
  if (auto read = (*reader)->read(ids, rowtide::f32(numbers)); !read) return failed(read.error());

  const float* number = numbers.data();
  for (const rowtide::RowId id : ids) {
    std::printf("%llu", static_cast<unsigned long long>(id));
    for (std::uint64_t i = 0; i < table.row_values; ++i) std::printf(" %.9g", static_cast<double>(*number++));
    std::putchar('\n');
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: rows MODEL TOKEN...\n", stderr);
    return 2;
  }
  std::vector<rowtide::TokenId> tokens;
  for (int i = 2; i < argc; ++i) tokens.push_back(std::atoll(argv[i]));

  const auto checkpoint = rowtide::Checkpoint::open(argv[1]);
  if (!checkpoint) return failed(checkpoint.error());
  if (checkpoint->tables().empty() || !checkpoint->tables().front().addressing) {
    std::fprintf(stderr, "rows: %s has no table with addressing\n", argv[1]);
    return 1;
  }
  return print_rows(checkpoint->tables().front(), tokens);
}
