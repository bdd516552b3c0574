// The queue of reads over real files, by io_uring and by the pread pool: the same contract.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "io/block_source.h"
#include "io/uring_queue.h"
#include "support/memory_disk.h"
#include "support/random_table.h"

namespace rowtide::io {
namespace {

constexpr std::uint32_t kBlock = 4096;
constexpr std::uint64_t kBlocks = 64;
constexpr std::size_t kTail = 100;  // bytes in the last block
constexpr std::uint32_t kDepth = 16;

/// A file of random blocks, and a queue over it.
struct Fixture {
  explicit Fixture(bool uring) {
    content.resize((kBlocks - 1) * kBlock + kTail);
    std::minstd_rand random(7);
    for (std::byte& value : content) value = static_cast<std::byte>(random());
    write_file(dir.file("blocks"), content);
    source = *open_block_source({dir.file("blocks")}, {.depth = kDepth, .allow_uring = uring});
    buffer.reset(static_cast<std::byte*>(std::aligned_alloc(65536, kBlocks * kBlock)));
    open_queue();
  }
  void open_queue() { queue = *source->queue(kDepth, {buffer.get(), kBlocks * kBlock}); }

  ReadRequest request(std::uint64_t block) const {
    return {0, kBlock, block * kBlock, buffer.get() + block * kBlock, block};
  }
  void submit(std::uint64_t first, std::uint64_t count) const {
    std::vector<ReadRequest> requests;
    for (std::uint64_t block = first; block < first + count; ++block) requests.push_back(request(block));
    ASSERT_TRUE(queue->submit(requests).ok());
  }
  /// The completion tells the block's true length, and its bytes are there.
  void expect_right(const Completion& completion) const {
    const std::size_t length = completion.tag == kBlocks - 1 ? kTail : kBlock;
    ASSERT_EQ(completion.result, static_cast<std::int32_t>(length));
    const std::size_t at = completion.tag * kBlock;
    ASSERT_EQ(std::memcmp(buffer.get() + at, content.data() + at, length), 0) << "block " << completion.tag;
  }
  /// Reaps until `count` have come, `at_least` at a time.
  std::vector<std::uint64_t> reap_all(std::size_t count, std::size_t at_least) const {
    std::vector<std::uint64_t> tags;
    std::vector<Completion> completions(kDepth);
    while (tags.size() < count) {
      const auto reaped = queue->reap(std::min(at_least, count - tags.size()), completions);
      if (!reaped.ok()) {
        ADD_FAILURE() << reaped.error().message;
        break;
      }
      for (std::size_t i = 0; i < *reaped; ++i) {
        expect_right(completions[i]);
        tags.push_back(completions[i].tag);
      }
    }
    std::ranges::sort(tags);
    return tags;
  }

  TempDir dir;
  std::vector<std::byte> content;
  std::unique_ptr<BlockSource> source;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> buffer;
  std::unique_ptr<ReadQueue> queue;  // goes before the buffer
};

std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> tags(count);
  std::iota(tags.begin(), tags.end(), first);
  return tags;
}

class ReadQueueTest : public testing::TestWithParam<bool> {
 protected:
  Fixture file_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(, ReadQueueTest, testing::Bool(),
                         [](const auto& way) { return way.param ? "uring" : "pread"; });

TEST_P(ReadQueueTest, ReapBringsAsManyAsAskedFor) {
  file_.submit(kBlocks - kDepth, kDepth);  // the end of the file among them
  std::vector<Completion> completions(kDepth);
  auto reaped = file_.queue->reap(5, completions);
  ASSERT_TRUE(reaped.ok());
  EXPECT_GE(*reaped, 5u);
  std::vector<std::uint64_t> tags;
  for (std::size_t i = 0; i < *reaped; ++i) {
    file_.expect_right(completions[i]);
    tags.push_back(completions[i].tag);
  }
  const auto rest = file_.reap_all(kDepth - *reaped, kDepth);
  tags.insert(tags.end(), rest.begin(), rest.end());
  std::ranges::sort(tags);
  EXPECT_EQ(tags, range(kBlocks - kDepth, kDepth));
}

TEST_P(ReadQueueTest, ReapFillsNoMoreThanThereIsRoomFor) {
  file_.submit(0, 8);
  std::vector<Completion> three(3);
  for (const std::size_t expected : {3u, 3u, 2u}) {
    const auto reaped = file_.queue->reap(8, three);
    ASSERT_TRUE(reaped.ok());
    EXPECT_EQ(*reaped, expected);
  }
  EXPECT_EQ(*file_.queue->reap(8, three), 0u) << "none is left: nothing to wait for";
}

TEST_P(ReadQueueTest, ReapOfNoneHandsOverAndDoesNotWait) {
  std::vector<Completion> completions(kDepth);
  EXPECT_EQ(*file_.queue->reap(0, completions), 0u);
  file_.submit(0, kDepth);
  EXPECT_EQ(file_.reap_all(kDepth, 0), range(0, kDepth)) << "all come, though nobody ever waits for them";
}

TEST_P(ReadQueueTest, StaysFullWhileReapedInParts) {
  std::vector<std::uint64_t> tags;
  std::uint64_t next = 0;
  std::vector<Completion> completions(kDepth);
  while (tags.size() < kBlocks) {
    const std::uint64_t more = std::min(kBlocks - next, kDepth - (next - tags.size()));
    file_.submit(next, more);
    next += more;
    const auto reaped = file_.queue->reap((next - tags.size() + 1) / 2, completions);
    ASSERT_TRUE(reaped.ok());
    for (std::size_t i = 0; i < *reaped; ++i) {
      file_.expect_right(completions[i]);
      tags.push_back(completions[i].tag);
    }
  }
  std::ranges::sort(tags);
  EXPECT_EQ(tags, range(0, kBlocks));
}

TEST_P(ReadQueueTest, MayWanderBetweenThreads) {
  std::thread([&] {
    std::vector<Completion> none;
    file_.submit(0, kDepth);
    EXPECT_EQ(*file_.queue->reap(0, none), 0u);
  }).join();
  EXPECT_EQ(file_.reap_all(kDepth, 3), range(0, kDepth));
  std::thread([&] {
    file_.submit(kDepth, kDepth);
    EXPECT_EQ(file_.reap_all(kDepth, kDepth), range(kDepth, kDepth));
  }).join();
}

TEST_P(ReadQueueTest, ItsEndWaitsForReadsInFlight) {
  for (int round = 0; round < 50; ++round) {
    std::vector<Completion> none;
    file_.submit(0, kDepth / 2);
    ASSERT_TRUE(file_.queue->reap(0, none).ok());
    file_.submit(kDepth / 2, kDepth / 2);  // never handed over, where the queue waits for a reap
    file_.queue.reset();
    // A read that still went on would change this, now or later.
    std::memset(file_.buffer.get(), 0, kDepth * kBlock);
    file_.open_queue();
    file_.submit(kBlocks - 1, 1);
    file_.reap_all(1, 1);
    std::byte* const end = file_.buffer.get() + kDepth * kBlock;
    ASSERT_EQ(std::find_if(file_.buffer.get(), end, [](std::byte value) { return value != std::byte{0}; }), end);
  }
}

TEST_P(ReadQueueTest, TellsWhichReadFailed) {
  std::vector<ReadRequest> requests{file_.request(0), file_.request(1)};
  requests[1].offset += 1;  // refused of a direct read; of another it gives other bytes
  ASSERT_TRUE(file_.queue->submit(requests).ok());
  std::vector<Completion> completions(2);
  ASSERT_EQ(*file_.queue->reap(2, completions), 2u);
  for (const Completion& completion : completions) {
    if (completion.tag == 0) file_.expect_right(completion);
    if (completion.tag == 1 && file_.source->direct()) {
      EXPECT_EQ(completion.result, -EINVAL);
    }
  }
}

/// What ordinary users have: so little memory may be pinned that a ring fits and a buffer does not.
bool allow_little_pinned_memory() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  data[0].effective &= ~(1u << CAP_IPC_LOCK);
  data[0].permitted &= ~(1u << CAP_IPC_LOCK);
  if (::syscall(SYS_capset, &header, data) != 0) return false;
  const rlimit little{kBlocks * kBlock / 2, kBlocks * kBlock / 2};
  return ::setrlimit(RLIMIT_MEMLOCK, &little) == 0;
}

/// A file may become something else between a look at it and its opening. A pipe that nobody writes to would be waited
/// for without end.
TEST(BlockSource, RefusesWhatIsNoRegularFile) {
  const TempDir dir;
  const std::string pipe = dir.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const bool direct : {true, false}) {
    for (const std::string& path : {pipe, dir.file(""), std::string("/dev/null")}) {
      expect_refused(open_block_source({path}, {.allow_direct = direct}), ErrorCode::kUnsupported,
                     {path, "not a regular file"});
    }
  }
}

/// Some kernels fail a read through io_uring that would have to wait, if the file does not block.
TEST(BlockSource, ItsFilesBlock) {
  const TempDir dir;
  write_file(dir.file("blocks"), std::vector<std::byte>(kBlock));
  const auto source = open_block_source({dir.file("blocks")}, {});
  ASSERT_TRUE(source.ok()) << source.error().message;
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != dir.file("blocks")) continue;
    EXPECT_EQ(::fcntl(std::stoi(entry.path().filename()), F_GETFL) & O_NONBLOCK, 0);
    ++found;
  }
  EXPECT_EQ(found, 1);
}

TEST(ReadQueuePinning, IsDoneWithoutWhereItIsRefused) {
  EXPECT_EXIT(
      {
        if (!allow_little_pinned_memory()) std::exit(1);
        Fixture file(true);
        file.submit(0, kDepth);
        const bool right = file.reap_all(kDepth, kDepth) == range(0, kDepth);
        std::exit(right && !testing::Test::HasFailure() ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
}

TEST(UringProbe, TellsWhatIsRefused) {
  const UringRefusals refusals = probe_uring(kBlocks * kBlock);
  if (refusals.ring != 0) GTEST_SKIP() << "no io_uring here";
  EXPECT_EQ(refusals.pinned, 0);
  EXPECT_EXIT(
      {
        if (!allow_little_pinned_memory()) std::exit(1);
        const UringRefusals limited = probe_uring(kBlocks * kBlock);
        std::exit(limited.ring == 0 && limited.pinned == ENOMEM ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rowtide::io
