// One command's arguments: declared, then parsed into the variables they were declared with. CLI11 does the work; it is
// kept out of this header because each file that sees it takes seconds longer to compile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace rowtide::cli {

using Arguments = std::vector<std::string>;  // after the command's name

inline constexpr std::string_view kJsonFlag = "--json";

/// The end of a help text: examples, one a line, and the exit codes.
std::string help_footer(std::string_view examples);

/// The variables must outlive the parser; one whose argument is not given keeps its value. `names` are as in
/// "-m,--model", `value_name` stands for the value in the help.
class ArgumentParser {
 public:
  /// `command` as it is typed: "rowtide rows". Every command has --json.
  ArgumentParser(std::string command, std::string_view description, std::string_view examples, bool& json);
  ~ArgumentParser();

  void required_path(std::string& value, std::string_view help);
  void optional_path(std::optional<std::string>& value, std::string_view help);
  void required(std::string_view names, std::string_view value_name, std::string& value, std::string_view help);
  void optional(std::string_view names, std::string_view value_name, std::optional<std::string>& value,
                std::string_view help);
  /// One of `choices`.
  void choice(std::string_view name, const std::vector<std::string>& choices, std::string& value,
              std::string_view help);
  /// A whole number of least..most.
  void number(std::string_view name, std::uint32_t& value, std::uint32_t least, std::uint32_t most,
              std::string_view help);
  /// An amount of memory or of a file: see parse_size() (cli/input.h).
  void byte_size(std::string_view name, std::uint64_t& value, std::string_view help);
  /// A real number of 0..most.
  void real(std::string_view name, float& value, float most, std::string_view help);
  void flag(std::string_view name, bool& value, std::string_view help);
  /// One value or several, each of which may be a list with commas.
  void list(std::string_view name, std::string_view value_name, std::vector<std::string>& values,
            std::string_view help);
  /// What is declared from here on stands under this heading in the help.
  void heading(std::string_view text);
  /// An option that is not in the help: for the program's own use.
  void hidden(const std::string& name, std::optional<std::string>& value);
  /// An option that is not in the help and not taken: giving it is a usage Failure with `reason`.
  void refused(const std::string& name, const std::string& reason);

  /// False when help was asked for and has been printed. Throws a usage Failure that names the argument, with the
  /// nearest option where one is unknown.
  bool parse(const Arguments& given);

  /// A usage Failure that ends with where to look.
  [[noreturn]] void fail(std::string_view what) const;

 private:
  [[noreturn]] void fail_by_extras(std::string_view otherwise) const;

  std::string command_;
  std::unique_ptr<CLI::App> app_;
};

}  // namespace rowtide::cli
