#include "sizing/tensor_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include "sizing/anatomy.h"

namespace rowtide::sizing {
namespace {

/// The pieces of a name between its dots, one at a time.
class Pieces {
 public:
  explicit Pieces(std::string_view name) : rest_(name) {}

  std::optional<std::string_view> next() {
    if (done_) return std::nullopt;
    const std::size_t dot = rest_.find('.');
    const std::string_view piece = rest_.substr(0, dot);
    done_ = dot == std::string_view::npos;
    if (!done_) rest_.remove_prefix(dot + 1);
    return piece;
  }

 private:
  std::string_view rest_;
  bool done_ = false;
};

std::optional<std::uint32_t> number(std::string_view piece) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), value);
  return error == std::errc() && end == piece.data() + piece.size() ? std::optional(value) : std::nullopt;
}

bool is_any(std::string_view piece, std::span<const std::string_view> of) {
  return std::find(of.begin(), of.end(), piece) != of.end();
}

constexpr std::array<std::string_view, 16> kVision = {
    "visual",       "vision",      "vision_tower",  "vision_model",  "vision_encoder",        "image_encoder",
    "mm_projector", "aligner",     "image_newline", "image_start",   "multi_modal_projector", "embed_vision",
    "embed_audio",  "audio_tower", "audio_encoder", "view_separator"};
constexpr std::array<std::string_view, 3> kGgufVision = {"v", "mm", "a"};  // as the first piece
constexpr std::array<std::string_view, 3> kDraft = {"mtp", "nextn", "dspark"};
constexpr std::array<std::string_view, 5> kBlocks = {"layers", "blk", "h", "blocks", "layer"};
constexpr std::array<std::string_view, 12> kEmbedding = {
    "embed_tokens_per_layer", "embed_tokens",        "tok_embeddings", "token_embd", "wte",
    "word_embeddings",        "embeddings",          "embed_in",       "wpe",        "embed_positions",
    "position_embd",          "per_layer_token_embd"};
constexpr std::array<std::string_view, 3> kHead = {"lm_head", "embed_out", "output_head"};
constexpr std::array<std::string_view, 3> kFirstHead = {"output", "head", "lm_head"};  // as the first piece

bool is_shared_expert(std::string_view piece) {
  return piece.starts_with("shared_expert") || piece.starts_with("shared_mlp") || piece.ends_with("_shexp");
}

bool is_routed_expert(std::string_view piece) {
  return piece == "experts" || piece == "switch_mlp" || piece.ends_with("_exps") || piece.ends_with("_chexps");
}

/// What the pieces of a name say.
struct Marks {
  bool is_vision = false, is_draft = false, is_shared = false, is_routed = false, is_embedding = false, is_head = false;
  std::optional<std::uint32_t> block;  // of the innermost list of layers, or the draft module's own number
};

Marks marks_of(std::string_view name, std::uint32_t layers) {
  Marks marks;
  Pieces pieces(name);
  bool is_first = true;
  std::string_view before;
  while (const auto piece = pieces.next()) {
    marks.is_vision |= is_any(*piece, kVision) || (is_first && is_any(*piece, kGgufVision));
    marks.is_draft |= is_any(*piece, kDraft);
    marks.is_shared |= is_shared_expert(*piece);
    marks.is_routed |= is_routed_expert(*piece);
    marks.is_embedding |= is_any(*piece, kEmbedding) || (is_first && *piece == "embed");
    marks.is_head |= is_any(*piece, kHead) || (is_first && is_any(*piece, kFirstHead));
    if (is_any(before, kBlocks) || is_any(before, kDraft)) {
      if (const auto block = number(*piece); block && (!marks.block || is_any(before, kBlocks))) marks.block = block;
    }
    before = *piece;
    is_first = false;
  }
  if (!marks.is_vision && !marks.is_draft && marks.block && *marks.block >= layers) marks.is_draft = true;
  return marks;
}

}  // namespace

Part part_of_tensor(std::string_view name, std::uint32_t layers) {
  const Marks marks = marks_of(name, layers);
  if (marks.is_vision) return Part::kVision;
  if (marks.is_embedding) return Part::kEmbedding;
  if (marks.is_draft) return marks.is_routed && !marks.is_shared ? Part::kDraftExpert : Part::kDraftDense;
  if (marks.is_shared) return Part::kSharedExpert;
  if (marks.is_routed) return Part::kRoutedExpert;
  return marks.is_head && !marks.block ? Part::kHead : Part::kDense;
}

Part part_of_tensor(std::string_view name) { return part_of_tensor(name, std::numeric_limits<std::uint32_t>::max()); }

std::optional<std::uint32_t> draft_layer_of(std::string_view name, std::uint32_t layers) {
  const Marks marks = marks_of(name, layers);
  return marks.is_draft ? marks.block : std::nullopt;
}

bool is_scale(std::string_view name) {
  constexpr std::array<std::string_view, 9> kOther = {
      "scales", "biases", "qzeros", "g_idx", "weight_shape", "absmax", "quant_map", "zero_point", "weight_zero_point"};
  const std::string_view last = name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1);
  return last == "scale" || last.ends_with("_scale") || last.ends_with("_scale_inv") || last.ends_with("_scale_2") ||
         last.ends_with("_scales") || is_any(last, kOther);
}

}  // namespace rowtide::sizing
