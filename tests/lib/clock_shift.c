/* SPDX-License-Identifier: Apache-2.0 */
/* clock_shift.c - preloaded into the daemon: the wall clock is off by as many seconds as the file
 * that CLOCK_SHIFT names says. All other clocks are as they are. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

static long shift_s(void)
{
    const char *path = getenv("CLOCK_SHIFT");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[32] = "";

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    (void)close(fd);
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);

    if (rc == 0 && id == CLOCK_REALTIME)
        t->tv_sec += shift_s();
    return rc;
}
