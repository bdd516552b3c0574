#include "address/vocab_compression.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>

#include <array>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"

namespace rowtide {
namespace {

constexpr char16_t kDecodingError = 0xFFFD;
constexpr char16_t kKeptSpace = 0xE000;  // guards a lone space from being stripped

using Utf16 = std::u16string;

/// Nothing if `text` is not UTF-8.
std::optional<Utf16> from_utf8(std::string_view text) {
  if (text.size() > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  Utf16 out(text.size(), 0);  // no text has more units in UTF-16 than in UTF-8
  UErrorCode status = U_ZERO_ERROR;
  std::int32_t length = 0;
  u_strFromUTF8(out.data(), static_cast<std::int32_t>(out.size()), &length, text.data(),
                static_cast<std::int32_t>(text.size()), &status);
  if (U_FAILURE(status)) return std::nullopt;
  out.resize(static_cast<std::size_t>(length));
  return out;
}

/// `text` is well-formed.
std::string to_utf8(const Utf16& text) {
  std::string out(3 * text.size(), 0);
  UErrorCode status = U_ZERO_ERROR;
  std::int32_t length = 0;
  u_strToUTF8(out.data(), static_cast<std::int32_t>(out.size()), &length, text.data(),
              static_cast<std::int32_t>(text.size()), &status);
  out.resize(static_cast<std::size_t>(length));
  return out;
}

Result<Utf16> normalised_by(const UNormalizer2* (*form)(UErrorCode*), const Utf16& text) {
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* normalizer = form(&status);
  Utf16 out(2 * text.size(), 0);
  for (;;) {
    const std::int32_t length = unorm2_normalize(normalizer, text.data(), static_cast<std::int32_t>(text.size()),
                                                 out.data(), static_cast<std::int32_t>(out.size()), &status);
    if (status != U_BUFFER_OVERFLOW_ERROR && U_FAILURE(status)) {
      return make_error(ErrorCode::kResource, "ICU cannot normalise text: {}", u_errorName(status));
    }
    const bool fits = static_cast<std::size_t>(length) <= out.size();
    out.resize(static_cast<std::size_t>(length));
    if (fits) return out;
    status = U_ZERO_ERROR;
  }
}

/// Without combining marks, and in lower case, point by point: no rule looks at neighbours (the final sigma's does),
/// and the one point whose lower case is two does not occur decomposed.
Utf16 bare_lower_case(const Utf16& text) {
  Utf16 out;
  for (std::size_t at = 0; at < text.size();) {
    UChar32 point = 0;
    U16_NEXT(text.data(), at, text.size(), point);
    if ((U_GET_GC_MASK(point) & U_GC_M_MASK) != 0) continue;
    const UChar32 lower = u_tolower(point);
    if (U_IS_BMP(lower)) {
      out += static_cast<char16_t>(lower);
    } else {
      out += static_cast<char16_t>(U16_LEAD(lower));
      out += static_cast<char16_t>(U16_TRAIL(lower));
    }
  }
  return out;
}

Utf16 stripped(const Utf16& text) {
  Utf16 out;
  for (const char16_t unit : text) {
    const bool blank = unit == ' ' || unit == '\t' || unit == '\r' || unit == '\n';
    if (blank && !out.empty() && out.back() == ' ') continue;
    out += blank ? u' ' : unit;
  }
  if (out == u" ") out = kKeptSpace;
  // All white space is in the basic plane, so single units can be looked at.
  std::size_t begin = 0, end = out.size();
  while (begin < end && u_isUWhiteSpace(out[begin])) ++begin;
  while (end > begin && u_isUWhiteSpace(out[end - 1])) --end;
  out = out.substr(begin, end - begin);
  for (char16_t& unit : out) {
    if (unit == kKeptSpace) unit = u' ';
  }
  return out;
}

Result<Utf16> normalised(const Utf16& text) {
  auto compatible = normalised_by(unorm2_getNFKCInstance, text);
  if (!compatible) return compatible;
  auto decomposed = normalised_by(unorm2_getNFDInstance, *compatible);
  if (!decomposed) return decomposed;
  return stripped(bare_lower_case(*decomposed));
}

/// Which byte a character of the byte-level alphabet stands for, by code point; -1 for characters outside it. The
/// printable ones of Latin-1 stand for themselves, U+0100 and what follows for the other bytes, ascending.
constexpr std::size_t kAlphabetEnd = 0x144;

std::array<int, kAlphabetEnd> make_alphabet() {
  std::array<int, kAlphabetEnd> bytes;
  bytes.fill(-1);
  std::size_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    bytes[itself ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return bytes;
}

/// The bytes that a piece stands for, or those of the piece if one of its characters stands for none.
std::string bytes_of(std::string_view piece, const Utf16& characters) {
  static const auto alphabet = make_alphabet();
  std::string bytes;
  for (const char16_t character : characters) {
    if (character >= alphabet.size() || alphabet[character] < 0) return std::string(piece);
    bytes += static_cast<char>(alphabet[character]);
  }
  return bytes;
}

}  // namespace

Result<std::string> normalised_text(std::string_view text) {
  const auto characters = from_utf8(text);
  if (!characters) return make_error(ErrorCode::kMalformed, "the text to normalise is not UTF-8");
  auto result = normalised(*characters);
  if (!result) return result.error();
  return to_utf8(*result);
}

Result<VocabularyKey> vocabulary_key(std::string_view piece) {
  using Rule = VocabularyKey::Rule;
  const auto characters = from_utf8(piece);
  if (!characters) return make_error(ErrorCode::kMalformed, "a piece of the vocabulary is not UTF-8");
  std::string bytes = bytes_of(piece, *characters);
  const auto text = from_utf8(bytes);
  if (!text || text->find(kDecodingError) != Utf16::npos) return VocabularyKey{Rule::kPiece, std::string(piece)};
  auto result = normalised(*text);
  if (!result) return result.error();
  if (result->empty()) return VocabularyKey{Rule::kText, std::move(bytes)};
  return VocabularyKey{Rule::kNormalised, to_utf8(*result)};
}

Result<TokenMap> compress_vocabulary(std::span<const std::string> pieces) {
  if (pieces.size() > std::numeric_limits<std::int32_t>::max()) {
    return make_error(ErrorCode::kUnsupported, "a vocabulary of {} pieces is too large to compress", pieces.size());
  }
  return without_throwing([&]() -> Result<TokenMap> {
    std::unordered_map<std::string, std::int32_t> ids;
    std::vector<std::int32_t> map;
    map.reserve(pieces.size());
    for (const std::string& piece : pieces) {
      auto key = vocabulary_key(piece);
      if (!key) return key.error();
      const auto next = static_cast<std::int32_t>(ids.size());
      map.push_back(ids.try_emplace(std::move(key->text), next).first->second);
    }
    return TokenMap(std::make_shared<const std::vector<std::int32_t>>(std::move(map)));
  });
}

}  // namespace rowtide
