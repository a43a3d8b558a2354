/* SPDX-License-Identifier: Apache-2.0 */
/* words_job.c - array and dependency expressions, signals, job ids and lists of hosts; see words.h.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/job.h"
#include "spec/words.h"

/* Reads digits at *s into a number of at most 'max' and moves past them. */
static bool take(const char **s, int64_t max, int64_t *ret)
{
    char digits[20];
    size_t n = strspn(*s, "0123456789");

    if (n == 0 || n >= sizeof(digits))
        return false;
    memcpy(digits, *s, n);
    digits[n] = '\0';
    if (stk_words_whole(digits, max, ret) < 0)
        return false;
    *s += n;
    return true;
}

/* Arrays. The parts of an expression may overlap and come in any order; an element exists once. */

struct array_part {
    int64_t first, last, step;
};

static bool take_part(const char **s, struct array_part *p)
{
    p->step = 1;
    if (!take(s, STK_MAX_ARRAY_INDEX, &p->first))
        return false;
    p->last = p->first;
    if (**s == '-') {
        (*s)++;
        if (!take(s, STK_MAX_ARRAY_INDEX, &p->last) || p->last < p->first)
            return false;
        if (**s == ':') {
            (*s)++;
            if (!take(s, STK_MAX_ARRAY_INDEX, &p->step) || p->step == 0)
                return false;
        }
    }
    return true;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static json_t *index_list(uint32_t *all, uint32_t n)
{
    json_t *list = json_array();

    qsort(all, n, sizeof(*all), by_number);
    for (uint32_t i = 0; list && i < n; i++)
        if (i == 0 || all[i] != all[i - 1])
            (void)json_array_append_new(list, json_integer(all[i]));
    return list;
}

static int array_bad(const char *s, struct stk_err *err)
{
    return stk_err_set(err, -EINVAL, "expected an array such as 0-9%%2 or 1,3,5-9:2, got \"%s\"",
                       stk_words_show(s).text);
}

/* One range stays a range; anything else becomes the list of its indices. */
static int read_parts(const char **s, json_t *array, struct stk_err *err)
{
    uint32_t *all = NULL, n = 0;
    struct array_part p;
    int parts = 0;

    for (;; (*s)++) {
        uint32_t *more;
        int64_t count;

        if (!take_part(s, &p)) {
            free(all);
            return -EINVAL;
        }
        count = (p.last - p.first) / p.step + 1;
        if (n + count > STK_MAX_ARRAY) {
            free(all);
            return stk_err_set(
                err, -E2BIG,
                "an array has at most %d elements; submit several, such as --array 0-%d "
                "and --array %d-...",
                STK_MAX_ARRAY, STK_MAX_ARRAY - 1, STK_MAX_ARRAY);
        }
        more = realloc(all, (n + (size_t)count) * sizeof(*all));
        if (!more) {
            free(all);
            return stk_err_set(err, -ENOMEM, "out of memory");
        }
        all = more;
        for (int64_t i = 0; i < count; i++)
            all[n++] = (uint32_t)(p.first + i * p.step);
        parts++;
        if (**s != ',')
            break;
    }
    if (parts == 1) {
        (void)json_object_set_new(array, "first", json_integer(p.first));
        (void)json_object_set_new(array, "last", json_integer(p.last));
        if (p.step != 1)
            (void)json_object_set_new(array, "step", json_integer(p.step));
    } else {
        (void)json_object_set_new(array, "indices", index_list(all, n));
    }
    free(all);
    return 0;
}

int stk_words_array(const char *s, json_t **ret_array, struct stk_err *err)
{
    json_t *array = json_object();
    const char *p = s;
    int64_t limit;
    int rc = array ? read_parts(&p, array, err) : -ENOMEM;

    if (rc == 0 && *p == '%') {
        p++;
        if (take(&p, STK_MAX_ARRAY, &limit) && limit > 0)
            (void)json_object_set_new(array, "limit", json_integer(limit));
        else
            rc = -EINVAL;
    }
    if (rc == -EINVAL || (rc == 0 && *p != '\0'))
        rc = array_bad(s, err);
    if (rc < 0) {
        json_decref(array);
        return rc;
    }
    *ret_array = array;
    return 0;
}

/* Dependencies. */

int stk_words_job(const char *s, struct stk_job_ref *ret)
{
    struct stk_job_ref ref = {.index = -1};
    int64_t n;

    if (!take(&s, UINT32_MAX - 1, &n) || n == 0)
        return -EINVAL;
    ref.job = (uint32_t)n;
    if (*s == '_') {
        s++;
        if (*s == '[' && s[strlen(s) - 1] == ']' && s[1] != ']')
            s += strlen(s);
        else if (!take(&s, STK_MAX_ARRAY_INDEX, &ref.index))
            return -EINVAL;
    }
    if (*s != '\0')
        return -EINVAL;
    *ret = ref;
    return 0;
}

static int add_dependency(json_t *depends, const char *type, const char *id, struct stk_err *err)
{
    struct stk_job_ref ref;
    json_t *dep;

    if (stk_words_job(id, &ref) < 0)
        return stk_err_set(err, -EINVAL, "expected a job number after \"%s:\", got \"%s\"", type,
                           stk_words_show(id).text);
    if (json_array_size(depends) >= STK_MAX_DEPS)
        return stk_err_set(err, -E2BIG, "a job has at most %d dependencies", STK_MAX_DEPS);
    dep = json_pack("{s:s, s:I}", "type", type, "job", (json_int_t)ref.job);
    if (dep && ref.index >= 0)
        (void)json_object_set_new(dep, "index", json_integer(ref.index));
    return json_array_append_new(depends, dep) < 0 ? stk_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* "afterok:12:13" or "12:13", in a buffer of our own. */
static int read_dependency(char *word, json_t *depends, bool *singleton, struct stk_err *err)
{
    char *save = NULL, *id;
    const char *type = strtok_r(word, ":", &save);
    int rc = 0;

    if (!type)
        return stk_err_set(err, -EINVAL, "expected a dependency such as afterok:12");
    id = strtok_r(NULL, ":", &save);
    if (strcasecmp(type, "singleton") == 0) {
        *singleton = true;
        return id ? stk_err_set(err, -EINVAL, "singleton takes no job number, got \"%s\"",
                                stk_words_show(id).text)
                  : 0;
    }
    if (type[strspn(type, "0123456789_")] == '\0') {
        rc = add_dependency(depends, "afterok", type, err);
        type = "afterok";
    } else if (!stk_words_among(type, "afterok|afterany|afternotok|aftercorr")) {
        return stk_err_set(err, -EINVAL,
                           "there is no dependency \"%s\"; there are afterok, afterany, "
                           "afternotok, aftercorr and singleton",
                           stk_words_show(type).text);
    } else if (!id) {
        return stk_err_set(err, -EINVAL, "%s needs a job number, as in %s:12", type, type);
    }
    for (; id && rc == 0; id = strtok_r(NULL, ":", &save))
        rc = add_dependency(depends, type, id, err);
    return rc;
}

int stk_words_nodes(const char *s, json_t *list, struct stk_err *err)
{
    while (*s != '\0') {
        size_t n = 0;

        for (bool in = false; s[n] != '\0' && (in || s[n] != ','); n++)
            in = s[n] == '[' || (in && s[n] != ']');
        if (n > 0 && json_array_append_new(list, json_stringn(s, n)) < 0)
            return stk_err_set(err, -EINVAL, "is not text in UTF-8");
        s += n + (s[n] == ',');
    }
    return json_array_size(list) > 0
               ? 0
               : stk_err_set(err, -EINVAL, "must be names of nodes such as n7 or n[1-4,7]");
}

int stk_words_depend(const char *s, json_t *depends, bool *ret_singleton, struct stk_err *err)
{
    char *copy, *save = NULL, *word;
    size_t before = json_array_size(depends);
    bool singleton = *ret_singleton;
    int rc = 0;

    if (strchr(s, '?'))
        return stk_err_set(err, -EINVAL,
                           "dependencies joined by '?' (any one of them) are not supported; ',' "
                           "means all of them");
    copy = strdup(s);
    if (!copy)
        return stk_err_set(err, -ENOMEM, "out of memory");
    word = strtok_r(copy, ",", &save);
    if (!word)
        rc = stk_err_set(err, -EINVAL, "expected a dependency such as afterok:12");
    for (; word && rc == 0; word = strtok_r(NULL, ",", &save))
        rc = read_dependency(word, depends, &singleton, err);
    free(copy);
    if (rc == 0)
        *ret_singleton = singleton;
    else
        while (json_array_size(depends) > before)
            (void)json_array_remove(depends, json_array_size(depends) - 1);
    return rc;
}

/* Signals. */

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"ABRT", SIGABRT}, {"KILL", SIGKILL},
    {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM},
    {"CHLD", SIGCHLD}, {"CONT", SIGCONT}, {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU}, {"URG", SIGURG},   {"XCPU", SIGXCPU}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH},
    {"ILL", SIGILL},   {"TRAP", SIGTRAP}, {"BUS", SIGBUS},   {"FPE", SIGFPE},   {"SEGV", SIGSEGV}};
#define N_SIGNALS (sizeof(signals) / sizeof(*signals))

const char *stk_signal_name(int signal)
{
    for (size_t i = 0; i < N_SIGNALS; i++)
        if (signals[i].number == signal)
            return signals[i].name;
    return NULL;
}

int stk_words_signal(const char *s, int *ret_signal)
{
    const char *name = strncasecmp(s, "SIG", 3) == 0 ? s + 3 : s;
    int64_t n;

    if (stk_words_whole(s, 64, &n) == 0 && n >= 1) {
        *ret_signal = (int)n;
        return 0;
    }
    for (size_t i = 0; i < N_SIGNALS; i++) {
        if (strcasecmp(name, signals[i].name) == 0) {
            *ret_signal = signals[i].number;
            return 0;
        }
    }
    return -EINVAL;
}

int stk_words_signal_ahead(const char *s, json_t **ret_signal, struct stk_err *err)
{
    const char *colon = strchr(s, ':'), *name = colon ? colon + 1 : s, *at = strchr(name, '@');
    size_t flags = colon ? (size_t)(colon - s) : 0, len = at ? (size_t)(at - name) : strlen(name);
    int64_t seconds = 60; /* as Slurm does without @ */
    char word[16], number[8];
    const char *shown;
    int signal;

    if (strspn(s, "RBrb") < flags || flags > 2 || len == 0 || len >= sizeof(word))
        return stk_err_set(err, -EINVAL,
                           "expected a signal such as USR1@60 or B:TERM@300, got "
                           "\"%s\"",
                           stk_words_show(s).text);
    memcpy(word, name, len);
    word[len] = '\0';
    if (stk_words_signal(word, &signal) < 0)
        return stk_err_set(err, -EINVAL, "there is no signal \"%s\"", stk_words_show(word).text);
    if (at && stk_words_whole(at + 1, 65535, &seconds) < 0)
        return stk_err_set(err, -EINVAL, "the seconds after @ must be 0 to 65535, got \"%s\"",
                           stk_words_show(at + 1).text);
    shown = stk_signal_name(signal);
    (void)snprintf(number, sizeof(number), "%d", signal);
    *ret_signal = json_pack("{s:s, s:I, s:s}", "signal", shown ? shown : number, "seconds",
                            (json_int_t)seconds, "who",
                            memchr(s, 'B', flags) || memchr(s, 'b', flags) ? "batch" : "all");
    return *ret_signal ? 0 : stk_err_set(err, -ENOMEM, "out of memory");
}

/* Hosts. */

#define MAX_HOSTS 65536

struct hosts {
    int (*each)(void *ctx, const char *name);
    void *ctx;
    uint32_t n;
};

static int one_host(struct hosts *h, const char *name)
{
    if (h->n++ >= MAX_HOSTS)
        return -E2BIG;
    return h->each(h->ctx, name);
}

/* "07-09" inside brackets: each number, as wide as the first is written. */
static int host_range(struct hosts *h, const char *prefix, size_t len, const char **s)
{
    int width = (int)strspn(*s, "0123456789"), rc = 0;
    int64_t first, last;
    char name[300];

    if (width > 18 || !take(s, INT64_C(999999999), &first))
        return -EINVAL;
    last = first;
    if (**s == '-') {
        (*s)++;
        if (!take(s, INT64_C(999999999), &last) || last < first || last - first >= MAX_HOSTS)
            return -EINVAL;
    }
    for (int64_t i = first; i <= last && rc == 0; i++) {
        (void)snprintf(name, sizeof(name), "%.*s%0*" PRId64, (int)len, prefix, width, i);
        rc = one_host(h, name);
    }
    return rc;
}

int stk_words_hosts(const char *s, int (*each)(void *ctx, const char *name), void *ctx)
{
    struct hosts h = {.each = each, .ctx = ctx};
    int rc = 0;

    while (rc == 0) {
        const char *prefix = s;
        size_t len = strcspn(s, ",[");
        char name[300];

        if (len > 255 || (len == 0 && s[len] != '['))
            return -EINVAL;
        s += len;
        if (*s == '[') {
            do {
                s++;
                rc = host_range(&h, prefix, len, &s);
            } while (rc == 0 && *s == ',');
            if (rc == 0 && *s++ != ']')
                return -EINVAL;
        } else {
            (void)snprintf(name, sizeof(name), "%.*s", (int)len, prefix);
            rc = one_host(&h, name);
        }
        if (rc < 0 || *s == '\0')
            return rc;
        if (*s++ != ',')
            return -EINVAL;
    }
    return rc;
}
