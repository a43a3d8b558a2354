/* SPDX-License-Identifier: Apache-2.0 */
/* demo_day.c - a day of a small lab in under a minute, on 8 GPUs: an overnight job that gives way
 * and comes back, a gang, an array, jobs that depend on others, one that fails, a big job that
 * waits and a small one that runs meanwhile, and an urgent one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/demo.h"
#include "cli/view.h"

#define OVERNIGHT_STEPS 20

const struct stk_demo_job stk_demo_day[] = {
    {0, "overnight",
     "{\"gpus\":4,\"queue\":\"preemptible\",\"estimate_s\":25,\"script\":\"i=0\\nwhile [ $i -lt 20 "
     "]; "
     "do sleep 1; i=$((i+1)); echo step $i; done\\n\"}",
     NULL, "completed", "4 GPUs, best effort: it gives way whenever somebody needs the GPUs"},
    {0, "prepare", "{\"gpus\":1,\"estimate_s\":5,\"command\":[\"sleep\",\"3\"]}", NULL, "completed",
     "1 GPU: the training waits for it"},
    {0, "train",
     "{\"gpus\":1,\"tasks\":4,\"estimate_s\":14,\"stdout\":\"train-%t.out\",\"script\":\"echo rank "
     "$RANK of $WORLD_SIZE\\nsleep 12\\n\"}",
     "afterok:prepare", "completed", "a gang of 4 tasks: all start together or none"},
    {0, "sweep",
     "{\"gpus\":1,\"estimate_s\":5,\"array\":{\"first\":0,\"last\":5,\"limit\":3},\"command\":["
     "\"sleep\",\"4\"]}",
     NULL, "completed", "an array of 6, at most 3 at a time"},
    {6, "big", "{\"gpus\":8,\"estimate_s\":8,\"command\":[\"sleep\",\"6\"]}", NULL, "completed",
     "needs all 8 GPUs, and gets a reservation"},
    {7, "small", "{\"gpus\":1,\"estimate_s\":4,\"command\":[\"sleep\",\"2\"]}", NULL, "completed",
     "short enough to run before the big one can"},
    {8, "broken", "{\"script\":\"echo no such data >&2; exit 3\\n\"}", NULL, "failed",
     "no GPU; it will fail"},
    {8, "report", "{\"command\":[\"true\"]}", "afternotok:broken", "completed",
     "runs only if the last one fails"},
    {8, "never", "{\"command\":[\"true\"]}", "afterok:broken", "dependency_failed",
     "runs only if it does not"},
    {26, "urgent",
     "{\"gpus\":6,\"tier\":\"critical\",\"estimate_s\":6,\"command\":[\"sleep\",\"4\"]}", NULL,
     "completed", "critical: it may take the GPUs of the overnight job"},
    {.name = NULL},
};

int stk_demo_find(const char *name)
{
    for (int i = 0; stk_demo_day[i].name; i++)
        if (strcmp(stk_demo_day[i].name, name) == 0)
            return i;
    return -1;
}

const json_t *stk_demo_job(const struct stk_demo *d, uint32_t number)
{
    char key[16];

    (void)snprintf(key, sizeof(key), "%u", number);
    return json_object_get(d->jobs, key);
}

static const json_t *named(const struct stk_demo *d, const char *name)
{
    return stk_demo_job(d, d->first[stk_demo_find(name)]);
}

static int say(bool ok, const char *what)
{
    (void)printf("  %s %s\n", ok ? "ok  " : "NOT ", what);
    return !ok;
}

static bool ended_as_expected(const struct stk_demo *d)
{
    bool all = true;

    for (int i = 0; stk_demo_day[i].name; i++)
        for (uint32_t k = 0; k < d->count[i] || (k == 0 && d->count[i] == 0); k++) {
            const json_t *job = d->count[i] > 0 ? stk_demo_job(d, d->first[i] + k) : NULL;
            const char *state = job ? stk_view_state(job) : "not submitted";

            if (strcmp(state, stk_demo_day[i].expect) != 0) {
                (void)printf("       %s: %s, should be %s\n", stk_demo_day[i].name, state,
                             stk_demo_day[i].expect);
                all = false;
            }
        }
    return all;
}

/* The most elements of the array that ran at the same time. */
static int most_at_once(const struct stk_demo *d, int array)
{
    int most = 0;

    for (uint32_t i = 0; i < d->count[array]; i++) {
        double at = stk_num(stk_demo_job(d, d->first[array] + i), "started", 0);
        int n = 0;

        for (uint32_t k = 0; k < d->count[array]; k++) {
            const json_t *job = stk_demo_job(d, d->first[array] + k);

            n += stk_num(job, "started", 0) <= at && stk_num(job, "ended", 0) > at;
        }
        most = n > most ? n : most;
    }
    return most;
}

/* Every step once and in order: it went on where it was, and did not begin again. */
static bool steps_are_whole(const struct stk_demo *d)
{
    char path[4096], line[64];
    int step = 0, n = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/overnight.out", d->folder);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "step %d", &n) == 1) { // NOLINT(cert-err34-c): small numbers of our own
            if (n != step + 1)
                break;
            step = n;
        }
    if (f)
        (void)fclose(f);
    return step == OVERNIGHT_STEPS;
}

static bool gang_is_whole(const struct stk_demo *d)
{
    bool all = true;

    for (int rank = 0; rank < 4; rank++) {
        char path[4096], line[64] = "", want[64];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/train-%d.out", d->folder, rank);
        (void)snprintf(want, sizeof(want), "rank %d of 4\n", rank);
        f = fopen(path, "re");
        all = all && f && fgets(line, sizeof(line), f) && strcmp(line, want) == 0;
        if (f)
            (void)fclose(f);
    }
    return all;
}

int stk_demo_check(const struct stk_demo *d)
{
    const json_t *prepare = named(d, "prepare"), *train = named(d, "train");
    const json_t *big = named(d, "big"), *small = named(d, "small");
    const json_t *overnight = named(d, "overnight"), *urgent = named(d, "urgent");
    int bad = say(ended_as_expected(d), "every job ended as it should");

    bad += say(!d->overlap, "no GPU was given to two jobs");
    bad += say(gang_is_whole(d), "the gang ran as 4 ranks");
    bad += say(stk_num(train, "started", 0) >= stk_num(prepare, "ended", 1e12),
               "the training began after its data was there");
    bad += say(most_at_once(d, stk_demo_find("sweep")) <= 3, "never more than 3 of the array ran");
    bad += say(stk_num(small, "started", 1e12) < stk_num(big, "started", 0),
               "the small job ran while the big one waited");
    bad += say(stk_int(overnight, "preemptions", 0) > 0, "the overnight job gave way");
    bad += say(steps_are_whole(d), "and went on where it was: every step once");
    bad += say(stk_num(urgent, "ended", 1e12) < stk_num(overnight, "ended", 0),
               "the urgent job did not wait for it");
    return bad;
}
