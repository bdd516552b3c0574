// What to change where something does not fit: each change is tried before it is named.
#include <fmt/format.h>

#include <algorithm>
#include <concepts>

#include "sizing/anatomy.h"
#include "sizing/choice.h"
#include "sizing/ranks.h"

namespace rowtide::sizing {
namespace {

constexpr std::size_t kMost = 3;
constexpr std::uint64_t kContextLeast = 2'048;
constexpr std::uint32_t kDevicesMost = 64;

class Trial {
 public:
  Trial(const Request& request, std::vector<std::string>& works) : request_(request), works_(works) {}

  /// Names `what` if the request so changed fits and runs.
  bool names(const Request& changed, std::string what) {
    return names(changed, [&](const Choice& /*best*/) { return std::move(what); });
  }

  /// The same, named after what was chosen for it.
  template <class Name>
    requires std::invocable<Name, const Choice&>
  bool names(const Request& changed, Name name) {
    if (works_.size() >= kMost) return true;
    const auto choices = choices_of(changed);
    const Choice& best = best_of(choices);
    if (!best.fits() || !best.runs()) return false;
    works_.push_back(name(best));
    return true;
  }

  void placement() {
    if (!request_.placement) return;
    Request changed = request_;
    changed.placement.reset();
    names(changed,
          [](const Choice& best) { return fmt::format("--placement {}", placement_name(*best.layout.placement)); });
  }

  void memory() {
    Request changed = request_;
    if (request_.memory) {
      changed.memory.reset();
      names(changed, "no --memory, for a cache of the usual size");
    }
    changed = request_;
    if (request_.memory_fraction) {
      changed.memory_fraction.reset();
      names(changed, "no --memory-fraction, for all that the host's reserve leaves");
    }
  }

  void keys_and_values() {
    if (request_.kv == KvType::kF16 || request_.kv == KvType::kBf16) {
      Request changed = request_;
      changed.kv = KvType::kFp8;
      names(changed, "--kv fp8");
    }
    const auto choices = choices_of(request_);
    const KvPlan& kv = best_of(choices).memory.kv;
    if (request_.concurrency > 1 && kv.concurrency_most > 0 && kv.concurrency_most < request_.concurrency) {
      Request changed = request_;
      changed.concurrency = kv.concurrency_most;
      names(changed, fmt::format("--concurrency {}", changed.concurrency));
    }
    const std::uint64_t each = kv.tokens / std::max(1u, (request_.concurrency + request_.dp - 1) / request_.dp);
    if (each >= kContextLeast && each < request_.context) {
      Request changed = request_;
      changed.context = each / 1'024 * 1'024;
      changed.prompt = std::min(changed.prompt, changed.context);
      names(changed, fmt::format("--context {}", changed.context));
    }
  }

  void precision() {
    if (request_.model.is_measured || request_.weights) return;
    for (const KnownModel& known : known_models()) {
      if (known.name != request_.model.name) continue;
      for (const std::string& precision : known.precisions) {
        if (precision == request_.model.precision) continue;
        auto model = known_model(known.name, precision);
        if (!model) continue;
        Request changed = request_;
        changed.model = *std::move(model);
        if (changed.model.format == "gguf" && changed.kv == KvType::kBf16) changed.kv = KvType::kF16;
        if (names(changed, fmt::format("--precision {}", precision))) return;
      }
    }
  }

  void devices() {
    if (request_.machine.is_this) return;
    for (std::uint32_t devices = request_.devices * 2; devices <= kDevicesMost; devices *= 2) {
      const std::uint32_t tp = widest_split(request_.model, devices, request_.ep);
      if (names(on_devices(request_, devices, tp, request_.ep), fmt::format("--devices {}", devices))) return;
    }
  }

 private:
  const Request& request_;
  std::vector<std::string>& works_;
};

}  // namespace

std::vector<std::string> remedies(const Request& request) {
  std::vector<std::string> works;
  Trial trial(request, works);
  trial.placement();
  trial.memory();
  trial.keys_and_values();
  trial.precision();
  trial.devices();
  return works;
}

}  // namespace rowtide::sizing
