/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sequence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/core.h"
#include "engine/sim/sim.h"
#include "policy/place/frag.h"
#include "policy/registry.h"
#include "sim/emit.h"
#include "sim/mix.h"
#include "sim/slurp.h"
#include "sys/big.h"

/* ---- the file ---- */

struct numbers {
    const char *name, *at, *end;
    uint32_t line;
};

static int next_number(struct numbers *in, uint64_t max, const char *what, uint32_t *ret,
                       struct stk_err *err)
{
    uint64_t v = 0;

    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\r'))
        in->line += *in->at++ == '\n';
    if (in->at == in->end || *in->at < '0' || *in->at > '9')
        return stk_err_set(err, -EINVAL, "%s:%u: expected %s", in->name, in->line, what);
    while (in->at < in->end && *in->at >= '0' && *in->at <= '9' && v <= max)
        v = v * 10 + (uint64_t)(*in->at++ - '0');
    if (v > max)
        return stk_err_set(err, -EINVAL, "%s:%u: expected %s of at most %llu", in->name, in->line,
                           what, (unsigned long long)max);
    *ret = (uint32_t)v;
    return 0;
}

/* Every rank once. */
static int read_ranks(struct numbers *in, struct stk_sequence *q, struct stk_err *err)
{
    bool *seen = calloc(q->n_nodes + 1u, 1);
    int rc = 0;

    if (!seen)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < q->n_nodes; i++) {
        uint32_t rank = 0;

        rc = next_number(in, q->n_nodes - 1u, "the rank of a node", &rank, err);
        if (rc == 0 && seen[rank])
            rc = stk_err_set(err, -EINVAL, "%s:%u: rank %u comes twice", in->name, in->line, rank);
        seen[rank] = true;
        q->ranks[i] = rank;
    }
    free(seen);
    return rc;
}

static int read_all(struct numbers *in, struct stk_sequence *q, struct stk_err *err)
{
    uint32_t all, nodes = 0;
    int rc = next_number(in, STK_TRACE_MAX_JOBS, "how many jobs come", &q->n_jobs, err);

    rc = rc < 0 ? rc : next_number(in, STK_MAX_NODES, "how many nodes there are", &nodes, err);
    rc = rc < 0 ? rc : next_number(in, UINT32_MAX, "thousandths of GPUs", &all, err);
    if (rc == 0 && q->n_nodes != nodes)
        rc = stk_err_set(err, -EINVAL, "%s:%u: it is for %u nodes, the cluster has %u", in->name,
                         in->line, nodes, q->n_nodes);
    if (rc == 0 && q->n_jobs > (size_t)(in->end - in->at))
        rc = stk_err_set(err, -EINVAL, "%s:%u: it ends before %u jobs", in->name, in->line,
                         q->n_jobs);
    if (rc < 0)
        return rc;
    q->jobs = malloc((q->n_jobs + 1u) * sizeof(*q->jobs));
    q->ranks = malloc((q->n_nodes + 1u) * sizeof(*q->ranks));
    if (!q->jobs || !q->ranks)
        return stk_err_set(err, -ENOMEM, "out of memory for %u jobs", q->n_jobs);
    for (uint32_t i = 0; rc == 0 && i < q->n_jobs; i++)
        rc = next_number(in, q->trace_jobs - 1u, "the index of a job", &q->jobs[i], err);
    return rc < 0 ? rc : read_ranks(in, q, err);
}

int stk_sequence_parse(struct stk_sequence *q, const char *name, const char *data, size_t len,
                       struct stk_err *err)
{
    struct numbers in = {name, data, data + len, 1};
    int rc;

    if (q->trace_jobs == 0 || q->n_nodes == 0)
        return stk_err_set(err, -EINVAL, "%s: there are no jobs, or no nodes", name);
    rc = read_all(&in, q, err);
    if (rc < 0)
        stk_sequence_done(q);
    return rc;
}

int stk_sequence_read(struct stk_sequence *q, const char *path, const struct stk_trace *t,
                      const struct stk_cluster *c, struct stk_err *err)
{
    char *data = NULL;
    size_t len = 0;
    int rc = stk_slurp(path, &data, &len, err);

    *q = (struct stk_sequence){.trace_jobs = t->n_jobs, .n_nodes = c->n_nodes};
    rc = rc < 0 ? rc : stk_sequence_parse(q, path, data, len, err);
    free(data);
    return rc;
}

void stk_sequence_done(struct stk_sequence *q)
{
    free(q->jobs);
    free(q->ranks);
    *q = (struct stk_sequence){0};
}

/* ---- the run ---- */

struct filling {
    const struct stk_trace *t;
    struct stk_core *core;
    const struct stk_state *s;
    struct stk_mix *mix;
    struct stk_trace_map map;
    double *frag; /* of each node */
    double sum;
    uint64_t arrived;
    struct stk_sequence_result *r;
};

static int make_core(struct filling *x, const struct stk_cluster *c, const struct stk_setup *setup,
                     const struct stk_sequence *q, struct stk_err *err)
{
    struct stk_node_spec *nodes = malloc((c->n_nodes + 1u) * sizeof(*nodes));
    const struct stk_core_config cfg = {
        .nodes = nodes,
        .n_nodes = c->n_nodes,
        .n_pools = c->pools.n,
        .layouts = c->layouts,
        .n_layouts = c->n_layouts,
        .order = &stk_order_fifo,
        .backfill = &stk_backfill_skip,
        .place = setup->place,
        .preempt = &stk_preempt_none,
        .admit = &stk_admit_possible,
        .params = &setup->params,
        .mix = stk_params_word(&setup->params, stk_sim_mix, "learned") ? NULL : x->mix,
        .n_resources = x->map.n_resources,
        .resource_names = x->map.names,
        .retain_done = 1};
    int rc;

    if (!nodes)
        return stk_err_set(err, -ENOMEM, "out of memory for %u nodes", c->n_nodes);
    for (uint32_t i = 0; i < c->n_nodes; i++)
        nodes[q->ranks[i]] = c->nodes[i];
    rc = stk_core_new(&cfg, &stk_big_mem, &x->core, err);
    free(nodes);
    return rc;
}

/* A node is not as it was. */
static void weigh(struct filling *x, uint32_t node)
{
    struct stk_frag f;

    stk_frag_see(&f, x->s, node);
    x->sum -= x->frag[node];
    x->frag[node] = stk_frag(&f, x->mix);
    x->sum += x->frag[node];
}

/* A job is moved: it goes at once. */
static int leave(struct filling *x, const struct stk_event *evict, struct stk_err *err)
{
    const struct stk_job *j = &x->s->jobs[evict->job.i];
    uint32_t node = x->s->pieces[j->first_piece].node.i;
    const struct stk_event gone = {.at = evict->at,
                                   .type = STK_EV_EXITED,
                                   .job = evict->job,
                                   .lease = evict->lease,
                                   .u.exit = {.cause = STK_CAUSE_EVICTED}};
    int rc = stk_core_apply(x->core, evict, err);

    x->r->migrations++;
    x->r->migrated_gpus += j->gpus;
    rc = rc < 0 ? rc : stk_core_apply(x->core, &gone, err);
    if (rc == 0)
        weigh(x, node);
    return rc;
}

/* What is proposed is done, until there is nothing. */
static int decide(struct filling *x, stk_time now, struct stk_err *err)
{
    struct stk_event out[4];
    uint32_t n;
    int rc = 0;

    while (rc == 0 && (n = stk_core_decide(x->core, now, out, 4)) > 0)
        for (uint32_t i = 0; i < n && rc == 0; i++) {
            uint32_t node = out[i].type == STK_EV_PLACE ? out[i].u.place.pieces[0].node.i : 0;

            if (out[i].type == STK_EV_EVICT) {
                rc = leave(x, &out[i], err);
                continue;
            }
            rc = stk_core_apply(x->core, &out[i], err);
            if (rc == 0)
                weigh(x, node);
        }
    return rc;
}

static int arrive(struct filling *x, uint32_t job, stk_time now, struct stk_err *err)
{
    const struct stk_trace_job *j = &x->t->jobs[job];
    const struct stk_job_spec spec = {
        .demand = stk_trace_demand(x->t, j, &x->map), .tag = job, .estimate = STK_SECOND};
    struct stk_event ev = {
        .at = now, .type = STK_EV_SUBMIT, .job = stk_core_next_job(x->core), .u.spec = &spec};
    uint64_t milli = (uint64_t)j->gpus * (j->gpu_milli ? j->gpu_milli : 1000);
    int rc = stk_core_apply(x->core, &ev, err);

    x->arrived += milli;
    if (rc == -ERANGE) { /* no node could ever take it */
        x->r->dropped++;
        return 0;
    }
    rc = rc < 0 ? rc : decide(x, now, err);
    if (rc < 0)
        return rc;
    if (x->s->jobs[ev.job.i].lease) {
        x->r->placed++;
        x->r->used_milli += milli;
    }
    if (x->s->n_waiting > (x->s->jobs[ev.job.i].lease == 0))
        return stk_err_set(err, -EUCLEAN, "a job that was moved has no place");
    if (x->s->jobs[ev.job.i].lease)
        return 0;
    x->r->dropped++;
    ev = (struct stk_event){.at = now, .type = STK_EV_CANCEL, .job = ev.job};
    return stk_core_apply(x->core, &ev, err);
}

/* To the percent of the cluster that has been asked for so far, half to even. */
static void count(struct filling *x)
{
    struct stk_sequence_result *r = x->r;
    double all = (double)r->gpu_milli;
    long pct = lrint((double)x->arrived / all * 100);
    struct stk_arrival *a = &r->at[pct < STK_MAX_ARRIVAL_PCT ? pct : STK_MAX_ARRIVAL_PCT];

    a->n++;
    a->alloc_pct += rint((double)r->used_milli / all * 10000) / 100;
    a->frag_pct += rint(x->sum * 100) / 100;
    if ((uint32_t)(a - r->at) >= r->n_at)
        r->n_at = (uint32_t)(a - r->at) + 1;
}

/* Sums become means. A percent at which nothing came gets the mean of its neighbours' arrivals. */
static void finish(struct stk_sequence_result *r)
{
    struct stk_arrival *sums = malloc(sizeof(r->at));

    if (!sums)
        return;
    memcpy(sums, r->at, sizeof(r->at));
    for (uint32_t i = 0; i < r->n_at; i++) {
        struct stk_arrival a = sums[i];

        for (uint32_t k = i > 0 ? i - 1 : i + 1; sums[i].n == 0 && k <= i + 1 && k < r->n_at;
             k += 2) {
            a.n += sums[k].n;
            a.alloc_pct += sums[k].alloc_pct;
            a.frag_pct += sums[k].frag_pct;
        }
        if (a.n > 0)
            r->at[i] = (struct stk_arrival){
                a.alloc_pct / a.n, a.frag_pct / a.n / (double)r->gpu_milli * 100, sums[i].n};
    }
    free(sums);
}

static int fill(struct filling *x, const struct stk_sequence *q, struct stk_err *err)
{
    clock_t start;
    int rc = 0;

    x->s = stk_core_state(x->core);
    x->frag = calloc(x->s->n_nodes + 1u, sizeof(*x->frag));
    if (!x->frag)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < x->s->n_nodes; i++) {
        struct stk_frag f;

        stk_frag_see(&f, x->s, i);
        x->frag[i] = stk_frag(&f, x->mix);
        x->sum += x->frag[i];
        x->r->gpu_milli += (uint64_t)x->s->nodes[i].gpus * 1000;
    }
    if (x->r->gpu_milli == 0)
        return stk_err_set(err, -EINVAL, "the cluster has no GPU");
    start = clock();
    for (uint32_t i = 0; i < q->n_jobs && rc == 0; i++) {
        rc = arrive(x, q->jobs[i], (stk_time)(i + 1) * STK_SECOND, err);
        count(x);
    }
    x->r->cpu_s = (double)(clock() - start) / CLOCKS_PER_SEC;
    x->r->frag_milli = x->sum;
    finish(x->r);
    return rc;
}

/* Who is where: arrivals from 1, jobs and nodes by their place in their files from 0. */
static int write_places(const struct filling *x, const struct stk_sequence *q, const char *path,
                        struct stk_err *err)
{
    FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    uint32_t *node = malloc((q->n_nodes + 1u) * sizeof(*node));
    bool ok = f && node;

    for (uint32_t i = 0; ok && i < q->n_nodes; i++)
        node[q->ranks[i]] = i;
    if (ok)
        (void)fprintf(f, "arrival,job,node,gpus\n");
    for (uint32_t i = 0; ok && i < x->s->n_jobs; i++) {
        const struct stk_job *j = &x->s->jobs[i];
        const char *sep = "";

        if (j->lease == 0)
            continue;
        (void)fprintf(f, "%lld,%u,%u,", (long long)(j->submitted / STK_SECOND), j->tag,
                      node[x->s->pieces[j->first_piece].node.i]);
        for (uint64_t m = x->s->pieces[j->first_piece].mask; m; m &= m - 1, sep = " ")
            (void)fprintf(f, "%s%d", sep, __builtin_ctzll(m));
        (void)fprintf(f, "\n");
    }
    ok = ok && !ferror(f);
    if (f && f != stdout)
        ok = fclose(f) == 0 && ok;
    free(node);
    return ok ? 0 : stk_err_set(err, -EIO, "cannot write %s: %s", path, strerror(errno));
}

int stk_sequence_run(const struct stk_trace *t, const struct stk_cluster *c,
                     const struct stk_setup *setup, const struct stk_sequence *q,
                     struct stk_sequence_result *ret, struct stk_err *err)
{
    struct filling x = {.t = t, .r = ret, .mix = calloc(1, sizeof(*x.mix))};
    int rc = x.mix ? 0 : stk_err_set(err, -ENOMEM, "out of memory");

    *ret = (struct stk_sequence_result){0};
    (void)snprintf(ret->place, sizeof(ret->place), "%s", setup->place->name);
    stk_setup_describe(setup, ret->policies, sizeof(ret->policies));
    rc = rc < 0 ? rc : stk_trace_map(t, c, &x.map, err);
    rc = rc < 0 ? rc : stk_mix_of(t, &x.map, setup->place->by_demand, x.mix, err);
    rc = rc < 0 ? rc : make_core(&x, c, setup, q, err);
    if (rc == 0 && setup->place->by_demand) /* what fragments are is said by count */
        rc = stk_mix_of(t, &x.map, false, x.mix, err);
    rc = rc < 0 ? rc : fill(&x, q, err);
    if (rc == 0 && q->jobs_out)
        rc = write_places(&x, q, q->jobs_out, err);
    stk_core_free(x.core);
    free(x.frag);
    free(x.mix);
    return rc;
}

/* ---- output ---- */

static void put_run(struct stk_emit *e, const struct stk_sequence_result *r)
{
    stk_emit_text(e, "{\"place\":");
    stk_emit_json(e, r->place);
    stk_emit_member(e, "policies");
    stk_emit_json(e, r->policies);
    stk_emit_member(e, "placed");
    stk_emit_u64(e, r->placed);
    stk_emit_member(e, "dropped");
    stk_emit_u64(e, r->dropped);
    stk_emit_member(e, "migrations");
    stk_emit_u64(e, r->migrations);
    stk_emit_member(e, "migrated_gpus");
    stk_emit_u64(e, r->migrated_gpus);
    stk_emit_member(e, "gpu_milli");
    stk_emit_u64(e, r->gpu_milli);
    stk_emit_member(e, "used_milli");
    stk_emit_u64(e, r->used_milli);
    stk_emit_member(e, "frag_milli");
    stk_emit_real(e, r->frag_milli, 2);
    stk_emit_member(e, "cpu_s");
    stk_emit_real(e, r->cpu_s, 6);
    stk_emit_member(e, "arrivals");
    stk_emit_text(e, "[");
    for (uint32_t k = 0; k < r->n_at; k++) {
        stk_emit_text(e, k ? ",{\"pct\":" : "{\"pct\":");
        stk_emit_u64(e, k);
        stk_emit_member(e, "alloc_pct");
        stk_emit_real(e, r->at[k].alloc_pct, 4);
        stk_emit_member(e, "frag_pct");
        stk_emit_real(e, r->at[k].frag_pct, 4);
        stk_emit_text(e, "}");
    }
    stk_emit_text(e, "]}");
}

int stk_sequence_json(FILE *f, const struct stk_sequence_result *runs, uint32_t n,
                      struct stk_err *err)
{
    struct stk_emit e;
    int rc;

    stk_emit_init(&e, f);
    stk_emit_text(&e, "{\"runs\":[");
    for (uint32_t i = 0; i < n; i++) {
        stk_emit_text(&e, i ? ",\n" : "\n");
        put_run(&e, &runs[i]);
    }
    stk_emit_text(&e, "\n]}\n");
    rc = stk_emit_end(&e);
    return rc ? stk_err_set(err, rc, "cannot write JSON: %s", strerror(-rc)) : 0;
}

void stk_sequence_table(FILE *f, const struct stk_sequence_result *runs, uint32_t n)
{
    static const uint32_t shown[] = {50, 80, 90, 95, 100, 110, 120, 130};

    (void)fprintf(f, "GPU given away, and GPU left that is of no use, in percent of all\n\n");
    (void)fprintf(f, "%-14s %8s %8s %8s", "asked for", "placed", "dropped", "jobs/s");
    for (size_t k = 0; k < sizeof(shown) / sizeof(*shown); k++)
        (void)fprintf(f, "        %4u%%", shown[k]);
    (void)fprintf(f, "\n");
    for (uint32_t i = 0; i < n; i++) {
        const struct stk_sequence_result *r = &runs[i];
        double rate = r->cpu_s > 0 ? (r->placed + r->dropped) / r->cpu_s : 0;

        (void)fprintf(f, "%-14s %8u %8u %8.0f", r->place, r->placed, r->dropped, rate);
        for (size_t k = 0; k < sizeof(shown) / sizeof(*shown); k++)
            if (shown[k] < r->n_at)
                (void)fprintf(f, "  %5.2f %5.2f", r->at[shown[k]].alloc_pct,
                              r->at[shown[k]].frag_pct);
        (void)fprintf(f, "\n");
    }
}
