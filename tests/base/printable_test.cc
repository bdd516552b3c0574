#include "base/printable.h"

#include <gtest/gtest.h>

namespace rowtide {
namespace {

TEST(Printable, EscapesWhatATerminalOrJsonWouldMind) {
  EXPECT_EQ(printable("blk.0.weight"), "blk.0.weight");
  EXPECT_EQ(printable(std::string_view("a\n\0\x7f\xc3\xa9", 6)), "a\\x0a\\x00\\x7f\\xc3\\xa9");
  EXPECT_EQ(printable(""), "");
  EXPECT_TRUE(is_printable("blk.0 ~"));
  EXPECT_FALSE(is_printable("tab\t"));
  EXPECT_FALSE(is_printable("\xc3\xa9"));
}

TEST(Printable, CutsWhatIsLong) {
  EXPECT_EQ(printable(std::string(160, 'k')), std::string(160, 'k'));
  EXPECT_EQ(printable(std::string(161, 'k')), std::string(160, 'k') + "...");
}

TEST(WithoutControls, KeepsWhatATerminalShows) {
  EXPECT_EQ(without_controls("gr\xc3\xb6\xc3\x9f"
                             "e.gguf"),
            "gr\xc3\xb6\xc3\x9f"
            "e.gguf");
  EXPECT_EQ(without_controls("a\n\x1b[2J\x7f"), "a\\x0a\\x1b[2J\\x7f");
}

}  // namespace
}  // namespace rowtide
