// Files in memory for parsers under test, and a record of what was read of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/file.h"
#include "io/folder.h"

namespace rowtide {

class MemoryDisk {
 public:
  struct Read {
    std::string path;
    std::uint64_t offset;
    std::uint64_t bytes;
  };

  MemoryDisk() = default;
  MemoryDisk(std::string path, std::string content) { add(std::move(path), std::move(content)); }

  void add(std::string path, std::string content) { files_[std::move(path)] = std::move(content); }
  void remove(const std::string& path) { files_.erase(path); }
  const std::string& content(const std::string& path) const { return files_.at(path); }

  /// Valid as long as this disk is.
  io::FileOpener opener() {
    return [this](const std::string& path) -> Result<std::unique_ptr<io::File>> {
      const auto found = files_.find(path);
      if (found == files_.end()) return make_error(ErrorCode::kNotFound, "{}: is not there", path);
      return std::unique_ptr<io::File>(new RecordingFile(*this, found->first, found->second));
    };
  }

  /// Folders are what the paths of files say. Valid as long as this disk is.
  io::FolderLister lister() {
    return [this](const std::string& path) -> Result<std::vector<io::FolderEntry>> {
      if (files_.contains(path)) return make_error(ErrorCode::kUnsupported, "{}: is no folder", path);
      std::map<std::string, io::FolderEntry> entries;
      const std::string start = path + "/";
      for (const auto& [file, content] : files_) {
        if (!file.starts_with(start)) continue;
        const std::string rest = file.substr(start.size());
        const std::string name = rest.substr(0, rest.find('/'));
        entries[name] = {name, name != rest, modified_[start + name]};
      }
      if (entries.empty()) return make_error(ErrorCode::kNotFound, "{}: is not there", path);
      std::vector<io::FolderEntry> list;
      for (const auto& [name, entry] : entries) list.push_back(entry);
      return list;
    };
  }
  void set_modified(const std::string& path, std::int64_t modified_ns) { modified_[path] = modified_ns; }

  io::Disk disk() { return {opener(), lister()}; }

  const std::vector<Read>& reads() const { return reads_; }
  std::uint64_t bytes_read() const {
    std::uint64_t bytes = 0;
    for (const Read& read : reads_) bytes += read.bytes;
    return bytes;
  }
  /// The first byte behind all that was read of a file.
  std::uint64_t read_end(const std::string& path) const {
    std::uint64_t end = 0;
    for (const Read& read : reads_) {
      if (read.path == path) end = std::max(end, read.offset + read.bytes);
    }
    return end;
  }

 private:
  class RecordingFile final : public io::File {
   public:
    RecordingFile(MemoryDisk& disk, const std::string& path, const std::string& content)
        : disk_(disk), path_(path), content_(content) {}
    const std::string& path() const override { return path_; }
    std::uint64_t bytes() const override { return content_.size(); }
    Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
      if (offset > content_.size() || out.size() > content_.size() - offset) {
        return make_error(ErrorCode::kMalformed, "{}: read of {} bytes at {} passes the end", path_, out.size(),
                          offset);
      }
      disk_.reads_.push_back({path_, offset, out.size()});
      if (!out.empty()) std::memcpy(out.data(), content_.data() + offset, out.size());
      return {};
    }

   private:
    MemoryDisk& disk_;
    const std::string& path_;
    const std::string& content_;
  };

  std::map<std::string, std::string> files_;
  std::map<std::string, std::int64_t> modified_;
  std::vector<Read> reads_;
};

/// The call failed in this way, and its message names each of `named`.
template <class T>
void expect_refused(const Result<T>& result, ErrorCode code, std::initializer_list<std::string_view> named) {
  ASSERT_FALSE(result.ok()) << "was accepted";
  EXPECT_EQ(error_code_name(result.error().code), error_code_name(code)) << result.error().message;
  for (const std::string_view part : named) {
    EXPECT_NE(result.error().message.find(part), std::string::npos)
        << "'" << part << "' in: " << result.error().message;
  }
}

}  // namespace rowtide
