/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/span.h"
#include "cli/ask.h"

static const char *const live_states[] = {"held",    "blocked",   "waiting",  "starting",
                                          "running", "suspended", "stopping", NULL};

static bool is_live(const char *state)
{
    for (size_t i = 0; live_states[i]; i++)
        if (strcmp(state, live_states[i]) == 0)
            return true;
    return false;
}

const char *stk_view_state(const json_t *job)
{
    const char *state = stk_str(job, "state"), *cause = stk_str(job, "cause");

    return strcmp(state, "done") == 0 && *cause != '\0' ? cause : state;
}

bool stk_view_ended(const json_t *job)
{
    return !is_live(stk_str(job, "state"));
}

enum stk_colour stk_state_colour(const char *state)
{
    static const struct {
        const char *state;
        enum stk_colour colour;
    } colours[] = {
        {"running", STK_GREEN}, {"starting", STK_GREEN},  {"waiting", STK_YELLOW},
        {"held", STK_CYAN},     {"blocked", STK_CYAN},    {"suspended", STK_MAGENTA},
        {"stopping", STK_BLUE}, {"completed", STK_PLAIN}, {"cancelled", STK_DIM},
    };

    for (size_t i = 0; i < sizeof(colours) / sizeof(*colours); i++)
        if (strcmp(state, colours[i].state) == 0)
            return colours[i].colour;
    return STK_RED;
}

const char *stk_view_id(const json_t *job, char *buf, size_t size)
{
    int64_t array = stk_int(job, "array_id", 0), index = stk_int(job, "array_index", -1);

    if (array > 0 && index >= 0)
        (void)snprintf(buf, size, "%lld_%lld", (long long)array, (long long)index);
    else
        (void)snprintf(buf, size, "%lld", (long long)stk_int(job, "id", 0));
    return buf;
}

double stk_now(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double stk_view_seconds(const json_t *job, double now)
{
    double from = stk_num(job, "started", 0), to = stk_num(job, "ended", 0);

    if (from <= 0)
        from = stk_num(job, "submitted", 0);
    if (from <= 0)
        return -1;
    if (to <= 0)
        to = now;
    return to > from ? to - from : 0;
}

const char *stk_view_sentence(const json_t *job)
{
    const json_t *reason = json_object_get(job, "reason");
    const char *text = stk_str(job, "state_text");

    if (*text == '\0')
        text = stk_str(reason, "text");
    return *text != '\0' ? text : stk_str(reason, "sentence");
}

static size_t list_gpus(const json_t *list, char *buf, size_t size)
{
    size_t n = 0;
    json_int_t from = 0;

    for (size_t i = 0; i < json_array_size(list) && n + 24 < size; i++) {
        json_int_t v = json_integer_value(json_array_get(list, i));
        const json_t *next = json_array_get(list, i + 1);
        bool first = i == 0 || json_integer_value(json_array_get(list, i - 1)) + 1 != v;
        bool last = !next || json_integer_value(next) != v + 1;

        if (first) {
            from = v;
            n += (size_t)snprintf(buf + n, size - n, "%s%lld", i > 0 ? "," : "", (long long)v);
        }
        if (last && v > from)
            n += (size_t)snprintf(buf + n, size - n, "%c%lld", v > from + 1 ? '-' : ',',
                                  (long long)v);
    }
    return n;
}

const char *stk_view_items(const json_t *job, char *buf, size_t size)
{
    const json_t *items = json_object_get(job, "items");
    int64_t failed = stk_int(items, "failed", 0), given = stk_int(items, "given", 0);
    size_t n =
        (size_t)snprintf(buf, size, "%lld of %lld items done", (long long)stk_int(items, "done", 0),
                         (long long)stk_int(items, "total", 0));

    if (failed > 0)
        n += (size_t)snprintf(buf + n, size - n, ", %lld failed", (long long)failed);
    if (given > 0)
        (void)snprintf(buf + n, size - n, ", %lld under way", (long long)given);
    return buf;
}

const char *stk_view_gpus(const json_t *job, char *buf, size_t size)
{
    (void)snprintf(buf, size, "%.10g", stk_num(job, "gpus", 0));
    return buf;
}

/* "0.5 of gpu 3" */
static size_t view_gpus(const json_t *job, const json_t *gpus, char *buf, size_t size)
{
    const json_t *part = json_object_get(job, "part");
    const char *profile = stk_str(part, "mig");
    size_t n = 0;

    if (json_array_size(gpus) == 0)
        return 0;
    if (*profile != '\0')
        n = (size_t)snprintf(buf, size, " %.15s of", profile);
    else if (part)
        n = (size_t)snprintf(buf, size, " %.4g of", stk_num(part, "gpus", 0));
    n += (size_t)snprintf(buf + n, size - n, " gpu ");
    return n + list_gpus(gpus, buf + n, size - n);
}

#define VIEW_NODES 3 /* that are named; the others are counted */

/* "a gpu 0-7, b gpu 0-3" */
static size_t view_place(const json_t *job, const char *key, char *buf, size_t size)
{
    const json_t *pieces = json_object_get(job, key);
    size_t all = json_array_size(pieces), n = 0;
    char piece[512];

    for (size_t i = 0; i < all && i < VIEW_NODES && n < size; i++) {
        const json_t *p = json_array_get(pieces, i);
        size_t k = (size_t)snprintf(piece, sizeof(piece), "%.64s", stk_str(p, "node"));

        (void)view_gpus(job, json_object_get(p, "gpu_indices"), piece + k, sizeof(piece) - k);
        n += (size_t)snprintf(buf + n, size - n, "%s%s", i > 0 ? ", " : "", piece);
    }
    if (all > VIEW_NODES && n < size)
        n += (size_t)snprintf(buf + n, size - n, " and %zu more node%s", all - VIEW_NODES,
                              all == VIEW_NODES + 1 ? "" : "s");
    return n < size ? n : size - 1;
}

const char *stk_view_where(const json_t *job, char *buf, size_t size)
{
    const char *state = stk_str(job, "state"), *node = stk_str(job, "node");
    size_t n;

    if ((strcmp(state, "running") == 0 || strcmp(state, "starting") == 0) && *node != '\0') {
        n = view_place(job, "pieces", buf, size);
        if (json_object_get(job, "items")) {
            n += (size_t)snprintf(buf + n, size - n, ", ");
            (void)stk_view_items(job, buf + n, size - n);
        }
        n = strlen(buf);
        if (json_object_get(job, "turn"))
            n += (size_t)snprintf(buf + n, size - n, ", %.200s",
                                  stk_str(json_object_get(job, "turn"), "text"));
        if (*stk_str(job, "warning"))
            (void)snprintf(buf + n, size - n, "; %s", stk_str(job, "warning"));
        return buf;
    }
    (void)snprintf(buf, size, "%s", stk_view_sentence(job));
    if (stk_view_ended(job) && buf[0] == '\0' && stk_int(job, "signal", 0) > 0)
        (void)snprintf(buf, size, "signal %lld", (long long)stk_int(job, "signal", 0));
    else if (stk_view_ended(job) && buf[0] == '\0' && stk_int(job, "exit_code", -1) >= 0)
        (void)snprintf(buf, size, "exit code %lld", (long long)stk_int(job, "exit_code", 0));
    return buf;
}

int stk_view_code(const json_t *job)
{
    static const struct {
        const char *state;
        int code;
    } codes[] = {{"completed", 0},       {"cancelled", 143}, {"timeout", 143},
                 {"out_of_memory", 137}, {"killed", 137},    {"failed", 1}};
    int64_t code = stk_int(job, "exit_code", 0), sig = stk_int(job, "signal", 0);
    const char *state = stk_view_state(job);

    if (sig > 0)
        return 128 + (int)(sig & 127);
    if (code != 0)
        return (int)(code & 255) ? (int)(code & 255) : 1;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        if (strcmp(state, codes[i].state) == 0)
            return codes[i].code;
    return STK_EXIT_OURS;
}

const char *stk_text_duration(double seconds, char *buf, size_t size)
{
    return stk_span(seconds < 0 || seconds > 1e12 ? -1 : (int64_t)seconds, buf, size);
}

const char *stk_text_time(double unix_s, char *buf, size_t size)
{
    time_t at = (time_t)unix_s, now = time(NULL);
    struct tm then, today;

    if (unix_s <= 0 || unix_s > 1e11 || !localtime_r(&at, &then) || !localtime_r(&now, &today))
        (void)snprintf(buf, size, "-");
    else if (then.tm_yday == today.tm_yday && then.tm_year == today.tm_year)
        (void)strftime(buf, size, "%H:%M:%S", &then);
    else if (fabs(unix_s - (double)now) < 180.0 * 86400)
        (void)strftime(buf, size, "%b %d %H:%M", &then);
    else
        (void)strftime(buf, size, "%Y-%m-%d", &then);
    return buf;
}

const char *stk_text_mib(double mib, char *buf, size_t size)
{
    if (mib < 0)
        (void)snprintf(buf, size, "-");
    else if (mib >= 1048576)
        (void)snprintf(buf, size, "%.1f TiB", mib / 1048576);
    else if (mib >= 1024)
        (void)snprintf(buf, size, mib >= 102400 ? "%.0f GiB" : "%.1f GiB", mib / 1024);
    else
        (void)snprintf(buf, size, "%.0f MiB", mib);
    return buf;
}

const char *stk_view_start(const json_t *job, char *buf, size_t size)
{
    const double p50 = stk_num(job, "start_p50", 0), p90 = stk_num(job, "start_p90", 0);
    char a[32], b[32];
    size_t n;

    buf[0] = '\0';
    if (p50 > 0 && p90 > 0)
        (void)snprintf(buf, size, "about %s, by %s nine times in ten",
                       stk_text_time(p50, a, sizeof(a)), stk_text_time(p90, b, sizeof(b)));
    else if (p50 > 0)
        (void)snprintf(buf, size, "about %s", stk_text_time(p50, a, sizeof(a)));
    n = strlen(buf);
    if (p50 > 0 && json_array_size(json_object_get(job, "start_pieces")) > 0 && n + 16 < size) {
        n += (size_t)snprintf(buf + n, size - n, ", probably on ");
        (void)view_place(job, "start_pieces", buf + n, size - n);
    }
    return buf;
}

const char *stk_view_deadline(const json_t *job, char *buf, size_t size)
{
    const json_t *d = json_object_get(job, "deadline");
    const char *answer = stk_str(d, "answer");
    const double margin = stk_num(d, "margin_s", 0);
    char at[32], span[32], then[32];

    buf[0] = '\0';
    if (!d || stk_num(d, "at", 0) <= 0)
        return buf;
    (void)stk_text_time(stk_num(d, "at", 0), at, sizeof(at));
    (void)stk_text_duration(margin < 0 ? -margin : margin, span, sizeof(span));
    (void)stk_text_time(stk_num(d, "earliest", 0), then, sizeof(then));
    if (strcmp(answer, "feasible") == 0)
        (void)snprintf(buf, size, "%s, feasible with %s to spare", at, span);
    else if (strcmp(answer, "at_risk") == 0)
        (void)snprintf(buf, size, "%s, at risk: may end %s late", at, span);
    else if (strcmp(answer, "infeasible") == 0)
        (void)snprintf(buf, size, "%s, infeasible: expected to end by %s", at, then);
    else if (strcmp(answer, "late") == 0)
        (void)snprintf(buf, size, "%s, late by %s", at, span);
    else
        (void)snprintf(buf, size, "%s; when it will end cannot be foreseen", at);
    return buf;
}
