/* Debian's libevent_core.a asks for these of glibc 2.36, and the archive is to run with 2.35. Only libevent's DNS
 * client reads random numbers, which nothing here uses; should that change, these are as good. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>

/* Hidden: other libraries of the process keep those of their C library. */
__attribute__((visibility("hidden"))) void arc4random_buf(void* bytes, size_t count) {
  char* const begin = bytes;
  for (size_t filled = 0; filled < count;) {
    const ssize_t got = getrandom(begin + filled, count - filled, 0);
    if (got > 0) filled += (size_t)got;
  }
}

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t number = 0;
  arc4random_buf(&number, sizeof number);
  return number;
}
