// The ggml side: a registration with one ACCEL device. llama.cpp asks ACCEL devices before the CPU whether they take an
// operation; this one accepts tensors in host memory and takes GET_ROWS on n-gram tables. Its default buffer type is
// the CPU's, so results land in the CPU's compute buffer and nothing is copied.
#include "ggml/plugin.h"

#include <fmt/format.h>
#include <ggml-backend-impl.h>

#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "ggml/gather.h"
#include "ggml/serving.h"
#include "ggml/settings.h"
#include "rowtide/log.h"

// ggml_backend_buft_alloc_buffer_n is new with backend API 3: a host does not tell the number of its API, but it
// exports this or not. Under a name of our own, because headers of API 3 declare it, and not as weak.
extern "C" __attribute__((weak)) void new_with_api_3(void) __asm__("ggml_backend_buft_alloc_buffer_n");

namespace rowtide::ggml {
namespace {

/// The tables of both APIs agree in everything this file uses (buffer types, which differ, are the CPU's), so one
/// object serves both, if it registers under the number that the host expects. A host of another API refuses it by
/// itself.
int host_api_version() { return new_with_api_3 != nullptr ? 3 : 2; }

std::optional<Settings>& current_settings() {
  static std::optional<Settings> instance;
  return instance;
}

struct Failure {
  std::mutex mutex;
  std::optional<Error> last;
};

Failure& failure() {
  static Failure instance;
  return instance;
}

// --- backend: one a context -------------------------------------------------------------------------------------

Gatherer& gatherer(ggml_backend_t backend) { return *static_cast<Gatherer*>(backend->context); }

const char* backend_name(ggml_backend_t) { return "Rowtide"; }

void backend_free(ggml_backend_t backend) {
  delete &gatherer(backend);
  delete backend;
}

bool computes_nothing(ggml_op op) {
  return op == GGML_OP_NONE || op == GGML_OP_RESHAPE || op == GGML_OP_VIEW || op == GGML_OP_PERMUTE ||
         op == GGML_OP_TRANSPOSE;
}

ggml_status backend_graph_compute(ggml_backend_t backend, ggml_cgraph* graph) try {
  for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
    const ggml_tensor* node = ggml_graph_node(graph, i);
    if (computes_nothing(node->op)) continue;
    const Result<void> done = node->op == GGML_OP_GET_ROWS
                                  ? gatherer(backend).gather(*node)
                                  : Error{ErrorCode::kUsage, fmt::format("{} was never claimed", ggml_op_desc(node))};
    if (!done) {
      log_line(LogLevel::kError, done.error().message);
      std::lock_guard lock(failure().mutex);
      failure().last = done.error();
      return GGML_STATUS_FAILED;
    }
  }
  return GGML_STATUS_SUCCESS;
} catch (const std::bad_alloc&) {
  log_line(LogLevel::kError, "no memory for a batch of rows");
  return GGML_STATUS_ALLOC_FAILED;
}

// --- device -----------------------------------------------------------------------------------------------------

const char* device_name(ggml_backend_dev_t) { return "Rowtide"; }
const char* device_description(ggml_backend_dev_t) { return "n-gram tables, read in place"; }

void device_memory(ggml_backend_dev_t, std::size_t* free, std::size_t* total) { *free = *total = 0; }

enum ggml_backend_dev_type device_type(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; }

void device_props(ggml_backend_dev_t device, ggml_backend_dev_props* props) {
  props->name = device_name(device);
  props->description = device_description(device);
  props->type = device_type(device);
  device_memory(device, &props->memory_free, &props->memory_total);
  props->caps.mmap_support = true;  // without it llama.cpp would not map tables lazily
}

ggml_backend_t device_init_backend(ggml_backend_dev_t device, const char*) {
  static ggml_guid guid = {0x72, 0x6f, 0x77, 0x74, 0x69, 0x64, 0x65, 0x2d,
                           0x67, 0x67, 0x6d, 0x6c, 0x00, 0x00, 0x00, 0x01};
  ggml_backend_i calls{};
  calls.get_name = backend_name;
  calls.free = backend_free;
  calls.graph_compute = backend_graph_compute;
  return new ggml_backend{&guid, calls, device, new Gatherer};
}

ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t) { return ggml_backend_cpu_buffer_type(); }

bool is_matrix_of_whole_rows(const ggml_tensor& tensor) {
  return tensor.ne[2] == 1 && tensor.ne[3] == 1 && tensor.nb[1] == ggml_row_size(tensor.type, tensor.ne[0]);
}

/// Asked with stand-in tensors too, before any data exists: so by operation, name, types and shapes alone.
bool device_supports_op(ggml_backend_dev_t, const ggml_tensor* op) {
  if (op->op != GGML_OP_GET_ROWS) return false;
  const ggml_tensor& table = *op->src[0];
  const ggml_tensor& rows = *op->src[1];
  return is_table(*current_settings(), table.name, table.ne[0]) && row_format_of(table.type) &&
         is_matrix_of_whole_rows(table) && rows.type == GGML_TYPE_I32 && ggml_is_vector(&rows) &&
         ggml_is_contiguous(&rows) && op->type == GGML_TYPE_F32 && ggml_is_contiguous(op);
}

bool device_supports_buffer_type(ggml_backend_dev_t, ggml_backend_buffer_type_t type) {
  return ggml_backend_buft_is_host(type);
}

// --- registration -----------------------------------------------------------------------------------------------

const char* registration_name(ggml_backend_reg_t) { return "Rowtide"; }
std::size_t device_count(ggml_backend_reg_t) { return 1; }

/// A host asks for the device when it has accepted the registration, so here the sign goes up.
ggml_backend_dev_t device_at(ggml_backend_reg_t reg, std::size_t) {
  static ggml_backend_device device = [reg] {
    ggml_backend_device_i calls{};
    calls.get_name = device_name;
    calls.get_description = device_description;
    calls.get_memory = device_memory;
    calls.get_type = device_type;
    calls.get_props = device_props;
    calls.init_backend = device_init_backend;
    calls.get_buffer_type = device_buffer_type;
    calls.supports_op = device_supports_op;
    calls.supports_buft = device_supports_buffer_type;
    return ggml_backend_device{calls, reg, nullptr};
  }();
  put_up_sign();
  return &device;
}

}  // namespace

std::optional<Error> last_failure() {
  std::lock_guard lock(failure().mutex);
  return failure().last;
}

ggml_backend_reg_t registration(Settings settings) {
  if (!current_settings()) {
    serve_with(settings.store);
    current_settings() = std::move(settings);
  }
  static ggml_backend_reg instance = [] {
    ggml_backend_reg_i calls{};
    calls.get_name = registration_name;
    calls.get_device_count = device_count;
    calls.get_device = device_at;
    return ggml_backend_reg{host_api_version(), calls, nullptr};
  }();
  return &instance;
}

}  // namespace rowtide::ggml
