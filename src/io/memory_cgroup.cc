#include "io/memory_cgroup.h"

#include <algorithm>
#include <sstream>

#include "io/kernel_text.h"
#include "io/mounts.h"

namespace rowtide::io {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;  // version 1 says "none" by a number near 2^63

/// Where the files of the process's group are, and of those around it: `point` and what is below it.
struct Place {
  std::string point;
  std::string below;  // "/a/b", empty at the mount point

  std::string folder() const { return point + below; }
};

/// The path of the process's group: in version 2, or in version 1's hierarchy of the memory controller. Lines of
/// /proc/self/cgroup: "4:memory,hugetlb:/path", "0::/path".
std::optional<std::string> own_path(const std::string& text, bool version_2) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (version_2 ? line.starts_with("0::") : lists(controllers, "memory")) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// `path` as seen below a mount of `subtree`. A path that leads elsewhere is written for another namespace: what the
/// mount shows is then the best that can be known, in a container its own group.
std::string below_mount(const std::string& path, const std::string& subtree) {
  if (path.find("/..") != std::string::npos) return "";
  const std::string above = subtree == "/" ? "" : subtree;
  const bool inside = path.starts_with(above) && path.size() > above.size() && path[above.size()] == '/';
  const std::string below = inside ? path.substr(above.size()) : "";
  return below == "/" ? "" : below;
}

std::vector<Place> own_places(const std::string& root) {
  std::vector<Place> places;
  const std::string text = kernel_text(root + "/proc/self/cgroup").value_or("");
  for (const Mount& mount : mounts(root)) {
    const bool version_2 = mount.type == "cgroup2";
    if (!version_2 && !(mount.type == "cgroup" && lists(mount.options, "memory"))) continue;
    if (const auto path = own_path(text, version_2)) {
      places.push_back({root + mount.point, below_mount(*path, mount.subtree)});
    }
  }
  return places;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto text = kernel_text(path);
  return text ? leading_number(*text) : std::nullopt;
}

std::optional<std::uint64_t> least(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

/// Above memory.high the kernel does not kill, but makes the group wait while it takes memory back: a limit for us.
std::optional<MemoryCgroup> read_version_2(const std::string& folder, const std::string& stat) {
  const auto usage = number_in(folder + "/memory.current");
  if (!usage) return std::nullopt;
  const auto limit = least(number_in(folder + "/memory.max"), number_in(folder + "/memory.high"));
  return MemoryCgroup{folder, limit, *usage,
                      named_number(stat, "inactive_file").value_or(0) + named_number(stat, "active_file").value_or(0)};
}

std::optional<MemoryCgroup> read_version_1(const std::string& folder, const std::string& stat) {
  const auto usage = number_in(folder + "/memory.usage_in_bytes");
  if (!usage) return std::nullopt;
  // The least limit of all groups around, those included that a container cannot see.
  auto limit = least(number_in(folder + "/memory.limit_in_bytes"), named_number(stat, "hierarchical_memory_limit"));
  if (limit && *limit >= kNoLimit) limit = std::nullopt;
  return MemoryCgroup{
      folder, limit, *usage,
      named_number(stat, "total_inactive_file").value_or(0) + named_number(stat, "total_active_file").value_or(0)};
}

}  // namespace

std::vector<MemoryCgroup> memory_cgroups(const std::string& root) {
  std::vector<MemoryCgroup> groups;
  for (Place place : own_places(root)) {
    while (true) {
      const std::string folder = place.folder();
      const std::string stat = kernel_text(folder + "/memory.stat").value_or("");
      auto group = read_version_2(folder, stat);
      if (!group) group = read_version_1(folder, stat);
      if (group) groups.push_back(*std::move(group));
      if (place.below.empty()) break;
      place.below.resize(place.below.rfind('/'));
    }
  }
  return groups;
}

std::vector<std::string> own_cgroup_folders(const std::string& root) {
  std::vector<std::string> folders;
  for (const Place& place : own_places(root)) folders.push_back(place.folder());
  return folders;
}

}  // namespace rowtide::io
