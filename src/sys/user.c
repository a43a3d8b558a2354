/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/user.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

static void take_text(char *to, size_t cap, const char *from, const char *otherwise)
{
    const char *text = from && *from && strlen(from) < cap ? from : otherwise;

    (void)snprintf(to, cap, "%s", text);
}

static void fill(struct stk_user *u, const struct passwd *pw)
{
    gid_t groups[STK_MAX_GROUPS];
    int n = STK_MAX_GROUPS;

    u->uid = pw->pw_uid;
    u->gid = pw->pw_gid;
    take_text(u->name, sizeof(u->name), pw->pw_name, "?");
    take_text(u->home, sizeof(u->home), pw->pw_dir, "/");
    take_text(u->shell, sizeof(u->shell), pw->pw_shell, "/bin/sh");
    if (getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) < 0 || n > STK_MAX_GROUPS)
        n = STK_MAX_GROUPS; /* the first ones; the system has more than we keep */
    u->n_groups = 0;
    for (int i = 0; i < n; i++)
        u->groups[u->n_groups++] = groups[i];
}

int stk_user_by_id(uint32_t uid, struct stk_user *ret)
{
    char buf[16384];
    struct passwd pw, *found = NULL;
    int rc;

    *ret = (struct stk_user){.uid = uid, .gid = uid, .groups = {uid}, .n_groups = 1};
    (void)snprintf(ret->name, sizeof(ret->name), "%u", uid);
    take_text(ret->home, sizeof(ret->home), NULL, "/");
    take_text(ret->shell, sizeof(ret->shell), NULL, "/bin/sh");
    rc = getpwuid_r(uid, &pw, buf, sizeof(buf), &found);
    if (!found)
        return rc == 0 || rc == ENOENT || rc == ESRCH ? -ENOENT : -EAGAIN;
    fill(ret, found);
    return 0;
}

int stk_group_id(const char *name, uint32_t *ret)
{
    char buf[16384];
    struct group gr, *found = NULL;

    if (getgrnam_r(name, &gr, buf, sizeof(buf), &found) != 0 || !found)
        return -ENOENT;
    *ret = gr.gr_gid;
    return 0;
}

int stk_user_id(const char *name, uint32_t *ret)
{
    struct passwd p, *found = NULL;
    char text[8192];

    if (getpwnam_r(name, &p, text, sizeof(text), &found) != 0 || !found)
        return -ENOENT;
    *ret = (uint32_t)found->pw_uid;
    return 0;
}
