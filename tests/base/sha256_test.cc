#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace rowtide {
namespace {

std::string digest(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

TEST(Sha256, KnowsThePublishedVectors) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Two pieces of every length around the block and padding boundaries.
TEST(Sha256, DoesNotDependOnHowTheMessageIsSplit) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 37);
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const auto bytes = std::as_bytes(std::span(text)).first(length);
    const std::string whole = sha256_hex(bytes);
    for (std::size_t cut = 0; cut <= length; ++cut) {
      Sha256 hash;
      hash.update(bytes.first(cut));
      hash.update(bytes.subspan(cut));
      ASSERT_EQ(hash.finish_hex(), whole) << "length " << length << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace rowtide
