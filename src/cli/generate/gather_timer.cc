#include "cli/generate/gather_timer.h"

#include <sys/resource.h>

#include <algorithm>

namespace rowtide::cli {
namespace {

std::uint64_t major_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_majflt);
}

}  // namespace

bool GatherTimer::is_gather(const ggml_tensor& node) const {
  return node.op == GGML_OP_GET_ROWS && std::find(tables_.begin(), tables_.end(), node.src[0]->name) != tables_.end();
}

/// llama.cpp asks of each node whether it is to be computed by itself, and then shows it computed.
bool GatherTimer::on_node(ggml_tensor* node, bool asks, void* timer) {
  auto& self = *static_cast<GatherTimer*>(timer);
  const bool gather = self.is_gather(*node);
  if (asks) {
    if (gather) {
      self.faults_before_ = major_faults();
      self.begin_ = Clock::now();
    }
    return self.gathers_left_ > 0;
  }
  if (gather) {
    const auto end = Clock::now();
    if (self.first_end_ == Clock::time_point{}) self.first_end_ = end;
    self.seconds_ += std::chrono::duration<double>(end - self.begin_).count();
    self.faults_ += major_faults() - self.faults_before_;
    self.rows_ += static_cast<std::uint64_t>(node->ne[1]);
    --self.gathers_left_;
  }
  return true;
}

}  // namespace rowtide::cli
