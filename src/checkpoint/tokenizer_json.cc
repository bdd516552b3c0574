#include "checkpoint/tokenizer_json.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/json_events.h"
#include "checkpoint/lfs_pointer.h"

namespace rowtide::checkpoint {
namespace {

using Kind = JsonScalar::Kind;

/// Listens to model.{type, byte_fallback, vocab}, decoder.type and added_tokens[].{id, content}.
class TokenizerVisitor final : public JsonVisitor {
 public:
  std::vector<std::string> pieces;
  std::vector<bool> is_there;
  std::optional<std::string> model_type, decoder_type;
  bool byte_fallback = false;
  bool has_vocab = false;

  void object_begins() override {
    const bool expected = depth() == 0 || (depth() == 1 && part_ != "added_tokens") ||
                          (depth() == 2 && (part_ == "added_tokens" || (part_ == "model" && key_ == "vocab")));
    if (!expected) refuse("an object is not expected here");
    if (depth() == 2 && part_ == "model") has_vocab = true;
    if (depth() == 2) added_id_.reset(), added_content_.reset();
  }

  void object_ends() override {
    if (depth() != 2 || part_ != "added_tokens") return;
    if (!added_id_ || !added_content_) return refuse("an added token needs id and content");
    add(*added_id_, *added_content_);
  }

  bool name(std::string_view name) override {
    if (depth() == 1) {
      part_ = name;
      return part_ == "model" || part_ == "added_tokens" || part_ == "decoder";
    }
    key_ = name;
    if (part_ == "added_tokens") return key_ == "id" || key_ == "content";
    if (part_ == "decoder") return key_ == "type";
    return depth() == 3 || key_ == "type" || key_ == "byte_fallback" || key_ == "vocab";
  }

  void array_begins() override {
    if (depth() == 1 && part_ == "added_tokens") return;
    if (depth() == 2 && part_ == "model" && key_ == "vocab") {
      return refuse("a list of pieces is what a unigram model has, not a byte-level BPE", ErrorCode::kUnsupported);
    }
    refuse("a list is not expected here");
  }

  void scalar(const JsonScalar& value) override {
    if (depth() == 1 && part_ == "decoder" && value.kind == Kind::kNull) return;
    if (depth() == 2 && part_ != "added_tokens") return setting(value);
    if (depth() != 3) return refuse(value.described() + " is not expected here");
    if (part_ == "model") {
      if (const auto id = index_of(value)) add(*id, key_);
      return;
    }
    if (key_ == "id") {
      added_id_ = index_of(value);
    } else if (value.kind == Kind::kText) {
      added_content_ = value.text;
    } else {
      refuse(value.described() + " is no text");
    }
  }

 private:
  void setting(const JsonScalar& value) {
    if (key_ == "byte_fallback" && value.kind == Kind::kBool) {
      byte_fallback = value.bool_value;
    } else if (key_ == "type" && value.kind == Kind::kText) {
      (part_ == "model" ? model_type : decoder_type) = value.text;
    } else if (!(key_ == "byte_fallback" && value.kind == Kind::kNull)) {
      refuse(value.described() + " is not expected here");
    }
  }

  std::optional<std::size_t> index_of(const JsonScalar& id) {
    if (id.kind != Kind::kUnsigned) {
      refuse(id.described() + " is no token id");
    } else if (id.unsigned_value >= kTokenizerIdsMax) {
      refuse(fmt::format("token id {} is more than the limit of {}", id.unsigned_value, kTokenizerIdsMax - 1),
             ErrorCode::kUnsupported);
    } else {
      return static_cast<std::size_t>(id.unsigned_value);
    }
    return std::nullopt;
  }

  /// An added token that is in the vocabulary too must be the same in both.
  void add(std::size_t id, const std::string& piece) {
    if (id >= pieces.size()) pieces.resize(id + 1), is_there.resize(id + 1);
    if (is_there[id] && pieces[id] != piece) {
      return refuse(fmt::format("id {} belongs to '{}' and to '{}'", id, printable(pieces[id]), printable(piece)));
    }
    pieces[id] = piece;
    is_there[id] = true;
  }

  std::string part_, key_;  // the last names at depth 1, and below
  std::optional<std::size_t> added_id_;
  std::optional<std::string> added_content_;
};

Result<void> check(const std::string& path, const TokenizerVisitor& found) {
  if (!found.model_type || !found.has_vocab) {
    return make_error(ErrorCode::kMalformed, "{}: has no model.type and model.vocab, so it is no tokenizer.json", path);
  }
  if (*found.model_type != "BPE" || found.byte_fallback || found.decoder_type.value_or("") != "ByteLevel") {
    return make_error(ErrorCode::kUnsupported,
                      "{}: model.type is '{}'{}, decoder.type '{}'; vocabulary compression is defined for byte-level "
                      "BPE ('BPE', 'ByteLevel')",
                      path, printable(*found.model_type), found.byte_fallback ? " with byte_fallback" : "",
                      printable(found.decoder_type.value_or("")));
  }
  for (std::size_t id = 0; id < found.pieces.size(); ++id) {
    if (!found.is_there[id]) {
      return make_error(ErrorCode::kMalformed, "{}: no piece has id {}, though ids go up to {}", path, id,
                        found.pieces.size() - 1);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> read_tokenizer_pieces(const io::File& file) {
  return without_throwing([&]() -> Result<std::vector<std::string>> {
    if (auto itself = refuse_lfs_pointer(file); !itself) return itself.error();
    TokenizerVisitor visitor;
    if (auto read = read_json(file, 0, file.bytes(), visitor, {.has_non_finite = true}); !read) return read.error();
    if (auto checked = check(file.path(), visitor); !checked) return checked.error();
    return std::move(visitor.pieces);
  });
}

}  // namespace rowtide::checkpoint
