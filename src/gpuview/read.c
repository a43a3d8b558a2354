/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - lines of the helper into the table. Everything is read into fresh memory first and put
 * in place at the end, so that a line that is wrong somewhere changes nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuview/gpuview.h"
#include "gpuview/text.h"
#include "gpuview/xid.h"

#define LARGEST 1e15    /* of any value: no reading is near it */
#define UNSEEN_MIB 1024 /* memory that no process accounts for, before it is taken for one */

static const char *const metrics[] = {"util",
                                      "mem_util",
                                      "sm_active",
                                      "sm_occupancy",
                                      "tensor_active",
                                      "dram_active",
                                      "mem_total_mib",
                                      "mem_used_mib",
                                      "mem_free_mib",
                                      "power_w",
                                      "energy_j",
                                      "temp_c",
                                      "clock_sm_mhz",
                                      "clock_mem_mhz",
                                      "pcie_tx_kib_s",
                                      "pcie_rx_kib_s",
                                      "nvlink_tx_kib_s",
                                      "nvlink_rx_kib_s",
                                      "ecc_volatile_corrected",
                                      "ecc_volatile_uncorrected",
                                      "ecc_aggregate_corrected",
                                      "ecc_aggregate_uncorrected",
                                      "rows_corrected",
                                      "rows_uncorrected",
                                      "rows_pending",
                                      "rows_failed",
                                      "retired_pages"};
_Static_assert(sizeof(metrics) / sizeof(*metrics) == STK_GPU_METRIC_MAX, "a name each");

const char *stk_gpu_metric_name(enum stk_gpu_metric m)
{
    return (unsigned)m < STK_GPU_METRIC_MAX ? metrics[m] : "?";
}

void stk_gpus_init(struct stk_gpus *t)
{
    *t = (struct stk_gpus){.n = 0};
}

static void drop(struct stk_gpu *gpu, uint32_t n)
{
    for (uint32_t i = 0; gpu && i < n; i++)
        free(gpu[i].now.proc);
    free(gpu);
}

void stk_gpus_done(struct stk_gpus *t)
{
    drop(t->gpu, t->n);
    free(t->link);
    stk_gpus_init(t);
}

/* Leaves 'ret' alone when the member is absent or no text. */
static void text_of(const json_t *o, const char *key, char *ret, size_t size)
{
    const char *s = json_string_value(json_object_get(o, key));

    if (s)
        stk_gpu_text_clean(ret, size, s);
}

static struct stk_gpu_value value_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    double d = json_is_boolean(v) ? (double)json_is_true(v) : json_number_value(v);

    if ((!json_is_number(v) && !json_is_boolean(v)) || !isfinite(d) || d < 0 || d > LARGEST)
        return (struct stk_gpu_value){0, false};
    return (struct stk_gpu_value){d, true};
}

static int64_t whole_of(const json_t *o, const char *key, int64_t min, int64_t max, int64_t other)
{
    const json_t *v = json_object_get(o, key);
    int64_t n = json_integer_value(v);

    return json_is_integer(v) && n >= min && n <= max ? n : other;
}

/* The line as an object with a list of GPUs; NULL with the error in ret_rc. */
static json_t *parse(const char *line, size_t len, int *ret_rc, struct stk_err *err)
{
    char why[200] = "no reason given";
    json_error_t e;
    json_t *root;

    if (len > STK_GPUVIEW_LINE) {
        *ret_rc =
            stk_err_set(err, -E2BIG, "a line of the GPU helper has %zu bytes, at most %u are read",
                        len, STK_GPUVIEW_LINE);
        return NULL;
    }
    root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &e);
    if (!root) {
        *ret_rc = stk_err_set(err, -EINVAL, "a line of the GPU helper is not JSON: %.100s", e.text);
    } else if (!json_is_array(json_object_get(root, "gpus"))) {
        *ret_rc = stk_err_set(err, -EINVAL, "a line of the GPU helper has no list of GPUs");
    } else if (json_is_false(json_object_get(root, "ok"))) {
        text_of(root, "why", why, sizeof(why));
        *ret_rc = stk_err_set(err, -EIO, "the GPU helper gave up: %s", why);
    } else {
        *ret_rc = 0;
        return root;
    }
    json_decref(root);
    return NULL;
}

static void read_instances(struct stk_gpu *g, const json_t *list)
{
    g->n_instances = (uint32_t)json_array_size(list);
    for (uint32_t i = 0; i < g->n_instances && i < STK_GPUVIEW_INSTANCES; i++) {
        const json_t *o = json_array_get(list, i);

        text_of(o, "uuid", g->instance[i].uuid, sizeof(g->instance[i].uuid));
        text_of(o, "profile", g->instance[i].profile, sizeof(g->instance[i].profile));
        g->instance[i].start = (int32_t)whole_of(o, "start", 0, 7, -1);
    }
}

static int read_gpu(struct stk_gpu *g, const json_t *o, uint32_t i, struct stk_err *err)
{
    if (!json_is_object(o) || whole_of(o, "index", 0, STK_GPUVIEW_MAX - 1, -1) != i)
        return stk_err_set(err, -EINVAL, "entry %u of the GPU helper's list has another index", i);
    text_of(o, "uuid", g->uuid, sizeof(g->uuid));
    text_of(o, "name", g->name, sizeof(g->name));
    text_of(o, "pci", g->pci, sizeof(g->pci));
    text_of(o, "error", g->error, sizeof(g->error));
    g->present = g->error[0] == '\0' && g->uuid[0] != '\0';
    g->minor = (int32_t)whole_of(o, "minor", 0, INT32_MAX, -1);
    g->numa = (int32_t)whole_of(o, "numa", 0, INT32_MAX, -1);
    g->mem_mib = (uint64_t)whole_of(o, "mem_mib", 0, INT64_C(1) << 40, 0);
    g->mig = json_is_true(json_object_get(o, "mig"));
    if (json_string_length(json_object_get(o, "cpus")) < sizeof(g->cpus)) /* half is wrong */
        text_of(o, "cpus", g->cpus, sizeof(g->cpus));
    g->nvlinks = (int32_t)whole_of(o, "nvlinks", 0, STK_GPUVIEW_NVLINKS, -1);
    g->switch_links = (uint32_t)whole_of(o, "switch_links", 0, STK_GPUVIEW_NVLINKS, 0);
    read_instances(g, json_object_get(o, "instances"));
    return 0;
}

static const char *const paths[] = {"", "board", "pix", "pxb", "phb", "node", "sys"};
_Static_assert(sizeof(paths) / sizeof(*paths) == STK_PATH_MAX, "a name each");

const char *stk_gpu_path_name(enum stk_gpu_path p)
{
    return (unsigned)p < STK_PATH_MAX ? paths[p] : "";
}

static void read_link(struct stk_gpus *t, const json_t *o)
{
    int64_t a = whole_of(o, "a", 0, (int64_t)t->n - 1, -1);
    int64_t b = whole_of(o, "b", 0, (int64_t)t->n - 1, -1);
    const char *path = json_string_value(json_object_get(o, "path"));
    struct stk_gpu_link l = {.nvlinks = (uint8_t)whole_of(o, "nvlinks", 0, STK_GPUVIEW_NVLINKS, 0),
                             .through_switch = json_is_true(json_object_get(o, "switch"))};

    for (unsigned i = STK_PATH_BOARD; path && i < STK_PATH_MAX; i++)
        if (strcmp(path, paths[i]) == 0)
            l.path = (enum stk_gpu_path)i;
    if (a >= 0 && b >= 0 && a != b)
        t->link[a * t->n + b] = t->link[b * t->n + a] = l;
}

/* What a helper does not tell is not known; that is no reason to do without the GPUs. */
static int read_links(struct stk_gpus *t, const json_t *links, struct stk_err *err)
{
    t->link = calloc((size_t)t->n * t->n + 1, sizeof(*t->link));
    if (!t->link)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(links); i++)
        read_link(t, json_array_get(links, i));
    return 0;
}

int stk_gpuview_list(struct stk_gpus *t, const char *line, size_t len, struct stk_err *err)
{
    struct stk_gpus fresh;
    json_t *root, *gpus;
    size_t n;
    int rc;

    root = parse(line, len, &rc, err);
    if (!root)
        return rc;
    stk_gpus_init(&fresh);
    gpus = json_object_get(root, "gpus");
    n = json_array_size(gpus);
    if (n > STK_GPUVIEW_MAX)
        rc = stk_err_set(err, -E2BIG, "%zu GPUs in one machine, at most %d are known", n,
                         STK_GPUVIEW_MAX);
    fresh.gpu = rc == 0 ? calloc(n + 1, sizeof(*fresh.gpu)) : NULL;
    if (rc == 0 && !fresh.gpu)
        rc = stk_err_set(err, -ENOMEM, "out of memory");
    for (; fresh.gpu && rc == 0 && fresh.n < n; fresh.n++)
        rc = read_gpu(&fresh.gpu[fresh.n], json_array_get(gpus, fresh.n), fresh.n, err);
    for (uint32_t i = 0; rc == 0 && i < fresh.n; i++)
        (void)snprintf(fresh.gpu[i].label, sizeof(fresh.gpu[i].label), "%u", i);
    rc = rc < 0 ? rc : read_links(&fresh, json_object_get(root, "links"), err);
    if (rc == 0) {
        text_of(root, "driver", fresh.driver, sizeof(fresh.driver));
        text_of(root, "cuda", fresh.cuda, sizeof(fresh.cuda));
        text_of(root, "why", fresh.why, sizeof(fresh.why));
        fresh.suspend = json_is_true(json_object_get(root, "suspend"));
        fresh.move = json_is_true(json_object_get(root, "move"));
        stk_gpus_done(t);
        *t = fresh;
    } else {
        free(fresh.gpu);
    }
    json_decref(root);
    return rc;
}

static void read_proc(struct stk_gpu_proc *p, const json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));

    *p = (struct stk_gpu_proc){.pid = (int32_t)whole_of(o, "pid", 1, INT32_MAX, 0)};
    p->sid = (int32_t)whole_of(o, "sid", 1, INT32_MAX, 0);
    p->uid = (uint32_t)whole_of(o, "uid", 0, UINT32_MAX, UINT32_MAX);
    p->compute = !type || strcmp(type, "graphics") != 0;
    text_of(o, "user", p->user, sizeof(p->user));
    text_of(o, "name", p->name, sizeof(p->name));
    p->mem_mib = value_of(o, "mem_mib");
    p->sm = value_of(o, "sm");
    p->age_s = value_of(o, "age_s");
}

static int read_procs(struct stk_gpu_sample *s, const json_t *o, struct stk_err *err)
{
    const json_t *all = json_object_get(o, "processes");
    size_t n = json_array_size(all);

    s->procs_known = json_is_array(all);
    if (n == 0)
        return 0;
    s->n_procs = n < STK_GPUVIEW_PROCS ? (uint32_t)n : STK_GPUVIEW_PROCS;
    s->more_procs = (uint32_t)(n - s->n_procs);
    s->proc = calloc(s->n_procs, sizeof(*s->proc));
    if (!s->proc) {
        s->n_procs = 0;
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < s->n_procs; i++)
        read_proc(&s->proc[i], json_array_get(all, i));
    return 0;
}

static void read_throttle(struct stk_gpu_sample *s, const json_t *o)
{
    const json_t *all = json_object_get(o, "throttle");
    size_t at = 0;

    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *word = json_string_value(json_array_get(all, i));
        char clean[32];

        if (!word)
            continue;
        stk_gpu_text_clean(clean, sizeof(clean), word);
        if (at + strlen(clean) + 2 > sizeof(s->throttle))
            return;
        at += (size_t)snprintf(s->throttle + at, sizeof(s->throttle) - at, "%s%s", at ? " " : "",
                               clean);
    }
}

/* Is there a sign that the process uses the GPU? A sign that cannot be had is not a "no". */
static bool is_active(const struct stk_gpu_sample *s, const struct stk_gpu_proc *p)
{
    const struct stk_gpu_value *util = &s->value[STK_GPU_UTIL];
    const struct stk_gpu_value *dram = &s->value[STK_GPU_DRAM_ACTIVE];
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_procs; i++)
        n += s->proc[i].compute;
    if (!p->sm.known && !util->known)
        return true;
    if (p->sm.known && p->sm.v > 0)
        return true;
    if (p->sm.known && n > 1)
        return false; /* what the GPU as a whole does may be the others' */
    return (util->known && util->v > 0) || (dram->known && dram->v >= 1);
}

/* A process keeps its idle time from reading to reading; a younger one is another with its PID. */
static void carry_idle(const struct stk_gpu_sample *old, struct stk_gpu_sample *now)
{
    for (uint32_t i = 0; i < now->n_procs; i++) {
        struct stk_gpu_proc *p = &now->proc[i];

        if (is_active(now, p))
            continue;
        p->idle_us = now->at_us;
        for (uint32_t k = 0; k < old->n_procs; k++) {
            const struct stk_gpu_proc *q = &old->proc[k];
            bool same = q->pid == p->pid && q->uid == p->uid &&
                        (!p->age_s.known || !q->age_s.known || p->age_s.v + 1 >= q->age_s.v);

            if (same && q->idle_us > 0 && q->idle_us < p->idle_us)
                p->idle_us = q->idle_us;
        }
    }
}

static bool has_unseen(const struct stk_gpu_sample *s)
{
    const struct stk_gpu_value *used = &s->value[STK_GPU_MEM_USED_MIB];
    const struct stk_gpu_value *total = &s->value[STK_GPU_MEM_TOTAL_MIB];
    double sum = 0, bound = UNSEEN_MIB;

    if (!used->known || !s->procs_known || s->more_procs > 0)
        return false;
    for (uint32_t i = 0; i < s->n_procs; i++) {
        if (!s->proc[i].mem_mib.known)
            return false;
        sum += s->proc[i].mem_mib.v;
    }
    if (total->known && total->v / 50 > bound)
        bound = total->v / 50;
    return used->v - sum > bound;
}

static void take_xids(struct stk_gpu *g, const json_t *o)
{
    const json_t *all = json_object_get(o, "xid");

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *x = json_array_get(all, i);
        uint32_t code = (uint32_t)whole_of(x, "code", 1, UINT32_MAX - 1, 0);
        int64_t at_us = whole_of(x, "at_us", 0, INT64_MAX, 0);
        unsigned place = (unsigned)(g->n_xids % STK_GPUVIEW_XIDS);

        if (code == 0)
            continue;
        g->xid[place].code = code;
        g->xid[place].at_us = at_us;
        g->n_xids++;
        if (stk_xid_find(code)->kind == STK_XID_HARDWARE) {
            if (g->fault_xid == 0 || (stk_xid_recovers(g->fault_xid) && !stk_xid_recovers(code)))
                g->fault_xid = code;
            g->fault_us = at_us;
        }
    }
}

static int read_sample(struct stk_gpu_sample *s, const json_t *o, int64_t at_us,
                       struct stk_err *err)
{
    s->at_us = at_us;
    for (unsigned m = 0; m < STK_GPU_METRIC_MAX; m++)
        s->value[m] = value_of(o, metrics[m]);
    text_of(o, "lost", s->lost, sizeof(s->lost));
    text_of(o, "recovery", s->recovery, sizeof(s->recovery));
    read_throttle(s, o);
    return read_procs(s, o, err);
}

/* All samples of a line; fresh[i] is about GPU i. */
static int read_samples(const struct stk_gpus *t, const json_t *root, struct stk_gpu_sample *fresh,
                        struct stk_err *err)
{
    const json_t *gpus = json_object_get(root, "gpus");
    int64_t at_us = whole_of(root, "at_us", 1, INT64_MAX, 0), i;
    int rc = 0;

    if (at_us == 0)
        return stk_err_set(err, -EINVAL, "a line of the GPU helper has no time");
    for (size_t k = 0; rc == 0 && k < json_array_size(gpus); k++) {
        const json_t *o = json_array_get(gpus, k);

        i = whole_of(o, "index", 0, (int64_t)t->n - 1, -1);
        if (i < 0 || fresh[i].at_us != 0)
            return stk_err_set(err, -EINVAL,
                               "the GPU helper tells of a GPU that is not listed, "
                               "or of one twice");
        rc = read_sample(&fresh[i], o, at_us, err);
    }
    return rc;
}

static void put_in_place(struct stk_gpus *t, const json_t *root, struct stk_gpu_sample *fresh)
{
    const json_t *gpus = json_object_get(root, "gpus");

    t->at_us = json_integer_value(json_object_get(root, "at_us"));
    for (uint32_t i = 0; i < t->n; i++) {
        struct stk_gpu *g = &t->gpu[i];

        carry_idle(&g->now, &fresh[i]);
        g->unseen_rounds = has_unseen(&fresh[i]) ? g->unseen_rounds + 1 : 0;
        free(g->now.proc);
        g->now = fresh[i];
    }
    for (size_t k = 0; k < json_array_size(gpus); k++) {
        const json_t *o = json_array_get(gpus, k);

        take_xids(&t->gpu[json_integer_value(json_object_get(o, "index"))], o);
    }
}

int stk_gpuview_sample(struct stk_gpus *t, const char *line, size_t len, struct stk_err *err)
{
    struct stk_gpu_sample *fresh;
    json_t *root;
    int rc;

    root = parse(line, len, &rc, err);
    if (!root)
        return rc;
    fresh = calloc(t->n + 1, sizeof(*fresh));
    if (!fresh) {
        json_decref(root);
        return stk_err_set(err, -ENOMEM, "out of memory");
    }
    rc = read_samples(t, root, fresh, err);
    if (rc == 0)
        put_in_place(t, root, fresh);
    for (uint32_t i = 0; rc < 0 && i < t->n; i++)
        free(fresh[i].proc);
    free(fresh);
    json_decref(root);
    return rc;
}

void stk_gpuview_clear(struct stk_gpus *t, uint32_t gpu)
{
    t->gpu[gpu].fault_xid = 0;
    t->gpu[gpu].fault_us = 0;
}
