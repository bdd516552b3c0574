// The time that the gathers from a model's tables take, with the store or without: by llama.cpp's evaluation callback,
// which has each gather computed alone.
#pragma once

#include <ggml.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace rowtide::cli {

class GatherTimer {
 public:
  using Clock = std::chrono::steady_clock;

  /// `tables`: the names of their tensors.
  explicit GatherTimer(std::vector<std::string> tables) : tables_(std::move(tables)) {}

  /// To be called before each computation. Nodes up to the last gather are then computed one by one, the rest as
  /// always.
  void next_graph() { gathers_left_ = tables_.size(); }

  /// Forgets what was timed so far.
  void reset() { seconds_ = 0, rows_ = 0, faults_ = 0; }
  double seconds() const { return seconds_; }
  std::uint64_t rows() const { return rows_; }
  /// Pages that the process had to wait for the disk for, meanwhile.
  std::uint64_t faults() const { return faults_; }
  /// When the first gather of all was done.
  Clock::time_point first_end() const { return first_end_; }

  /// For llama_context_params::cb_eval, with the timer as user data.
  static bool on_node(ggml_tensor* node, bool asks, void* timer);

 private:
  bool is_gather(const ggml_tensor& node) const;

  const std::vector<std::string> tables_;
  std::size_t gathers_left_ = 0;
  double seconds_ = 0;
  std::uint64_t rows_ = 0, faults_ = 0, faults_before_ = 0;
  Clock::time_point begin_, first_end_{};
};

}  // namespace rowtide::cli
