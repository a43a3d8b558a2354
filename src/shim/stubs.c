#include "shim/shim.h"
int stk_cgroup_new(const struct stk_launch *l, struct stk_cgroup **ret_cg, struct stk_err *err)
{
    (void)l;
    (void)err;
    *ret_cg = NULL;
    return 0;
}
int stk_cgroup_join(const struct stk_cgroup *cg)
{
    (void)cg;
    return 0;
}
bool stk_cgroup_fenced(const struct stk_cgroup *cg)
{
    (void)cg;
    return false;
}
const char *stk_cgroup_name(const struct stk_cgroup *cg)
{
    (void)cg;
    return "";
}
bool stk_cgroup_oom(const struct stk_cgroup *cg, uint64_t *m)
{
    (void)cg;
    (void)m;
    return false;
}
void stk_cgroup_kill(const struct stk_cgroup *cg)
{
    (void)cg;
}
void stk_cgroup_free(struct stk_cgroup *cg)
{
    (void)cg;
}
void stk_items_begin(struct stk_shim *s)
{
    (void)s;
}
void stk_items_message(struct stk_shim *s, const json_t *m)
{
    (void)s;
    (void)m;
}
void stk_items_ended(struct stk_shim *s, struct stk_task *t)
{
    (void)s;
    (void)t;
}
void stk_items_ask(struct stk_shim *s)
{
    (void)s;
}
int stk_pty_new(const struct stk_launch *l, struct stk_pty **r, struct stk_err *err)
{
    (void)l;
    *r = NULL;
    return stk_err_set(err, -ENOSYS, "no pty yet");
}
void stk_pty_child(const struct stk_pty *p)
{
    (void)p;
}
void stk_pty_started(struct stk_pty *p)
{
    (void)p;
}
uint32_t stk_pty_poll(const struct stk_pty *p, struct pollfd *fds, uint32_t cap)
{
    (void)p;
    (void)fds;
    (void)cap;
    return 0;
}
void stk_pty_ready(struct stk_pty *p, const struct pollfd *fds, uint32_t n)
{
    (void)p;
    (void)fds;
    (void)n;
}
int64_t stk_pty_idle_ms(const struct stk_pty *p)
{
    (void)p;
    return 0;
}
const char *stk_pty_path(const struct stk_pty *p)
{
    (void)p;
    return "";
}
void stk_pty_free(struct stk_pty *p, const struct stk_end *end)
{
    (void)p;
    (void)end;
}
