/* SPDX-License-Identifier: Apache-2.0 */
#include "slurmctld/where.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The first entry that begins with 'key'; its length without the comma. */
static const char *entry(const char *params, const char *key, size_t *ret_len)
{
    while (params && *params) {
        size_t len = strcspn(params, ",");

        if (len >= strlen(key) && strncmp(params, key, strlen(key)) == 0) {
            *ret_len = len;
            return params;
        }
        params += len + (params[len] == ',');
    }
    return NULL;
}

bool stk_slurmctld_param(const char *params, const char *word)
{
    size_t len = 0;

    for (const char *at = params; (at = entry(at, word, &len)); at += len)
        if (len == strlen(word))
            return true;
    return false;
}

bool stk_slurmctld_value(const char *params, const char *key, char *ret, size_t size)
{
    size_t len = 0, skip = strlen(key);
    const char *said = entry(params, key, &len);

    if (!said || len == skip || len - skip >= size)
        return false;
    memcpy(ret, said + skip, len - skip);
    ret[len - skip] = '\0';
    return true;
}

uint32_t stk_slurmctld_job(const char *text)
{
    static const char key[] = "JobId=";
    const char *at = text ? strstr(text, key) : NULL, *inner = at ? strchr(at, '(') : NULL;
    char *end = NULL;
    unsigned long n;

    if (!at)
        return 0;
    n = strtoul(inner ? inner + 1 : at + sizeof(key) - 1, &end, 10);
    return *end == (inner ? ')' : '\0') && n < UINT32_MAX - 1 ? (uint32_t)n : 0;
}

static uid_t sender(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        struct ucred who;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
            continue;
        memcpy(&who, CMSG_DATA(c), sizeof(who));
        return who.uid;
    }
    return (uid_t)-1;
}

bool stk_slurmctld_receive(int fd, char word[STK_SLURMCTLD_WORD], uid_t *ret_who,
                           struct sockaddr_un *from, socklen_t *ret_len)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct iovec v = {.iov_base = word, .iov_len = STK_SLURMCTLD_WORD - 1};
    struct msghdr m = {.msg_name = from,
                       .msg_namelen = from ? sizeof(*from) : 0,
                       .msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0)
        return false;
    word[(m.msg_flags & MSG_TRUNC) != 0 ? 0 : n] = '\0';
    *ret_who = sender(&m);
    if (ret_len)
        *ret_len = m.msg_namelen;
    return true;
}

int stk_slurmctld_address(const char *params, const char *folder, struct sockaddr_un *ret)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t len = 0;
    int n;

    if (!entry(params, "stoker_socket=", &len)) {
        if (!folder || !*folder)
            return -ENOENT;
        n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/stoker.sock", folder);
        if (n < 0 || (size_t)n >= sizeof(a.sun_path))
            return -ENAMETOOLONG;
    } else if (!stk_slurmctld_value(params, "stoker_socket=", a.sun_path, sizeof(a.sun_path))) {
        return -ENAMETOOLONG;
    }
    *ret = a;
    return 0;
}
