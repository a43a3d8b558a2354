/* SPDX-License-Identifier: Apache-2.0 */
/* holders.c - who is on a GPU: memory and activity from the driver, owner, name and age from /proc.
 *
 * The driver lists as active only processes that were; one that it could list and did not is at 0,
 * which is known. Where it cannot tell at all, the value is left out. A PID that /proc does not
 * know is kept, since its memory is real: it may live in another PID namespace.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/json.h"
#include "gpu/proc.h"
#include "gpu/reading.h"

#define SAMPLES 4096
#define FIRST_WINDOW_US 2000000

struct activity {
    bool known;
    unsigned n;
    struct nvml_process_sample *s;
};

static void read_activity(struct stk_gpu_reader *r, const struct stk_nvml *nv, int64_t now_us,
                          struct activity *a)
{
    unsigned n = 0;
    int rc;

    *a = (struct activity){.known = false};
    if (!nv->call.process_samples || r->mig)
        return;
    if (r->procs_us == 0)
        r->procs_us = (unsigned long long)(now_us - FIRST_WINDOW_US);
    rc = nv->call.process_samples(r->dev, NULL, &n, r->procs_us); /* how many? */
    if (rc == NVML_INSUFFICIENT_SIZE && n > 0 && n <= SAMPLES) {
        unsigned cap = n + 16; /* one may come meanwhile */

        n = cap;
        a->s = calloc(cap, sizeof(*a->s));
        rc = a->s ? nv->call.process_samples(r->dev, a->s, &n, r->procs_us) : -1;
        a->n = rc == NVML_SUCCESS && n <= cap ? n : 0;
    }
    a->known = rc == NVML_SUCCESS || rc == NVML_NOT_FOUND;
    for (unsigned i = 0; i < a->n; i++)
        if (a->s[i].at_us > r->procs_us)
            r->procs_us = a->s[i].at_us;
}

/* Mean over the samples since the last reading, percent. */
static double activity_of(const struct activity *a, unsigned pid)
{
    double sum = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < a->n; i++) {
        if (a->s[i].pid != pid || a->s[i].sm > 100)
            continue;
        sum += a->s[i].sm;
        n++;
    }
    return n ? sum / n : 0;
}

static const char *user_name(struct stk_users *u, uint32_t uid)
{
    uint32_t i = 0;

    while (i < u->n && u->user[i].uid != uid)
        i++;
    if (i == u->n) {
        if (u->n == STK_USERS)
            u->n = i = 0; /* full: begin anew */
        u->user[i].uid = uid;
        u->user[i].known = stk_proc_user(uid, u->user[i].name, sizeof(u->user[i].name));
        u->n++;
    }
    return u->user[i].known ? u->user[i].name : NULL;
}

static void put_owner(json_t *o, unsigned pid, struct stk_users *users)
{
    struct stk_proc p;
    const char *user;

    if (!stk_proc_read((int)pid, &p))
        return;
    stk_json_int(o, "uid", p.uid);
    user = user_name(users, p.uid);
    if (user)
        stk_json_text(o, "user", user);
    stk_json_text(o, "name", p.name);
    stk_json_int(o, "sid", p.sid);
    stk_json_real(o, "age_s", p.age_s);
}

void stk_gpu_read_processes(struct stk_gpu_reader *r, const struct stk_nvml *nv, int64_t now_us,
                            struct stk_users *users, json_t *gpu)
{
    struct stk_nvml_proc *p = calloc(STK_PROC_MAX, sizeof(*p));
    int n = p ? stk_nvml_processes(nv, r->dev, p, STK_PROC_MAX) : -1;
    struct activity a;
    json_t *all;

    if (n < 0) {
        free(p);
        return;
    }
    read_activity(r, nv, now_us, &a);
    all = json_array();
    for (int i = 0; i < n; i++) {
        json_t *o = json_object();

        stk_json_int(o, "pid", p[i].pid);
        stk_json_text(o, "type", p[i].compute ? "compute" : "graphics");
        if (p[i].mem_known)
            stk_json_int(o, "mem_mib", (int64_t)(p[i].mem >> 20));
        if (a.known)
            stk_json_real(o, "sm", activity_of(&a, p[i].pid));
        put_owner(o, p[i].pid, users);
        (void)json_array_append_new(all, o);
    }
    (void)json_object_set_new(gpu, "processes", all);
    free(a.s);
    free(p);
}
