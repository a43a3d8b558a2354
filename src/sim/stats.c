/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - one pass over the jobs for the sums, then a radix sort of the times for percentiles:
 * with a million jobs a comparison sort would take longer than some of the runs it measures.
 *
 * Sums of microseconds are kept in 128 bits: a hundred million jobs that wait for days overflow 64.
 */
#include "sim/stats.h"
#include "rules/booked.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11u
#define DIGITS (1u << DIGIT_BITS)
#define US_PER_HOUR (3600.0 * (double)STK_SECOND)
#define SLOWDOWN_FLOOR (10 * STK_SECOND) /* shorter jobs do not count as badly slowed down */

__extension__ typedef __int128 wide;

void stk_run_result_done(struct stk_run_result *r)
{
    if (!r)
        return;
    free(r->jobs);
    free(r->samples);
    stk_booked_free(r->booked);
    r->booked = NULL;
    r->jobs = NULL;
    r->samples = NULL;
    r->n_samples = r->cap_samples = 0;
}

/* One counting pass by the digit at 'shift' of v - base. */
static void radix_pass(const stk_time *from, stk_time *to, size_t n, stk_time base, unsigned shift)
{
    size_t at[DIGITS] = {0};
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        at[((uint64_t)from[i] - (uint64_t)base) >> shift & (DIGITS - 1)]++;
    for (size_t d = 0; d < DIGITS; d++) {
        size_t count = at[d];

        at[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[at[((uint64_t)from[i] - (uint64_t)base) >> shift & (DIGITS - 1)]++] = from[i];
}

void stk_times_sort(stk_time *v, stk_time *scratch, size_t n)
{
    stk_time *from = v, *to = scratch;
    stk_time min, max;

    if (n < 2)
        return;
    min = max = v[0];
    for (size_t i = 1; i < n; i++) {
        min = v[i] < min ? v[i] : min;
        max = v[i] > max ? v[i] : max;
    }
    for (unsigned shift = 0; shift < 64 && ((uint64_t)max - (uint64_t)min) >> shift;
         shift += DIGIT_BITS) {
        stk_time *swap = from;

        radix_pass(from, to, n, min, shift);
        from = to;
        to = swap;
    }
    if (from != v)
        memcpy(v, from, n * sizeof(*v));
}

static double seconds(stk_time us)
{
    return (double)us / (double)STK_SECOND;
}

/* Value number n*num/den of n sorted ones. */
static double percentile(const stk_time *sorted, size_t n, unsigned num, unsigned den)
{
    return n ? seconds(sorted[(uint64_t)n * num / den]) : 0;
}

static double gpu_us(const struct stk_trace_job *j)
{
    return (double)j->gpus * (double)(j->tasks ? j->tasks : 1) * (double)j->duration *
           (j->gpu_milli ? j->gpu_milli / 1000.0 : 1);
}

struct sums {
    wide jct, wait;
    double slowdown, gpu_us, late_s;
    uint32_t n_late;
    stk_time first_submit, last_end;
};

static void sums_add(struct sums *s, const struct stk_trace_job *j, const struct stk_job_result *r)
{
    stk_time jct = r->end - j->submit;
    stk_time ran = j->duration > SLOWDOWN_FLOOR ? j->duration : SLOWDOWN_FLOOR;
    double slowdown = (double)jct / (double)ran;

    s->jct += jct;
    s->wait += r->wait;
    s->slowdown += slowdown > 1 ? slowdown : 1;
    s->gpu_us += gpu_us(j);
    if (j->submit < s->first_submit)
        s->first_submit = j->submit;
    if (r->end > s->last_end)
        s->last_end = r->end;
}

/* Whether it ended by its deadline, if it had one. One that never ended did not. */
static void deadline_add(struct stk_run_result *r, struct sums *s, const struct stk_trace *t,
                         uint32_t job)
{
    const uint32_t extra = t->jobs[job].extra;
    const stk_time deadline = extra ? t->extras[extra - 1].deadline : 0, end = r->jobs[job].end;

    if (deadline == 0)
        return;
    r->deadlines++;
    r->deadlines_met += end >= 0 && end <= deadline;
    if (end <= deadline)
        return;
    s->late_s += seconds(end - deadline);
    s->n_late++;
    if (seconds(end - deadline) > r->worst_late_s)
        r->worst_late_s = seconds(end - deadline);
}

static void totals_from_sums(struct stk_run_result *r, const struct sums *s)
{
    double n = r->finished ? (double)r->finished : 1;

    r->sum_jct_us = s->jct > INT64_MAX ? INT64_MAX : (int64_t)s->jct;
    r->avg_jct_s = (double)s->jct / n / (double)STK_SECOND;
    r->avg_wait_s = (double)s->wait / n / (double)STK_SECOND;
    r->avg_bounded_slowdown = s->slowdown / n;
    r->makespan_s = r->finished ? seconds(s->last_end - s->first_submit) : 0;
    r->gpu_hours = s->gpu_us / US_PER_HOUR;
    r->avg_late_s = s->n_late ? s->late_s / s->n_late : 0;
}

/* 'times' is three arrays of 'room': completion times, waits, scratch; NULL when there was no
 * memory. */
static void totals_from_times(struct stk_run_result *r, stk_time *times, size_t room)
{
    size_t n = r->finished;

    if (!times) {
        r->p50_jct_s = r->p90_jct_s = r->p99_jct_s = n ? (double)NAN : 0;
        r->p50_wait_s = r->p90_wait_s = r->p99_wait_s = r->p999_wait_s = r->p50_jct_s;
        return;
    }
    stk_times_sort(times, times + 2 * room, n);
    stk_times_sort(times + room, times + 2 * room, n);
    r->p50_jct_s = percentile(times, n, 50, 100);
    r->p90_jct_s = percentile(times, n, 90, 100);
    r->p99_jct_s = percentile(times, n, 99, 100);
    r->p50_wait_s = percentile(times + room, n, 50, 100);
    r->p90_wait_s = percentile(times + room, n, 90, 100);
    r->p99_wait_s = percentile(times + room, n, 99, 100);
    r->p999_wait_s = percentile(times + room, n, 999, 1000);
}

static bool counts(const struct stk_trace_job *j, uint32_t first, uint32_t last)
{
    if (first == 0 && last == UINT32_MAX)
        return true;
    return j->id >= first && j->id <= last; /* ids that are names are larger than any number */
}

void stk_run_result_sum(struct stk_run_result *r, const struct stk_trace *t, uint32_t first,
                        uint32_t last)
{
    struct sums sums = {.first_submit = STK_NEVER_TIME};
    size_t room = t->n_jobs;
    stk_time *times;

    if (!r->jobs)
        return;
    r->n_jobs = r->finished = r->deadlines = r->deadlines_met = 0;
    r->worst_late_s = 0;
    times = malloc(3 * (room + 1) * sizeof(*times));
    for (uint32_t i = 0; i < t->n_jobs; i++) {
        if (!counts(&t->jobs[i], first, last) || (r->recorded_only && !t->jobs[i].recorded))
            continue;
        r->n_jobs++;
        deadline_add(r, &sums, t, i);
        if (r->jobs[i].end < 0)
            continue;
        if (times) {
            times[r->finished] = r->jobs[i].end - t->jobs[i].submit;
            times[room + r->finished] = r->jobs[i].wait;
        }
        r->finished++;
        sums_add(&sums, &t->jobs[i], &r->jobs[i]);
    }
    totals_from_sums(r, &sums);
    totals_from_times(r, times, room);
    free(times);
}

/* A trace without tenants has one, number 0, without a name. */
static uint32_t n_tenants(const struct stk_trace *t)
{
    return t->tenants.n ? t->tenants.n : 1;
}

int stk_tenants_top(const struct stk_trace *t, uint32_t *ret_tenants, uint32_t max)
{
    uint32_t all = n_tenants(t), n = 0;
    double *sum = malloc(all * sizeof(*sum));

    if (!sum)
        return -ENOMEM;
    for (uint32_t i = 0; i < all; i++)
        sum[i] = -1; /* a tenant without jobs is not shown */
    for (uint32_t i = 0; i < t->n_jobs; i++) {
        uint32_t who = t->jobs[i].tenant;

        if (who < all)
            sum[who] = (sum[who] < 0 ? 0 : sum[who]) + gpu_us(&t->jobs[i]);
    }
    for (uint32_t i = 0; i < all; i++) { /* insertion into a short list */
        uint32_t at = n;

        if (sum[i] < 0)
            continue;
        while (at > 0 && sum[ret_tenants[at - 1]] < sum[i])
            at--;
        if (at >= max)
            continue;
        n += n < max;
        memmove(ret_tenants + at + 1, ret_tenants + at, (n - at - 1) * sizeof(*ret_tenants));
        ret_tenants[at] = i;
    }
    free(sum);
    return (int)n;
}

/* Row number + 1 of each tenant of the trace, 0 for those not asked for. */
static uint32_t *rows_of_tenants(const struct stk_trace *t, const uint32_t *tenants, uint32_t n)
{
    uint32_t *row = calloc(n_tenants(t), sizeof(*row));

    for (uint32_t i = 0; row && i < n; i++)
        if (tenants[i] < n_tenants(t))
            row[tenants[i]] = i + 1;
    return row;
}

static uint32_t row_of_job(const struct stk_run_result *r, const struct stk_trace *t,
                           const uint32_t *row, uint32_t i)
{
    if (r->jobs[i].end < 0 || (r->recorded_only && !t->jobs[i].recorded))
        return 0;
    return t->jobs[i].tenant >= n_tenants(t) ? 0 : row[t->jobs[i].tenant];
}

/* The waits of all rows lie one row after the other in 'waits'; at[i] is where row i ends. */
static void rows_finish(struct stk_tenant_wait *rows, uint32_t n, stk_time *waits,
                        stk_time *scratch, const size_t *at)
{
    for (uint32_t i = 0; i < n; i++) {
        stk_time *v = waits + at[i] - rows[i].jobs;
        wide sum = 0;

        for (uint32_t k = 0; k < rows[i].jobs; k++)
            sum += v[k];
        stk_times_sort(v, scratch, rows[i].jobs);
        rows[i].avg_wait_s = rows[i].jobs ? (double)sum / rows[i].jobs / (double)STK_SECOND : 0;
        rows[i].p50_wait_s = percentile(v, rows[i].jobs, 50, 100);
        rows[i].p90_wait_s = percentile(v, rows[i].jobs, 90, 100);
        rows[i].gpu_hours /= US_PER_HOUR;
        if (rows[i].jobs)
            rows[i].avg_jct_s /= rows[i].jobs * (double)STK_SECOND;
    }
}

int stk_tenant_waits(const struct stk_run_result *r, const struct stk_trace *t,
                     const uint32_t *tenants, uint32_t n, struct stk_tenant_wait *ret_rows)
{
    uint32_t *row = rows_of_tenants(t, tenants, n);
    size_t *at = calloc(n + (size_t)1, sizeof(*at));
    stk_time *waits = malloc(2 * ((size_t)t->n_jobs + 1) * sizeof(*waits));
    int rc = row && at && waits ? 0 : -ENOMEM;

    if (rc < 0)
        goto out;
    for (uint32_t i = 0; i < n; i++)
        ret_rows[i] = (struct stk_tenant_wait){.tenant = tenants[i]};
    if (!r->jobs)
        goto out;
    for (uint32_t i = 0; i < t->n_jobs; i++) {
        uint32_t k = row_of_job(r, t, row, i);

        if (!k)
            continue;
        ret_rows[k - 1].jobs++;
        ret_rows[k - 1].gpu_hours += gpu_us(&t->jobs[i]);
        ret_rows[k - 1].avg_jct_s += (double)(r->jobs[i].end - t->jobs[i].submit);
    }
    for (uint32_t i = 0; i < n; i++)
        at[i + 1] = at[i] + ret_rows[i].jobs;
    for (uint32_t i = 0; i < t->n_jobs; i++) {
        uint32_t k = row_of_job(r, t, row, i);

        if (k)
            waits[at[k - 1]++] =
                r->jobs[i].wait; /* at[k - 1] moves from the row's start to its end */
    }
    rows_finish(ret_rows, n, waits, waits + t->n_jobs, at);
out:
    free(waits);
    free(at);
    free(row);
    return rc;
}
