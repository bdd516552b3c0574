// What is mapped into this process, as the kernel lists it (/proc/self/maps and smaps, proc(5)).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rowtide::io {

/// One line of the list.
struct Mapping {
  std::uint64_t begin = 0, end = 0;  // addresses
  std::uint64_t offset = 0;          // of `begin` in the file
  bool writable = false;
  std::string device;              // "major:minor" of the file's file system, in hexadecimal as the kernel prints it
  std::string inode;               // "device inode", as the kernel prints both: tells files apart, even of one path
  std::string path;                // of a file; else empty or a name such as "[heap]"
  std::uint64_t locked_bytes = 0;  // in memory and locked there (mlock); only with Detail::kLocked

  std::uint64_t bytes() const { return end - begin; }
  bool is_file() const { return path.starts_with('/'); }
};

enum class Detail {
  kPlaces,  // a system call a page of the list
  kLocked,  // also what is locked: the kernel walks the page tables of all that is mapped
};

/// All mappings, ascending by address; none where the kernel does not say. `root` stands before /proc.
std::vector<Mapping> process_mappings(Detail detail = Detail::kPlaces, const std::string& root = "");

}  // namespace rowtide::io
