/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - jobs that share a GPU in turns: at most one of them runs, the others sleep or have not
 * been started.
 *
 * For the core all of them run; who does is decided here, and by what is seen alone: every look
 * finds the one that is awake and those that want to be. When none is awake the one that has waited
 * longest is started or woken. When one is, others want the GPU, and its turn is over, it is put to
 * sleep as for any suspend (suspend.c). So nothing need be remembered over a restart of the daemon:
 * the supervisors say who sleeps.
 *
 * A turn lasts the configured time, more or less of it for those who have more or less of the GPU
 * than the others, and longer where switching takes long: at most so many percent of the time may
 * go into it. A job that nobody waits behind is left alone. One that cannot be
 * suspended keeps its turn; that is tried again, later each time.
 *
 * A look is always made from the loop, never from inside of what has changed.
 * docs/spec/local-engine.md, "Taking turns". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/local/inner.h"

#define DEFAULT_QUANTUM_MS 30000
#define DEFAULT_SWITCH_PCT 10
#define LOOK_MS 1000   /* at most so late a change is seen of which nobody has told */
#define MAX_DOUBLING 6 /* of a turn that goes on because its job cannot be suspended */

struct ring {                    /* of one GPU */
    struct stk_local_job *awake; /* whose turn it is */
    struct stk_local_job *next;  /* has waited longest of those that want a turn */
    uint32_t waiting, n;         /* those; with the one that is awake */
    int64_t milli;               /* of the GPU that these n have */
    int64_t sleep_ms, wake_ms;   /* the longest that were measured */
    bool unknown;                /* some job's supervisor has not said yet where it stands */
};

static int64_t now_ms(const struct stk_local *m)
{
    return (int64_t)uv_now(m->cfg.loop);
}

static void tell(const struct stk_local_job *j, const char *sentence, bool trouble)
{
    if (j->m->cfg.turned && !j->stray)
        j->m->cfg.turned(j->m->cfg.ctx, j->number, sentence, trouble);
}

static bool is_awake(const struct stk_local_job *j)
{
    switch (j->where) {
    case STK_W_WAITING:
    case STK_W_ENDED:
        return false;
    case STK_W_ASLEEP:
        return j->again_at != 0; /* it has its turn, and the GPU has no room yet */
    case STK_W_ORPHANED:
        return !j->run.asleep;
    default:
        return true;
    }
}

static bool wants(const struct stk_local_job *j)
{
    return !is_awake(j) && j->where != STK_W_ENDED && !j->asleep_wanted && !j->stopping &&
           (j->where != STK_W_WAITING || j->m->strays == 0);
}

static bool sits_on(const struct stk_local_job *j, uint64_t mask)
{
    return j->seat && !j->stray && (j->mask & mask) && j->where != STK_W_ENDED;
}

static bool before(const struct stk_local_job *a, const struct stk_local_job *b)
{
    if (a->wait_since != b->wait_since)
        return a->wait_since < b->wait_since;
    return a->number < b->number;
}

static struct ring ring_of(const struct stk_local *m, uint64_t mask)
{
    struct ring r = {0};

    for (struct stk_local_job *j = m->jobs; j; j = j->next) {
        if (!sits_on(j, mask))
            continue;
        r.unknown = r.unknown || j->adopted;
        if (is_awake(j) && (!r.awake || before(j, r.awake)))
            r.awake = j;
        if (wants(j) || is_awake(j)) {
            r.n++;
            r.milli += j->milli;
        }
        if (wants(j)) {
            r.waiting++;
            r.next = r.next && before(r.next, j) ? r.next : j;
        }
        r.sleep_ms = j->sleep_ms > r.sleep_ms ? j->sleep_ms : r.sleep_ms;
        r.wake_ms = j->wake_ms > r.wake_ms ? j->wake_ms : r.wake_ms;
    }
    return r;
}

/* How long the one that is awake may go on, from when its turn began. */
static int64_t length(const struct stk_local *m, const struct ring *r)
{
    int64_t q = m->cfg.quantum_ms ? m->cfg.quantum_ms : DEFAULT_QUANTUM_MS;
    int64_t pct = m->cfg.switch_pct ? m->cfg.switch_pct : DEFAULT_SWITCH_PCT;
    int64_t least = (r->sleep_ms + r->wake_ms) * (100 - pct) / pct;

    if (r->milli > 0) /* who has more of the GPU than others has it for longer */
        q = q * r->awake->milli * r->n / r->milli;
    q = q > least ? q : least;
    return q << (r->awake->refused < MAX_DOUBLING ? r->awake->refused : MAX_DOUBLING);
}

static void yield_turn(struct stk_local_job *j)
{
    j->yielding = true;
    j->switch_from = now_ms(j->m);
    stk_local_suspend(j);
}

/* Its supervisor was killed while it slept: what was saved of its GPU cannot be put back. */
static void end_orphan(struct stk_local_job *j)
{
    j->final_cause = STK_CAUSE_EVICTED;
    j->run.asleep = false; /* from here on it is in the way */
    stk_local_orphan_stop(j);
}

static void give_turn(struct stk_local_job *j)
{
    j->switch_from = j->turn_from = now_ms(j->m);
    j->timing = j->where == STK_W_ASLEEP;
    j->turns++;
    j->m->n_turns++;
    if (j->where == STK_W_WAITING)
        stk_local_spawn(j);
    else if (j->where == STK_W_ORPHANED && j->real_gpus)
        end_orphan(j);
    else
        stk_local_resume(j);
}

/* More than one is awake only when somebody has meddled, or a daemon came back to such a state. */
static void one_at_a_time(const struct stk_local *m, uint64_t mask, const struct ring *r)
{
    for (struct stk_local_job *j = m->jobs; j; j = j->next)
        if (sits_on(j, mask) && j != r->awake && j->where == STK_W_RUNNING && !j->stopping)
            yield_turn(j);
}

static int64_t look_at(struct stk_local *m, uint64_t mask)
{
    struct ring r = ring_of(m, mask);
    int64_t end;

    if (r.unknown || (!r.awake && !r.next))
        return LOOK_MS;
    if (!r.awake) {
        give_turn(r.next);
        return LOOK_MS;
    }
    one_at_a_time(m, mask, &r);
    if (r.waiting == 0)
        return LOOK_MS;
    end = r.awake->turn_from + length(m, &r);
    if (now_ms(m) < end)
        return end - now_ms(m) < LOOK_MS ? end - now_ms(m) : LOOK_MS;
    if (r.awake->where == STK_W_RUNNING && !r.awake->stopping) {
        yield_turn(r.awake);
    } else if (r.awake->where == STK_W_ASLEEP) { /* no room for it: perhaps there is for the next */
        r.awake->again_at = 0;
        r.awake->wait_since = stk_local_now(m);
        return 1;
    }
    return LOOK_MS;
}

static void look(uv_timer_t *t)
{
    struct stk_local *m = t->data;
    uint64_t taken = 0;
    int64_t soonest = LOOK_MS;

    if (!m)
        return;
    for (const struct stk_local_job *j = m->jobs; j; j = j->next)
        taken |= sits_on(j, UINT64_MAX) ? j->mask : 0;
    for (uint64_t left = taken; left; left &= left - 1) {
        int64_t at = look_at(m, left & -left);

        soonest = at < soonest ? at : soonest;
    }
    if (taken)
        (void)uv_timer_start(t, look, (uint64_t)soonest, 0);
}

void stk_local_turns_soon(struct stk_local *m)
{
    if (!m->turns) {
        m->turns = calloc(1, sizeof(*m->turns));
        if (!m->turns)
            return;
        (void)uv_timer_init(m->cfg.loop, m->turns);
        m->turns->data = m;
    }
    (void)uv_timer_start(m->turns, look, 0, 0);
}

void stk_local_turn_changed(struct stk_local_job *j)
{
    if (j->seat)
        stk_local_turns_soon(j->m);
}

void stk_local_turn_waits(struct stk_local_job *j, stk_time since)
{
    j->asleep_wanted = false;
    j->again_at = 0;
    j->sentence[0] = 0;
    j->wait_since = since;
    stk_local_turns_soon(j->m);
}

void stk_local_turn_began(struct stk_local_job *j)
{
    if (!j->seat)
        return;
    j->turn_from = now_ms(j->m);
    if (j->timing) {
        j->wake_ms = j->turn_from - j->switch_from;
        j->m->switch_ms += (uint64_t)j->wake_ms;
    }
    j->timing = false;
    tell(j, "its turn has begun", false);
    stk_local_turns_soon(j->m);
}

void stk_local_turn_slept(struct stk_local_job *j)
{
    if (!j->seat)
        return;
    if (j->yielding) {
        j->sleep_ms = now_ms(j->m) - j->switch_from;
        j->m->switch_ms += (uint64_t)j->sleep_ms;
        j->refused = 0;
        tell(j, "its turn is over, it sleeps", false);
    }
    j->yielding = false;
    if (!j->again_at)
        j->wait_since = stk_local_now(j->m);
    stk_local_turn_changed(j);
}

bool stk_local_turn_kept(struct stk_local_job *j, const char *why)
{
    char text[256];
    bool news = strncmp(j->why_kept, why, sizeof(j->why_kept) - 1) != 0 || j->refused == 0;

    if (!j->yielding || j->stopping)
        return false;
    j->yielding = false;
    j->turn_from = now_ms(j->m);
    j->refused++;
    (void)snprintf(j->why_kept, sizeof(j->why_kept), "%s", why);
    (void)snprintf(text, sizeof(text), "cannot be suspended: %s; it keeps its turn, others wait",
                   why);
    tell(j, text, news);
    if (news)
        stk_local_note(j, "%s", text);
    stk_local_turn_changed(j);
    return true;
}

/* ---- what is told of it ---- */

static uint32_t place_in_line(const struct stk_local_job *me)
{
    uint32_t place = 1;

    for (const struct stk_local_job *j = me->m->jobs; j; j = j->next)
        place += j != me && sits_on(j, me->mask) && wants(j) && before(j, me);
    return place;
}

static const char *nth(uint32_t n)
{
    uint32_t tens = n % 100;

    if (tens >= 11 && tens <= 13)
        return "th";
    return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

void stk_local_turns_set(struct stk_engine *e, uint32_t quantum_ms, uint32_t switch_pct)
{
    struct stk_local *m = (struct stk_local *)e;

    m->cfg.quantum_ms = quantum_ms;
    m->cfg.switch_pct = switch_pct;
    stk_local_turns_soon(m);
}

static void say_awake(const struct stk_local_job *j, const struct ring *r,
                      struct stk_local_turn *ret)
{
    int64_t left = j->turn_from + length(j->m, r) - now_ms(j->m);

    ret->left_s = left > 0 ? (left + 999) / 1000 : 0;
    if (j->yielding)
        (void)snprintf(ret->text, sizeof(ret->text), "its turn is over, it is being suspended");
    else if (j->where == STK_W_THAWING || j->where == STK_W_RESTORING)
        (void)snprintf(ret->text, sizeof(ret->text), "has its turn, it is being resumed");
    else if (j->where == STK_W_ASLEEP)
        (void)snprintf(ret->text, sizeof(ret->text), "has its turn, but its GPU has no room yet");
    else if (j->where == STK_W_ORPHANED)
        (void)snprintf(ret->text, sizeof(ret->text), "keeps its turn, its supervisor was killed");
    else if (r->waiting == 0)
        (void)snprintf(ret->text, sizeof(ret->text), "has its turn, nobody waits for the next");
    else if (j->refused)
        (void)snprintf(ret->text, sizeof(ret->text), "keeps its turn, it cannot be suspended: %s",
                       j->why_kept);
    else
        (void)snprintf(ret->text, sizeof(ret->text), "has its turn, %lld s left",
                       (long long)ret->left_s);
}

bool stk_local_turn(struct stk_engine *e, stk_job_number number, struct stk_local_turn *ret)
{
    struct stk_local_job *j = stk_local_find((struct stk_local *)e, number);
    struct ring r;

    *ret = (struct stk_local_turn){.left_s = -1};
    if (!j || !sits_on(j, UINT64_MAX) || j->asleep_wanted)
        return false;
    r = ring_of(j->m, j->mask);
    ret->has = is_awake(j);
    ret->turns = j->turns;
    ret->sleep_ms = j->sleep_ms;
    ret->wake_ms = j->wake_ms;
    if (ret->has) {
        r.awake = j;
        say_awake(j, &r, ret);
        return true;
    }
    ret->place = place_in_line(j);
    (void)snprintf(ret->text, sizeof(ret->text), "%s its turn, %u%s%s",
                   j->where == STK_W_WAITING ? "is started in" : "sleeps until", ret->place,
                   nth(ret->place),
                   r.awake && r.awake->refused ? "; the one that has it cannot be suspended" : "");
    return true;
}

void stk_local_turns_total(struct stk_engine *e, uint64_t *ret_turns, double *ret_switch_s)
{
    const struct stk_local *m = (const struct stk_local *)e;

    *ret_turns = m->n_turns;
    *ret_switch_s = (double)m->switch_ms / 1000;
}

static void freed(uv_handle_t *h)
{
    free(h);
}

void stk_local_turns_close(struct stk_local *m)
{
    if (!m->turns)
        return;
    m->turns->data = NULL;
    uv_close((uv_handle_t *)m->turns, freed);
    m->turns = NULL;
}
