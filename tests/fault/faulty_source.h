// A BlockSource that wraps another and spoils what it reads, as told.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "io/block_source.h"

namespace rowtide::io {

/// Given the how-manieth read of the source this is (from 0), its request and its true result: the result
/// to report instead. What lies behind a shortened result is overwritten, so that it must be read again.
using Spoil = std::function<std::int32_t(std::uint64_t read_number, const ReadRequest& request, std::int32_t result)>;

class FaultyQueue final : public ReadQueue {
 public:
  FaultyQueue(std::unique_ptr<ReadQueue> inner, Spoil spoil, std::shared_ptr<std::atomic<std::uint64_t>> reads)
      : inner_(std::move(inner)), spoil_(std::move(spoil)), reads_(std::move(reads)) {}

  Result<void> submit(std::span<const ReadRequest> requests) override {
    for (const ReadRequest& request : requests) requests_[request.tag] = request;
    return inner_->submit(requests);
  }

  Result<std::size_t> reap(std::size_t at_least, std::span<Completion> out) override {
    auto count = inner_->reap(at_least, out);
    if (!count) return count;
    for (Completion& completion : out.first(*count)) {
      const ReadRequest& request = requests_[completion.tag];
      const std::int32_t told = spoil_(reads_->fetch_add(1), request, completion.result);
      const std::int32_t kept = std::max(0, told);
      if (told != completion.result)
        std::memset(request.into + kept, 0xEE, request.bytes - static_cast<std::uint32_t>(kept));
      completion.result = told;
    }
    std::shuffle(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(*count), random_);
    return count;
  }

 private:
  std::unique_ptr<ReadQueue> inner_;
  Spoil spoil_;
  std::shared_ptr<std::atomic<std::uint64_t>> reads_;
  std::map<std::uint64_t, ReadRequest> requests_;
  std::mt19937 random_{7};
};

class FaultySource final : public BlockSource {
 public:
  FaultySource(std::unique_ptr<BlockSource> inner, Spoil spoil)
      : inner_(std::move(inner)), spoil_(std::move(spoil)), reads_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

  std::uint32_t block_bytes() const override { return inner_->block_bytes(); }
  std::uint64_t file_bytes(std::uint32_t file) const override { return inner_->file_bytes(file); }
  const std::string& method() const override { return inner_->method(); }
  bool direct() const override { return inner_->direct(); }
  InFlightLimit& limit() override { return inner_->limit(); }
  Result<std::unique_ptr<ReadQueue>> queue(std::uint32_t depth, std::span<std::byte> buffer) override {
    auto queue = inner_->queue(depth, buffer);
    if (!queue) return queue;
    return std::unique_ptr<ReadQueue>(std::make_unique<FaultyQueue>(*std::move(queue), spoil_, reads_));
  }

 private:
  std::unique_ptr<BlockSource> inner_;
  Spoil spoil_;
  std::shared_ptr<std::atomic<std::uint64_t>> reads_;
};

}  // namespace rowtide::io
