// Vocabulary compression of the Engram families: tokenizer entries that read the same once normalised share one id.
//
// An entry is a piece of a byte-level vocabulary: each of its characters stands for a byte. Where the bytes are UTF-8,
// the entry's key is their text normalised: NFKC, NFD, without combining marks, lower case, runs of blanks as one
// space, stripped. Else it is the piece itself. Keys of both kinds share one numbering, by first use.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "address/token_map.h"
#include "rowtide/result.h"

namespace rowtide {

/// `text` (UTF-8) as the compression sees it; may be empty. kResource: the Unicode tables cannot be loaded. kMalformed:
/// it is not UTF-8.
Result<std::string> normalised_text(std::string_view text);

struct VocabularyKey {
  enum class Rule {
    kNormalised,
    kText,   // what is left of the text is nothing, so the text itself is taken
    kPiece,  // the bytes are no UTF-8, or hold U+FFFD, which the published code takes for a decoding error
  };

  Rule rule;
  std::string text;
};

/// The key of an entry. A piece with a character that stands for no byte, as special tokens have, is its own text.
Result<VocabularyKey> vocabulary_key(std::string_view piece);

/// The map of a tokenizer whose entry i is `pieces[i]` (UTF-8), base vocabulary and added tokens alike. Cost: about two
/// microseconds an entry.
Result<TokenMap> compress_vocabulary(std::span<const std::string> pieces);

}  // namespace rowtide
