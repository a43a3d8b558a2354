/* SPDX-License-Identifier: Apache-2.0 */
/* verbs.c - what each command of stoker-store does. */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "model/wire.h"
#include "storetool/tool.h"
#include "sys/big.h"

/* Prints the object, which is taken. */
static int print(json_t *take_object)
{
    int rc = take_object ? json_dumpf(take_object, stdout, JSON_INDENT(1)) : -1;

    json_decref(take_object);
    (void)putchar('\n');
    return rc == 0 ? STK_TOOL_OK : STK_TOOL_FAILED;
}

static void begin_progress(struct stk_tool *t, const char *label)
{
    stk_progress_init(&t->progress, label, 0);
}

struct checking {
    struct stk_tool *t;
    json_t *problems; /* NULL: print them */
    struct stk_wire wire;
};

static int check_event(void *ctx, const struct stk_row *e)
{
    struct checking *c = ctx;
    int rc = stk_wire_get(e->bytes, e->len, &c->wire, NULL);

    return rc == 0 && (uint32_t)c->wire.ev.type != e->type ? -EUCLEAN : rc;
}

static void problem(void *ctx, const char *sentence)
{
    struct checking *c = ctx;

    stk_progress_done(&c->t->progress);
    if (c->problems)
        (void)json_array_append_new(c->problems, json_string(sentence));
    else
        (void)printf("%s\n", sentence);
}

static int check_tick(void *ctx, uint64_t done, uint64_t total)
{
    return stk_tool_tick(((struct checking *)ctx)->t, done, total);
}

static int show_check(struct stk_tool *t, struct stk_store *st, json_t *problems, uint64_t n)
{
    uint64_t first = 0, last = 0, bytes = 0;
    struct stk_err err = {""};

    if (stk_store_span(st, &first, &last, &err) < 0 || stk_store_size(st, &bytes, &err) < 0)
        first = last = bytes = 0; /* then there were problems, and they were told */
    if (t->json)
        (void)print(json_pack("{s:b, s:I, s:O, s:I, s:I, s:I, s:s}", "ok", n == 0, "problems",
                              (json_int_t)n, "told", problems, "first_event", (json_int_t)first,
                              "last_event", (json_int_t)last, "bytes", (json_int_t)bytes, "state",
                              t->state));
    else if (n == 0)
        (void)printf("%s: no problems; events %" PRIu64 " to %" PRIu64 ", %.1f MiB\n", t->state,
                     first, last, (double)bytes / 1048576);
    else
        (void)printf("%s: %" PRIu64
                     " problem%s; to go back to a backup: stoker store restore FILE --state %s\n",
                     t->state, n, n == 1 ? "" : "s", t->state);
    return n == 0 ? STK_TOOL_OK : STK_TOOL_FAILED;
}

int stk_tool_check(struct stk_tool *t)
{
    struct checking c = {.t = t, .problems = t->json ? json_array() : NULL};
    struct stk_check check = {
        .event = check_event, .problem = problem, .tick = check_tick, .ctx = &c};
    struct stk_store *st = NULL;
    struct stk_err err = {""};
    uint64_t n = 0;
    int rc = stk_store_open(t->state, STK_STORE_READ_ONLY | STK_STORE_ACCEPT, &st, &err);

    stk_wire_init(&c.wire, &stk_big_mem);
    begin_progress(t, "checking");
    if (rc == 0)
        rc = stk_store_check(st, &check, &n, &err);
    stk_progress_done(&t->progress);
    rc = rc == 0 ? show_check(t, st, c.problems, n) : stk_tool_failed(t, &err);
    stk_wire_done(&c.wire);
    json_decref(c.problems);
    stk_store_close(st);
    return rc;
}

/* A new file for us alone: it holds what users submitted. */
static FILE *new_file(const char *path, struct stk_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (!f) {
        (void)stk_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
        if (fd >= 0)
            (void)close(fd);
    }
    return f;
}

/* Opens it to be read, and says what is missing in it. */
static int open_to_read(struct stk_tool *t, struct stk_store **ret_store, struct stk_err *err)
{
    int rc = stk_store_open(t->state, STK_STORE_READ_ONLY, ret_store, err);

    if (rc == 0 && stk_store_note(*ret_store)[0] != '\0')
        (void)fprintf(stderr, "stoker store: warning: %s\n", stk_store_note(*ret_store));
    return rc;
}

int stk_tool_export(struct stk_tool *t)
{
    struct stk_store *st;
    struct stk_err err = {""};
    FILE *out = stdout;
    int rc = open_to_read(t, &st, &err);

    if (rc < 0)
        return stk_tool_failed(t, &err);
    if (t->output)
        out = new_file(t->output, &err);
    begin_progress(t, "exporting");
    rc = out ? stk_store_export(st, out, stk_tool_tick, t, &err) : -EIO;
    if (out && t->output) {
        if (fclose(out) != 0 && rc == 0)
            rc = stk_err_set(&err, -errno, "%.200s: %s", t->output, strerror(errno));
        if (rc < 0)
            (void)unlink(t->output);
    }
    stk_progress_done(&t->progress);
    stk_store_close(st);
    return rc < 0 ? stk_tool_failed(t, &err) : STK_TOOL_OK;
}

static double mib(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 ? (double)s.st_size / 1048576 : 0;
}

int stk_tool_backup(struct stk_tool *t)
{
    struct stk_store *st;
    struct stk_err err = {""};
    int rc = open_to_read(t, &st, &err);

    if (rc < 0)
        return stk_tool_failed(t, &err);
    begin_progress(t, "backing up");
    rc = stk_store_backup(st, t->file, stk_tool_tick, t, &err);
    stk_progress_done(&t->progress);
    stk_store_close(st);
    if (rc < 0)
        return stk_tool_failed(t, &err);
    if (t->json)
        return print(json_pack("{s:s, s:I, s:s}", "file", t->file, "bytes",
                               (json_int_t)(mib(t->file) * 1048576), "state", t->state));
    (void)printf("%s: %.1f MiB; back to it with: stoker store restore %s --state %s\n", t->file,
                 mib(t->file), t->file, t->state);
    return STK_TOOL_OK;
}

int stk_tool_restore(struct stk_tool *t)
{
    struct stk_err err = {""};
    int rc;

    begin_progress(t, "restoring");
    rc = stk_store_restore(t->state, t->file, stk_tool_tick, t, &err);
    stk_progress_done(&t->progress);
    if (rc < 0)
        return stk_tool_failed(t, &err);
    if (t->json)
        return print(json_pack("{s:s, s:s}", "file", t->file, "state", t->state));
    (void)printf("%s holds %s now; what was there is kept as " STK_STORE_FILE ".replaced\n",
                 t->state, t->file);
    return STK_TOOL_OK;
}

/* Opening to write makes what is not there, which is not what is meant here. */
static int is_there(const struct stk_tool *t, struct stk_err *err)
{
    struct stk_store *st;
    int rc = stk_store_open(t->state, STK_STORE_READ_ONLY | STK_STORE_ACCEPT, &st, err);

    if (rc == 0)
        stk_store_close(st);
    return rc;
}

int stk_tool_prune(struct stk_tool *t)
{
    struct timespec now;
    struct stk_store *st = NULL;
    struct stk_err err = {""};
    uint64_t before = 0, after = 0, steps = 0;
    bool more = true;
    int rc = is_there(t, &err);

    if (rc == 0)
        rc = stk_store_open(t->state, 0, &st, &err);
    if (rc < 0)
        return stk_tool_failed(t, &err);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    begin_progress(t, "pruning");
    rc = stk_store_size(st, &before, &err);
    while (more && rc == 0) {
        rc = stk_store_prune(st, &t->keep, (stk_time)now.tv_sec * STK_SECOND, &more, &err);
        if (rc == 0 && stk_tool_tick(t, ++steps, 0))
            rc = stk_err_set(&err, -ECANCELED, "pruning was stopped; what is gone is gone");
    }
    if (rc == 0)
        rc = stk_store_size(st, &after, &err);
    stk_progress_done(&t->progress);
    stk_store_close(st);
    if (rc < 0)
        return stk_tool_failed(t, &err);
    if (t->json)
        return print(json_pack("{s:I, s:I, s:s}", "bytes_before", (json_int_t)before, "bytes_after",
                               (json_int_t)after, "state", t->state));
    (void)printf("%s: %.1f MiB, was %.1f MiB\n", t->state, (double)after / 1048576,
                 (double)before / 1048576);
    return STK_TOOL_OK;
}

/* The loss is written down among the changes, where everybody can see it. */
static int write_note(struct stk_store *st, const char *sentence, struct stk_err *err)
{
    struct passwd pw, *who = NULL;
    struct timespec now;
    struct stk_note note = {.kind = "note", .user = "", .text = sentence, .world = ""};
    char buf[4096];
    int rc = getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &who);

    if (rc == 0 && who)
        note.user = who->pw_name;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    note.at = (stk_time)now.tv_sec * STK_SECOND;
    rc = stk_store_begin(st, err);
    rc = rc < 0 ? rc : stk_store_note_put(st, &note, err);
    rc = rc < 0 ? rc : stk_store_commit(st, err);
    return rc;
}

int stk_tool_accept(struct stk_tool *t)
{
    char sentence[600] = "";
    struct stk_store *st = NULL;
    struct stk_err err = {""};
    int rc = is_there(t, &err);

    if (rc == 0)
        rc = stk_store_open(t->state, STK_STORE_ACCEPT, &st, &err);
    if (rc == 0 && stk_store_note(st)[0] != '\0') {
        (void)snprintf(sentence, sizeof(sentence), "accepted with a loss: %s", stk_store_note(st));
        rc = write_note(st, sentence, &err);
    }
    stk_store_close(st);
    if (rc < 0)
        return stk_tool_failed(t, &err);
    if (t->json)
        return print(json_pack("{s:s, s:s}", "lost", sentence, "state", t->state));
    if (sentence[0] == '\0')
        (void)printf("%s: nothing that was acknowledged is missing\n", t->state);
    else
        (void)printf("%s\nLook at what is left before you start the daemon: stoker store check "
                     "--state %s\n",
                     sentence, t->state);
    return STK_TOOL_OK;
}
