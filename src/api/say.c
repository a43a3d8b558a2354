/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - numbers in, one sentence out. Nothing here decides anything; where the reason does not
 * know a number the sentence does without. */
#include "api/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "model/mig.h"
#include "model/queue.h"
#include "spec/ending.h"

#define MINUTE (60 * STK_SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

void stk_say_span(stk_time span, char *buf, size_t size)
{
    if (span < 2 * MINUTE)
        (void)snprintf(buf, size, "%" PRId64 " s", span / STK_SECOND);
    else if (span < 2 * HOUR)
        (void)snprintf(buf, size, "%" PRId64 " min", span / MINUTE);
    else if (span < 2 * DAY)
        (void)snprintf(buf, size, "%" PRId64 " h %" PRId64 " min", span / HOUR,
                       span % HOUR / MINUTE);
    else
        (void)snprintf(buf, size, "%" PRId64 " days", span / DAY);
}

static void say_when(stk_time at, stk_time now, char *buf, size_t size)
{
    time_t t = (time_t)(at / STK_SECOND), n = (time_t)(now / STK_SECOND);
    struct tm a, b;
    char clock[40] = "?", span[40];

    if (localtime_r(&t, &a) && localtime_r(&n, &b))
        (void)strftime(clock, sizeof(clock),
                       a.tm_yday == b.tm_yday && a.tm_year == b.tm_year ? "%H:%M" : "%F %H:%M", &a);
    if (at <= now) {
        (void)snprintf(buf, size, "any moment now");
        return;
    }
    stk_say_span(at - now, span, sizeof(span));
    (void)snprintf(buf, size, "at %s (in %s)", clock, span);
}

void stk_say_when(const struct stk_say *s, stk_time at, char *buf, size_t size)
{
    say_when(at - s->ahead, s->now - s->ahead, buf, size);
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* What is known of when it gets better; begins with "; " or is empty. */
static void say_outlook(const struct stk_say *s, char *buf, size_t size)
{
    char when[80];

    buf[0] = '\0';
    if (s->room_at > 0) {
        stk_say_when(s, s->room_at, when, sizeof(when));
        (void)snprintf(buf, size, "; enough are expected to be free %s", when);
    } else if (s->first_out && s->first_out_at > 0) {
        stk_say_when(s, s->first_out_at, when, sizeof(when));
        (void)snprintf(buf, size, "; job %s is expected to end first, %s", s->first_out, when);
    }
}

/* What part of a GPU it lacks; 'rest': GPUs that are not to be used, and the outlook. */
static void say_part(const struct stk_say *s, const char *rest[2], char *buf, size_t size)
{
    const struct stk_demand *d = s->demand;
    char profile[STK_MIG_NAME_LEN];

    if (d->mig)
        (void)snprintf(buf, size, "needs a MIG instance %s, and none is free%s%s",
                       stk_mig_name(d->mig, profile), rest[0], rest[1]);
    else
        (void)snprintf(buf, size,
                       "needs %.4g of a GPU (share %s), and no GPU that it can use has that "
                       "left%s%s",
                       d->gpu_milli / 1000.0, stk_share_name((enum stk_share)d->share), rest[0],
                       rest[1]);
}

/* "on one node", "in one rack" */
static const char *one_place(enum stk_level level, char buf[32])
{
    if (level == STK_AT_NODE)
        return "on one node";
    (void)snprintf(buf, 32, "in one %s", stk_level_name(level));
    return buf;
}

static void say_near(const struct stk_say *s, char *buf, size_t size)
{
    const struct stk_reason *w = &s->why;
    char outlook[160], place[32], times[120] = "";

    say_outlook(s, outlook, sizeof(outlook));
    if (w->limit > 0)
        (void)snprintf(times, sizeof(times),
                       ": needs %" PRIu64 " times %" PRIu64
                       " on one node, and there is room for %" PRIu64,
                       w->limit, w->need / w->limit, w->used);
    if (w->level)
        (void)snprintf(buf, size,
                       "finds enough GPUs free, but not as near as it asks: at most %" PRIu64
                       " %s, and %" PRIu64 " are needed there%s",
                       w->have, one_place(w->level, place), w->need, outlook);
    else
        (void)snprintf(buf, size,
                       "finds enough GPUs free, but not so that its tasks lie as they must%s%s",
                       times, outlook);
}

/* "3.5 GiB", of what is there at most; in MiB where one digit of a GiB would say too little. */
static void put_mem(uint64_t mib, bool exact, char *buf, size_t size)
{
    const uint64_t tenths = mib * 10 / 1024;

    if (mib % 1024 == 0)
        (void)snprintf(buf, size, "%" PRIu64 " GiB", mib / 1024);
    else if (exact || tenths == 0)
        (void)snprintf(buf, size, "%" PRIu64 " MiB", mib);
    else
        (void)snprintf(buf, size, "%" PRIu64 ".%" PRIu64 " GiB", tenths / 10, tenths % 10);
}

/* Two amounts that are compared: exact where they would look the same. */
static void put_mems(const uint64_t mib[2], char buf[2][32])
{
    for (int exact = 0; exact < 2; exact++) {
        for (int i = 0; i < 2; i++)
            put_mem(mib[i], exact, buf[i], sizeof(buf[i]));
        if (mib[0] == mib[1] || strcmp(buf[0], buf[1]) != 0)
            return;
    }
}

/* "is over the limit of vision: uses 8 of 8 GPUs" */
static void say_tenant(const struct stk_reason *w, char *buf, size_t size)
{
    const char *what = w->unit == STK_UNIT_CPUS ? "CPUs"
                       : w->gpu_type            ? "GPUs of one type"
                                                : "GPUs";
    char mem[2][32];

    if (w->unit == STK_UNIT_MEM) {
        put_mems((const uint64_t[]){w->used, w->limit}, mem);
        (void)snprintf(buf, size, "is over the limit of %.60s: uses %s of %s of memory", w->tenant,
                       mem[0], mem[1]);
        return;
    }
    (void)snprintf(buf, size, "is over the limit of %.60s: uses %g of %g %s", w->tenant,
                   (double)w->used / 1000, (double)w->limit / 1000, what);
}

/* "is over a limit of queue express: its user has 2 of 2 GPUs there, and it needs 1" */
static void say_limit(const struct stk_say *s, char *buf, size_t size)
{
    static const char *const whose[STK_QUEUE_OF_MAX] = {
        [STK_OF_USER] = "its user", [STK_OF_TENANT] = "its tenant", [STK_OF_QUEUE] = "everybody"};
    const struct stk_reason *w = &s->why;
    char who[80];

    if (w->code == STK_WHY_LIMIT) {
        say_tenant(w, buf, size);
        return;
    }
    (void)snprintf(who, sizeof(who), "%s%.60s", w->tenant ? "tenant " : whose[w->of],
                   w->tenant ? w->tenant : "");
    if (w->unit == STK_UNIT_JOBS)
        (void)snprintf(buf, size,
                       "is over a limit of queue %.63s: %s has %" PRIu64 " of %" PRIu64
                       " jobs running there",
                       w->queue, who, w->used, w->limit);
    else
        (void)snprintf(
            buf, size,
            "is over a limit of queue %.63s: %s has %g of %g GPUs there, and it needs %g", w->queue,
            who, (double)w->used / 1000, (double)w->limit / 1000, (double)w->need / 1000);
}

/* Whether it lacks part of a GPU, and nothing else. */
static bool lacks_part(const struct stk_say *s)
{
    return s->demand && s->demand->gpu_milli &&
           (s->why.code == STK_WHY_GPUS || s->why.code == STK_WHY_FRAGMENTS);
}

/* Whole GPUs are free, but not together: on no node enough for a piece, or on too few. */
static void say_fragments(const struct stk_say *s, const char *outlook, char *buf, size_t size)
{
    const char *found = "finds enough GPUs free, but not together";
    const struct stk_reason *w = &s->why;

    if (w->missing > 0)
        (void)snprintf(buf, size,
                       "%s: at most %" PRIu64 " on one node, and %" PRIu64 " %s needed there%s",
                       found, w->have, w->have + w->missing,
                       w->have + w->missing == 1 ? "is" : "are", outlook);
    else if (w->limit > 0 && s->demand && s->demand->cut)
        (void)snprintf(buf, size,
                       "%s: needs %" PRIu64 ", %" PRIu64 " on each of %" PRIu64
                       " nodes, and %" PRIu64 " node%s so many free%s",
                       found, w->need, w->have, w->limit, w->used, w->used == 1 ? " has" : "s have",
                       outlook);
    else if (w->limit > 0)
        (void)snprintf(buf, size,
                       "%s: needs %" PRIu64 " for %" PRIu64 " tasks, and there is room for %" PRIu64
                       " task%s; at most %" PRIu64 " %s free on one node%s",
                       found, w->need, w->limit, w->used, plural(w->used), w->have,
                       w->have == 1 ? "is" : "are", outlook);
    else
        (void)snprintf(buf, size, "%s: needs %" PRIu64 ", and at most %" PRIu64 " %s on one node%s",
                       found, w->need, w->have, w->have == 1 ? "is" : "are", outlook);
}

/* "the 2 nodes it may use are drained", "1 of these nodes is drained or down" */
static void say_shut(const struct stk_reason *w, char *buf, size_t size)
{
    const uint32_t shut = w->drained + w->down;
    const char *how = w->down == 0 ? "drained" : w->drained == 0 ? "down" : "drained or down";

    if (shut == w->nodes)
        (void)snprintf(buf, size, "the %u node%s it may use %s %s", w->nodes, plural(w->nodes),
                       w->nodes == 1 ? "is" : "are", how);
    else
        (void)snprintf(buf, size, "%u of these nodes %s %s", shut, shut == 1 ? "is" : "are", how);
}

/* Whole GPUs are short: everywhere, or on the nodes that it may use. */
static void say_gpus(const struct stk_reason *w, const char *off, const char *outlook, char *buf,
                     size_t size)
{
    const uint32_t shut = w->drained + w->down;
    char which[80];

    say_shut(w, which, sizeof(which));
    if (w->code == STK_WHY_GPUS)
        (void)snprintf(buf, size, "needs %" PRIu64 " GPU%s and %" PRIu64 " %s free%s%s", w->need,
                       plural(w->need), w->have, w->have == 1 ? "is" : "are", off, outlook);
    else if (shut > 0 && shut == w->nodes)
        (void)snprintf(buf, size, "needs %" PRIu64 " GPU%s, and %s", w->need, plural(w->need),
                       which);
    else
        (void)snprintf(buf, size,
                       "needs %" PRIu64 " GPU%s, and on the %u node%s it may use %" PRIu64
                       " %s free%s%s%s",
                       w->need, plural(w->need), w->nodes, plural(w->nodes), w->have,
                       w->have == 1 ? "is" : "are", shut ? "; " : "", shut ? which : "", outlook);
}

/* "needs 2 CPUs on one node and at most 1 is free there". 'amount' and 'text': what is needed, and
 * what is free. */
static void say_lack(const struct stk_say *s, const uint64_t amount[2], char text[2][96], char *buf,
                     size_t size)
{
    const char *is = strcmp(text[1], "1") == 0 ? "is" : "are";
    char outlook[160], place[32];

    say_outlook(s, outlook, sizeof(outlook));
    if (s->why.level)
        (void)snprintf(buf, size, "needs %s %s and %s%s %s free there%s", text[0],
                       one_place(s->why.level, place), amount[1] > 0 ? "at most " : "", text[1], is,
                       outlook);
    else
        (void)snprintf(buf, size, "needs %s and %s %s free%s%s", text[0], text[1], is,
                       amount[1] >= amount[0] ? ", but not together" : "", outlook);
}

/* CPUs, memory or a named resource are short where GPUs are free. */
static void say_besides(const struct stk_say *s, const char *outlook, char *buf, size_t size)
{
    const struct stk_reason *w = &s->why;
    const uint64_t cpus_mem[2] = {w->limit, w->used}, resource[2] = {w->need, w->have};
    char text[2][96], mem[2][32];

    if (w->code == STK_WHY_RESOURCE) {
        (void)snprintf(text[0], sizeof(text[0]), "%" PRIu64 " of %.60s", w->need,
                       s->resource ? s->resource : "a resource");
        (void)snprintf(text[1], sizeof(text[1]), "%" PRIu64, w->have);
        say_lack(s, resource, text, buf, size);
    } else if (w->unit == STK_UNIT_CPUS) {
        (void)snprintf(text[0], sizeof(text[0]), "%.6g CPU%s%s", (double)w->limit / 1000,
                       w->limit == 1000 ? "" : "s", s->cpus_default ? " (default)" : "");
        (void)snprintf(text[1], sizeof(text[1]), "%.6g", (double)w->used / 1000);
        say_lack(s, cpus_mem, text, buf, size);
    } else if (w->unit == STK_UNIT_MEM) {
        put_mems(cpus_mem, mem);
        (void)snprintf(text[0], sizeof(text[0]), "%s of memory", mem[0]);
        (void)snprintf(text[1], sizeof(text[1]), "%s", mem[1]);
        say_lack(s, cpus_mem, text, buf, size);
    } else {
        (void)snprintf(buf, size, "finds GPUs free, but not enough CPUs or memory on their nodes%s",
                       outlook);
    }
}

static void say_room(const struct stk_say *s, char *buf, size_t size)
{
    const struct stk_reason *w = &s->why;
    char outlook[160], which[80], off[320] = "";

    say_outlook(s, outlook, sizeof(outlook));
    say_shut(w, which, sizeof(which));
    if (w->off > 0)
        (void)snprintf(off, sizeof(off), ", %" PRIu64 " %s not to be used%s%s%s", w->off,
                       w->off == 1 ? "is" : "are", s->off ? " (" : "", s->off ? s->off : "",
                       s->off ? ")" : "");
    if (lacks_part(s))
        say_part(s, (const char *[]){off, outlook}, buf, size);
    else if (w->code == STK_WHY_GPUS || w->code == STK_WHY_NODES)
        say_gpus(w, off, outlook, buf, size);
    else if (w->code == STK_WHY_FRAGMENTS)
        say_fragments(s, outlook, buf, size);
    else if (w->code == STK_WHY_CLOSED)
        (void)snprintf(buf, size, "finds no machine that takes new jobs: %s",
                       s->demand && s->demand->nodes ? which : "all are drained or down");
    else
        say_besides(s, outlook, buf, size);
}

/* It would fit, but it is not its turn. */
static void say_turn(const struct stk_say *s, char *buf, size_t size)
{
    const struct stk_reason *w = &s->why;
    char when[80] = "", number[16];
    const char *other = s->other ? s->other : number;

    (void)snprintf(number, sizeof(number), "%u", w->other);
    if (w->until > 0)
        stk_say_when(s, w->until, when, sizeof(when));
    switch ((int)w->code) {
    case STK_WHY_CLAIMED:
        (void)snprintf(buf, size, "waits: GPUs are being cleared for job %s, which comes first",
                       other);
        break;
    case STK_WHY_BEHIND:
        (void)snprintf(buf, size,
                       "%sjob %s is first in line and cannot start yet; the queue is strict",
                       s->besides ? "must wait: " : "would fit, but ", other);
        break;
    case STK_WHY_RESERVED:
        (void)snprintf(buf, size, "%swould delay job %s%s%s", s->besides ? "" : "would fit, but ",
                       other, *when ? ", which is promised to start " : "", when);
        break;
    case STK_WHY_PINNED:
        if (w->other == 0)
            (void)snprintf(buf, size,
                           "sleeps, and must wake on its own GPUs, which are not to be used");
        else
            (void)snprintf(buf, size, "sleeps, and must wake on its own GPUs, which job %s has%s%s",
                           other, *when ? " and is expected to give back " : "", when);
        break;
    case STK_WHY_ROUND:
        (void)snprintf(buf, size, "%sthe scheduler decides again %s",
                       s->besides ? "must wait: " : "would fit; ", when);
        break;
    default:
        (void)snprintf(buf, size, "waits: jobs ranked before it use the GPUs");
    }
}

const char *stk_say_code(const struct stk_say *s)
{
    return s->at_once > 0 ? "array_limit" : stk_reason_name(s->why.code);
}

static void say_held(const struct stk_say *s, char *buf, size_t size)
{
    char when[80];

    if (s->next) {
        say_when(s->next, s->now - s->ahead, when, sizeof(when));
        (void)snprintf(buf, size, "is a schedule: it submits its next job %s", when);
    } else {
        (void)snprintf(buf, size,
                       s->asleep && s->lent
                           ? "is suspended, because its GPUs did nothing and others need them; it "
                             "resumes by itself when they are free again"
                       : s->asleep ? "is suspended and sleeps until somebody resumes it"
                                   : "is on hold until somebody releases it");
    }
}

static void say_booked(const struct stk_say *s, char *buf, size_t size)
{
    char when[80];

    stk_say_when(s, s->why.until, when, sizeof(when));
    if (s->why.other)
        (void)snprintf(buf, size,
                       "would use GPUs that are being kept free for job %u; that is given up %s",
                       s->why.other, when);
    else if (s->booking)
        (void)snprintf(buf, size, "would use GPUs that are reserved: %.60s, over %s", s->booking,
                       when);
    else
        (void)snprintf(buf, size, "would use GPUs that are reserved: reservation %u, over %s",
                       s->why.booking, when);
}

static void say_drains(const struct stk_say *s, char *buf, size_t size)
{
    char when[80];

    stk_say_when(s, s->why.until, when, sizeof(when));
    (void)snprintf(buf, size, "GPUs are being kept free for it: %" PRIu64 " of %" PRIu64 ", %s%s",
                   s->why.have, s->why.need, s->why.until ? "all expected " : "",
                   s->why.until ? when : "the rest when jobs there end");
}

static void say_dependency(const struct stk_say *s, char *buf, size_t size)
{
    const uint64_t n = s->why.missing;

    if (s->at_once > 0)
        (void)snprintf(buf, size, "is kept back: its array runs %u at a time", s->at_once);
    else
        (void)snprintf(buf, size, "waits for %" PRIu64 " job%s or array%s that it depends on", n,
                       plural(n), plural(n));
}

static void say_begin(const struct stk_say *s, char *buf, size_t size)
{
    char when[80];

    stk_say_when(s, s->why.until, when, sizeof(when));
    (void)snprintf(buf, size, "may begin %s, not before", when);
}

void stk_say_why(const struct stk_say *s, char *buf, size_t size)
{
    const struct stk_reason *w = &s->why;

    switch (w->code) {
    case STK_WHY_RUNNING:
        (void)snprintf(buf, size, "%s", s->turn ? s->turn : "is running, or about to");
        break;
    case STK_WHY_ENDED:
        (void)snprintf(buf, size, "has ended");
        break;
    case STK_WHY_NEVER:
        (void)snprintf(buf, size, "can never run here: no machine has what it asks for");
        break;
    case STK_WHY_HELD:
        say_held(s, buf, size);
        break;
    case STK_WHY_DEPENDENCY:
        say_dependency(s, buf, size);
        break;
    case STK_WHY_BEGIN:
        say_begin(s, buf, size);
        break;
    case STK_WHY_STOPPING:
        (void)snprintf(buf, size, "is being stopped");
        break;
    case STK_WHY_GPUS:
    case STK_WHY_FRAGMENTS:
    case STK_WHY_CPU_MEM:
    case STK_WHY_NODES:
    case STK_WHY_CLOSED:
    case STK_WHY_RESOURCE:
        say_room(s, buf, size);
        break;
    case STK_WHY_TOPOLOGY:
        say_near(s, buf, size);
        break;
    case STK_WHY_POWER:
        (void)snprintf(buf, size, "waits for the power cap: needs %.1f kW, %.1f kW left",
                       (double)w->need / 1000, (double)w->have / 1000);
        break;
    case STK_WHY_LIMIT:
    case STK_WHY_QUEUE:
        say_limit(s, buf, size);
        break;
    case STK_WHY_BOOKED:
        say_booked(s, buf, size);
        break;
    case STK_WHY_DRAINS:
        say_drains(s, buf, size);
        break;
    case STK_WHY_CLAIMED:
    case STK_WHY_BEHIND:
    case STK_WHY_RESERVED:
    case STK_WHY_ROUND:
    case STK_WHY_RANK:
    case STK_WHY_PINNED:
    case STK_WHY_MAX:
        say_turn(s, buf, size);
        break;
    }
}

void stk_say_change(const struct stk_say *s, char *buf, size_t size)
{
    buf[0] = '\0';
    if (s->why.code == STK_WHY_HELD && s->next == 0)
        (void)snprintf(buf, size,
                       s->lent     ? "resume it now: stoker resume %u"
                       : s->asleep ? "resume it: stoker resume %u"
                                   : "release it: stoker release %u",
                       s->number);
}

void stk_say_ended(const struct stk_record *rec, char *buf, size_t size)
{
    static const struct { /* notes that begin with what the cause says */
        enum stk_cause cause;
        const char *note, *instead;
    } same[] = {
        {STK_CAUSE_NOT_STARTED, "not started: ", "could not be started: "},
        {STK_CAUSE_TIMEOUT, "over its time limit", "was over its time limit"},
        {STK_CAUSE_OOM, "out of memory: ", "ran out of memory: "},
        {STK_CAUSE_DEPENDENCY, "job ", "did not run: job "},
    };
    bool plain = rec->cause == STK_CAUSE_OK || rec->cause == STK_CAUSE_SIGNAL ||
                 (rec->cause == STK_CAUSE_FAILED && rec->kind != STK_KIND_BATCH) || !rec->note ||
                 !*rec->note;
    char sentence[80];

    stk_end_words(rec->cause, rec->code, sentence, sizeof(sentence));
    (void)snprintf(buf, size, "%s%s%s", sentence, plain ? "" : ": ", plain ? "" : rec->note);
    for (size_t i = 0; !plain && i < sizeof(same) / sizeof(*same); i++)
        if (rec->cause == same[i].cause &&
            strncmp(rec->note, same[i].note, strlen(same[i].note)) == 0)
            (void)snprintf(buf, size, "%s%s", same[i].instead, rec->note + strlen(same[i].note));
}
