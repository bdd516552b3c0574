// A preloaded disk that misbehaves on *.gguf files. What it does is said by the environment:
//   BAD_DISK=open   opening with O_DIRECT is EINVAL, as on file systems that know no direct I/O
//   BAD_DISK=read   opening with O_DIRECT works, the reads are EINVAL
//   BAD_DISK=once   while the file that BAD_DISK_TRIGGER names exists, the next read from BAD_DISK_FROM (an offset)
//                   on removes it and is EIO
// Reads by io_uring do not pass here: run what is tested without it (refuse_io_uring).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bad_disk_does(const char* what) {
  const char* mode = getenv("BAD_DISK");
  return mode != NULL && strcmp(mode, what) == 0;
}

static int is_gguf(const char* path, size_t length) {
  return length >= 5 && memcmp(path + length - 5, ".gguf", 5) == 0;
}

static int is_gguf_descriptor(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path);
  return length > 0 && is_gguf(path, (size_t)length);
}

static int open_with(int folder, const char* path, int flags, mode_t mode) {
  if ((flags & O_DIRECT) && is_gguf(path, strlen(path)) && bad_disk_does("open")) {
    errno = EINVAL;
    return -1;
  }
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE_OF(flags, mode)               \
  mode_t mode = 0;                         \
  if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list arguments;                     \
    va_start(arguments, flags);            \
    mode = va_arg(arguments, mode_t);      \
    va_end(arguments);                     \
  }

int open(const char* path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_with(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_with(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_with(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_with(folder, path, flags | O_LARGEFILE, mode);
}

// The errno value that a read at `offset` is to fail with, or 0.
static int fault_of(int fd, off_t offset) {
  if (bad_disk_does("read")) {
    return (fcntl(fd, F_GETFL) & O_DIRECT) != 0 && is_gguf_descriptor(fd) ? EINVAL : 0;
  }
  const char* trigger = getenv("BAD_DISK_TRIGGER");
  const char* from = getenv("BAD_DISK_FROM");
  if (!bad_disk_does("once") || trigger == NULL || from == NULL) return 0;
  if (offset < atoll(from) || access(trigger, F_OK) != 0 || !is_gguf_descriptor(fd)) return 0;
  return unlink(trigger) == 0 ? EIO : 0;  // of several threads, one succeeds
}

ssize_t pread(int fd, void* into, size_t bytes, off_t offset) {
  const int error = fault_of(fd, offset);
  if (error == 0) return syscall(SYS_pread64, fd, into, bytes, offset);
  errno = error;
  return -1;
}
ssize_t pread64(int fd, void* into, size_t bytes, off64_t offset) { return pread(fd, into, bytes, offset); }
