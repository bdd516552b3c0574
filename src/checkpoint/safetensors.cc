#include "checkpoint/safetensors.h"

#include <utility>

#include "base/error.h"
#include "checkpoint/model_folder.h"
#include "checkpoint/safetensors_header.h"

namespace rowtide::checkpoint {

class SafetensorsOpener {
 public:
  explicit SafetensorsOpener(const io::Disk& disk) : disk_(disk) {}

  Result<Safetensors> open(const std::string& path) {
    auto model = find_model_files(path, disk_);
    if (!model) return model.error();
    for (const std::string& file : model->paths) {
      if (auto done = add_file(file); !done) return done.error();
    }
    if (model->index) {
      if (auto agree = check_index(*model->index); !agree) return agree.error();
    }
    if (auto done = find_config(model->folder + "/config.json"); !done) return done.error();
    opened_.choice_ = std::move(model->choice);
    return std::move(opened_);
  }

 private:
  Result<void> add_file(const std::string& path) {
    auto file = disk_.open(path);
    if (!file) return file.error();
    auto header = read_safetensors_header(**file, opened_.files_, opened_.tensors_);
    if (!header) return header.error();
    opened_.files_.push_back(*std::move(header));
    return {};
  }

  Result<void> check_index(const SafetensorsIndex& index) {
    auto file = disk_.open(index.path());
    if (!file) return file.error();
    return index.check(opened_.tensors_, opened_.files_, **file);
  }

  Result<void> find_config(const std::string& path) {
    auto file = disk_.open(path);
    if (file) {
      opened_.config_path_ = path;
    } else if (file.error().code != ErrorCode::kNotFound) {
      return file.error();
    }
    return {};
  }

  const io::Disk& disk_;
  Safetensors opened_;
};

Result<Safetensors> open_safetensors(const std::string& path, const io::Disk& disk) {
  return SafetensorsOpener(disk).open(path);
}

}  // namespace rowtide::checkpoint
