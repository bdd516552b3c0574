// What sizing needs to know of a model: its bytes by the way they are accessed, what it keeps for each token and each
// sequence, and its tables. The same for a checkpoint at hand (anatomy.h) and for a model described by name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rowtide/result.h"

namespace rowtide::sizing {

/// Parts of a model, by how their bytes are accessed while it generates.
enum class Part : std::uint8_t {
  kDense,         // read whole at every step: attention, norms, routers, dense MLPs, what mixes table rows in
  kSharedExpert,  // read whole at every step
  kRoutedExpert,  // those that the step's tokens were routed to
  kEmbedding,     // one row a token
  kHead,          // read whole where a token is to be chosen
  kDraftDense,    // of the draft (MTP) module: read whole at every drafted token
  kDraftExpert,   // of the draft module, routed
  kVision,        // only where there are images
  kTable,         // conditional memory: a few rows a token, at addresses known from token ids
};
inline constexpr std::size_t kParts = 9;

/// "dense", "shared experts", "routed experts", "embeddings", "output head", "draft module", "draft experts", "vision",
/// "conditional-memory table".
std::string_view part_name(Part part);

struct PartSize {
  std::uint64_t bytes = 0;       // as stored, scales and all
  std::uint64_t parameters = 0;  // stored values, without scales
  std::string source;            // where the two figures come from, for people
};

/// Layers that keep keys and values in the same way.
struct Attention {
  enum class Kind : std::uint8_t {
    kFull,        // MHA, GQA: keys and values of every position
    kLatent,      // MLA: one latent a position, for all heads
    kWindow,      // only the last `window` positions
    kSparse,      // all positions are kept, the best `attended_most` are read, chosen by index keys
    kCompressed,  // one latent for `ratio` positions, shared by several layers; read as in kSparse
  };
  Kind kind = Kind::kFull;
  std::string name;                 // for people: "sparse attention (QSA)"
  std::uint32_t layers = 0;         // that keep something; layers which share another's count there
  std::uint32_t readers = 0;        // layers that read what is kept; at least `layers`
  std::uint64_t values = 0;         // a layer and kept position, of keys and values together
  std::uint64_t index_values = 0;   // a layer and kept position, of index keys; always 2 bytes each
  std::uint32_t ratio = 1;          // tokens a kept position stands for
  std::uint64_t window = 0;         // kWindow: positions kept; else 0
  std::uint64_t attended_most = 0;  // positions that one token reads; 0: all that are kept
  std::uint32_t kv_heads = 1;       // over which keys and values can be split; 1: each rank keeps a copy
  bool of_draft = false;            // belongs to the draft module: there only with speculation
};

/// What a sequence keeps whatever its length.
struct State {
  std::string name;  // "Gated DeltaNet"
  std::uint32_t layers = 0;
  std::uint64_t values = 0;        // a layer
  std::uint32_t value_bytes = 0;   // 0: of the state type asked for (f32, bf16)
  std::uint64_t draft_values = 0;  // more a layer for each drafted token, to fall back to
  bool copied_per_draft = false;   // or a whole copy for each drafted token
  std::uint32_t heads = 1;         // over which it can be split; 1: each rank keeps a copy
};

/// A conditional-memory table, as far as its size and traffic go.
struct TableShape {
  std::string name;
  std::uint32_t layer = 0;  // 0-based decoder layer that needs its rows
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;  // encoded
  std::uint64_t row_values = 0;
  std::uint32_t rows_per_token = 0;
  std::uint32_t heads_per_order = 0;  // rows of one bundle
  std::uint32_t components = 1;       // places a row lies in: reads for one row

  std::uint64_t bytes() const { return rows * row_bytes; }
  std::uint64_t bytes_per_token() const { return std::uint64_t{rows_per_token} * row_bytes; }
  std::uint32_t reads_per_token() const { return rows_per_token * components; }
};

struct Model {
  std::string name;          // of the described set, or the checkpoint's path
  std::string precision;     // "NVFP4", "FP8", "BF16", "Q4"; of a checkpoint: what most of its bytes are stored as
  std::string model_type;    // "qwen4_exp", "qwen4exp", ...
  std::string family;        // of addressing; empty without a table
  std::string format;        // "gguf", "safetensors": decides which engines load it
  std::string source;        // where the description comes from, for people
  bool is_measured = false;  // read from a checkpoint; else described

  std::array<PartSize, kParts> parts;
  std::vector<Attention> attention;
  std::vector<State> states;
  std::vector<TableShape> tables;

  std::uint32_t layers = 0;  // decoder layers, without the draft module's
  std::uint64_t hidden = 0;
  std::uint32_t streams = 1;  // residual streams (hyper-connections)
  std::uint64_t vocabulary = 0;
  std::uint64_t context_most = 0;  // tokens that the model was made for
  std::uint32_t attention_heads = 0;
  std::uint32_t kv_heads = 0;  // 1 for latent attention
  std::uint32_t experts = 0;   // routed, a layer; 0: a dense model
  std::uint32_t experts_per_token = 0;
  std::uint64_t expert_width = 0;  // intermediate values of one
  std::uint32_t draft_layers = 0;  // 0: no draft module
  std::uint32_t draft_experts = 0;
  std::uint32_t draft_experts_per_token = 0;
  double prefill_share = 1;  // share of the active parameters that a prompt token needs (causal encoder-decoders: less)

  const PartSize& part(Part part) const { return parts[static_cast<std::size_t>(part)]; }
  PartSize& part(Part part) { return parts[static_cast<std::size_t>(part)]; }
  std::uint64_t bytes_total() const;
  std::uint64_t bytes_table() const { return part(Part::kTable).bytes; }
  std::uint64_t bytes_rest() const { return bytes_total() - bytes_table(); }
  std::uint32_t table_reads_per_token() const;
  std::uint32_t table_rows_per_token() const;
  std::uint64_t table_bytes_per_token() const;
  /// The first decoder layer that needs rows; `layers` without a table.
  std::uint32_t first_table_layer() const;
  /// Parameters that one generated token goes through: dense, shared, its experts, head.
  double active_parameters() const;
};

/// How a value of the KV cache, or of a recurrent state, is kept.
enum class KvType : std::uint8_t { kF16, kBf16, kFp8, kQ8_0 };
enum class StateType : std::uint8_t { kF32, kBf16 };
std::string_view kv_type_name(KvType type);        // "f16", "bf16", "fp8", "q8_0"
std::string_view state_type_name(StateType type);  // "f32", "bf16"
/// Bytes of one kept value; q8_0 has a scale of 2 bytes for 32 values.
double kv_value_bytes(KvType type);

/// One term of what a token, or a sequence, keeps.
struct MemoryTerm {
  std::string name;
  double bytes = 0;     // may be a fraction for a token of a compressed cache
  std::string formula;  // "12 layers x 1,024 values x 2 B"
};

/// What one token of context keeps on each of `ranks` tensor-parallel ranks: keys and values, index keys; windows are
/// not in it. The draft module's are in it with `speculate`.
std::vector<MemoryTerm> kv_terms(const Model& model, KvType type, bool speculate, std::uint32_t ranks = 1);
double kv_bytes_per_token(const Model& model, KvType type, bool speculate, std::uint32_t ranks = 1);

/// What one sequence keeps whatever its length on each of `ranks` ranks: recurrent states with what `speculate` drafted
/// tokens add, and sliding windows.
std::vector<MemoryTerm> state_terms(const Model& model, KvType kv, StateType type, std::uint32_t speculate,
                                    std::uint32_t ranks = 1);
double state_bytes_per_sequence(const Model& model, KvType kv, StateType type, std::uint32_t speculate,
                                std::uint32_t ranks = 1);

}  // namespace rowtide::sizing
