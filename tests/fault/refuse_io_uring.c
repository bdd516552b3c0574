// refuse_io_uring EPERM|ENOSYS COMMAND [ARGUMENT...]
// Runs a command that gets this error from io_uring_setup: EPERM is what a container's seccomp profile answers,
// ENOSYS what a kernel without io_uring does.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refuse(int error) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char** argv) {
  const int error = argc < 3 ? 0 : strcmp(argv[1], "EPERM") == 0 ? EPERM : strcmp(argv[1], "ENOSYS") == 0 ? ENOSYS : 0;
  if (error == 0) {
    fprintf(stderr, "usage: refuse_io_uring EPERM|ENOSYS COMMAND [ARGUMENT...]\n");
    return 2;
  }
  if (refuse(error) != 0) {
    perror("refuse_io_uring: seccomp");
    return 4;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
