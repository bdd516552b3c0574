// Writes safetensors files and their indices, valid ones and those that a test then spoils.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rowtide {

/// A text as JSON: quoted, with escapes for what needs them.
inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') {
      out += fmt::format("\\{}", byte);
    } else if (static_cast<unsigned char>(byte) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
    } else {
      out += byte;
    }
  }
  return out + "\"";
}

/// One file. Tensors lie in the data section in the order in which they are added.
class SafetensorsWriter {
 public:
  /// A tensor of these bytes.
  void add(std::string name, std::string dtype, std::vector<std::uint64_t> shape, std::string_view data) {
    add_hole(std::move(name), std::move(dtype), std::move(shape), data.size());
    data_.resize(data_bytes_ - data.size());  // what holes left out before this one
    data_ += data;
  }
  /// A tensor of `bytes` zeros, which take memory only when bytes() is called, and none on a disk.
  void add_hole(std::string name, std::string dtype, std::vector<std::uint64_t> shape, std::uint64_t bytes) {
    tensors_.push_back({std::move(name), std::move(dtype), std::move(shape), data_bytes_, data_bytes_ + bytes});
    data_bytes_ += bytes;
  }
  void add_metadata(const std::string& key, const std::string& value) { metadata_[key] = value; }

  /// The order of the tensors in the header: `order[i]` is which of those added stands there as number i.
  void set_header_order(std::vector<std::size_t> order) { order_ = std::move(order); }
  /// Spaces behind the header until its length is a multiple of this, as most writers have it.
  void set_header_multiple(std::size_t multiple) { multiple_ = multiple; }

  std::string header() const {
    std::string text = "{";
    if (!metadata_.empty()) {
      text += "\"__metadata__\":{";
      for (const auto& [key, value] : metadata_) text += json_text(key) + ":" + json_text(value) + ",";
      text.back() = '}';
      text += ",";
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& tensor = tensors_[order_.empty() ? i : order_[i]];
      text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},", json_text(tensor.name),
                          tensor.dtype, fmt::join(tensor.shape, ","), tensor.begin, tensor.end);
    }
    if (text.back() == ',') text.pop_back();
    text += "}";
    text.resize((text.size() + multiple_ - 1) / multiple_ * multiple_, ' ');
    return text;
  }

  std::uint64_t data_bytes() const { return data_bytes_; }
  std::uint64_t header_bytes() const { return 8 + header().size(); }  // where the data section starts

  std::string bytes() const {
    std::string file = with_length(header()) + data_;
    file.resize(header_bytes() + data_bytes_);
    return file;
  }
  /// Onto the disk; what add_hole() added stays a hole there.
  void write(const std::string& path) const {
    const std::string header = this->header();
    std::ofstream(path, std::ios::binary) << with_length(header) << data_;
    std::filesystem::resize_file(path, 8 + header.size() + data_bytes_);
  }

  /// Any header text with its length before it.
  static std::string with_length(const std::string& header) {
    const std::uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header;
  }

 private:
  struct Tensor {
    std::string name, dtype;
    std::vector<std::uint64_t> shape;
    std::uint64_t begin, end;
  };

  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::size_t> order_;
  std::size_t multiple_ = 8;
  std::uint64_t data_bytes_ = 0;
  std::string data_;  // as far as add() came
};

/// An index: pairs of tensor and file.
inline std::string safetensors_index(const std::vector<std::pair<std::string, std::string>>& weight_map,
                                     std::optional<std::uint64_t> total_size = std::nullopt) {
  std::string text = "{\n \"metadata\": {";
  if (total_size) text += fmt::format("\n  \"total_size\": {}\n ", *total_size);
  text += "},\n \"weight_map\": {";
  for (const auto& [tensor, file] : weight_map) text += fmt::format("\n  {}: {},", json_text(tensor), json_text(file));
  if (text.back() == ',') text.pop_back();
  return text + "\n }\n}\n";
}

}  // namespace rowtide
