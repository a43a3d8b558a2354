/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/zones.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "/usr/share/zoneinfo"

static ssize_t read_all(const char *path, unsigned char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n, sum = 0;

    if (fd < 0)
        return -errno;
    while ((n = read(fd, buf + sum, size - (size_t)sum)) > 0)
        sum += n;
    n = n < 0 ? -errno : sum;
    (void)close(fd);
    return n;
}

static int load_file(const char *path, const char *name, struct stk_zone *ret, struct stk_err *err)
{
    unsigned char *buf = malloc(STK_MAX_ZONE_FILE + 1);
    struct stk_err why = {{0}};
    ssize_t n = buf ? read_all(path, buf, STK_MAX_ZONE_FILE + 1) : -ENOMEM;
    int rc;

    if (n < 0)
        rc = stk_err_set(err, n == -ENOENT || n == -EISDIR || n == -ENOTDIR ? -ENOENT : (int)n,
                         "there is no time zone \"%s\" (no file %s; Debian: package tzdata)", name,
                         path);
    else if (n > STK_MAX_ZONE_FILE)
        rc = stk_err_set(err, -EBADMSG, "%s: larger than any time zone", path);
    else if ((rc = stk_zone_read(buf, (size_t)n, ret, &why)) < 0)
        rc = stk_err_set(err, rc, "%s: %s", path, why.text);
    free(buf);
    if (rc == 0)
        (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return rc;
}

int stk_zones_load(const char *name, struct stk_zone *ret, struct stk_err *err)
{
    const char *folder = getenv("TZDIR");
    char path[512];

    if (strcmp(name, "local") == 0) {
        stk_zones_local(ret);
        return 0;
    }
    if (strcmp(name, "UTC") == 0) { /* also where there is no tzdata */
        stk_zone_utc(ret);
        return 0;
    }
    if (!stk_zone_name_ok(name))
        return stk_err_set(err, -EINVAL,
                           "\"%.60s\" is no time zone; they have names such as Europe/Berlin, UTC, "
                           "local",
                           name);
    (void)snprintf(path, sizeof(path), "%s/%s", folder && *folder ? folder : FOLDER, name);
    return load_file(path, name, ret, err);
}

void stk_zones_local(struct stk_zone *ret)
{
    const char *tz = getenv("TZ");
    int rc;

    if (tz && *tz == ':')
        tz++;
    if (tz && *tz == '/') {
        rc = load_file(tz, "local", ret, NULL);
    } else if (tz && *tz) {
        rc = strcmp(tz, "local") ? stk_zones_load(tz, ret, NULL) : -EINVAL;
        if (rc < 0) {
            stk_zone_utc(ret);
            rc = stk_zone_rule(tz, strlen(tz), ret, NULL);
        }
    } else {
        rc = tz ? -ENOENT : load_file("/etc/localtime", "local", ret, NULL);
    }
    if (rc < 0)
        stk_zone_utc(ret);
    (void)snprintf(ret->name, sizeof(ret->name), "local");
}
