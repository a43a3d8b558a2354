/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - stoker-store, which `stoker store` runs: looks after the daemon's store. A program of
 * its own, so that `stoker` needs no database to start. */
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/near.h"
#include "storetool/tool.h"
#include "sys/state_dir.h"

static const struct {
    const char *name, *words, *help;
    int (*run)(struct stk_tool *t);
    bool file; /* needs the word */
} commands[] = {
    {"check", "", "read everything and tell what is wrong; also while the daemon runs",
     stk_tool_check, false},
    {"export", "[--output FILE]",
     "every job as a line of JSON, with its description; also while the daemon runs",
     stk_tool_export, false},
    {"backup", "FILE", "copy the store into a new file; also while the daemon runs",
     stk_tool_backup, true},
    {"restore", "FILE", "put a backup in the store's place; the daemon must be stopped",
     stk_tool_restore, true},
    {"prune", "[--older AGE] [--larger SIZE]",
     "forget jobs that ended long ago; the daemon must be stopped", stk_tool_prune, false},
    {"accept", "",
     "go on with a store that has lost something the daemon had acknowledged; tells what",
     stk_tool_accept, false},
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static volatile sig_atomic_t stop_asked;

static void on_signal(int sig)
{
    stop_asked = sig;
}

int stk_tool_tick(void *ctx, uint64_t done, uint64_t total)
{
    struct stk_tool *t = ctx;

    t->progress.total = total;
    stk_progress_update(&t->progress, done);
    return stop_asked;
}

int stk_tool_failed(struct stk_tool *t, const struct stk_err *err)
{
    stk_progress_done(&t->progress);
    (void)fprintf(stderr, "stoker store: %s\n", err->text);
    return stop_asked ? 128 + stop_asked : STK_TOOL_FAILED;
}

static void usage(FILE *f)
{
    (void)fprintf(f, "usage: stoker store COMMAND [--state DIR] [--json] ...\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        (void)fprintf(f, "  %s %s\n      %s\n", commands[i].name, commands[i].words,
                      commands[i].help);
    (void)fprintf(f,
                  "\n"
                  "  --state DIR    the state directory (default: /var/lib/stoker as root, else\n"
                  "                 $XDG_STATE_HOME/stoker or ~/.local/state/stoker)\n"
                  "  --json         the result as JSON\n"
                  "  --output FILE  export: into this new file\n"
                  "  --older AGE    prune: jobs that ended longer ago: 90d, 12h, 30m, 45s\n"
                  "  --larger SIZE  prune: the oldest while the store is larger: 500M, 10G\n"
                  "  --help         this text\n"
                  "\n"
                  "Exit codes: 0 done, 1 failed or problems found, 2 bad usage.\n");
}

__attribute__((format(printf, 1, 2))) static int misused(const char *fmt, ...)
{
    va_list ap;

    (void)fprintf(stderr, "stoker store: ");
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fprintf(stderr, " (stoker store --help)\n");
    return STK_TOOL_USAGE;
}

/* A number and one of 'units', each worth 'worth'. 0: no such thing. */
static int64_t amount(const char *s, const char *units, const int64_t *worth)
{
    char *end;
    long long n = strtoll(s, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;

    if (n <= 0 || !unit || end[1] != '\0' || n > INT64_MAX / worth[unit - units])
        return 0;
    return n * worth[unit - units];
}

static int default_state(char *ret, size_t size)
{
    char *found = stk_state_dir();
    int n = found ? snprintf(ret, size, "%s", found) : 0;

    free(found);
    if (n == 0)
        return misused("no state directory is known: --state DIR");
    return n > 0 && (size_t)n < size ? STK_TOOL_OK
                                     : misused("the state directory's name is too long");
}

static int read_option(struct stk_tool *t, int c)
{
    static const int64_t seconds[] = {STK_SECOND, 60 * STK_SECOND, 3600 * STK_SECOND,
                                      86400 * STK_SECOND};
    static const int64_t bytes[] = {INT64_C(1) << 10, INT64_C(1) << 20, INT64_C(1) << 30,
                                    INT64_C(1) << 40};

    switch (c) {
    case 's':
        if (strlen(optarg) >= sizeof(t->state))
            return misused("the state directory's name is too long");
        (void)snprintf(t->state, sizeof(t->state), "%s", optarg);
        return STK_TOOL_OK;
    case 'j':
        t->json = true;
        return STK_TOOL_OK;
    case 'o':
        t->output = optarg;
        return STK_TOOL_OK;
    case 'a':
        t->keep.age = amount(optarg, "smhd", seconds);
        return t->keep.age ? STK_TOOL_OK
                           : misused("--older must be like 90d or 12h, got %s", optarg);
    case 'l':
        t->keep.bytes = (uint64_t)amount(optarg, "KMGT", bytes);
        return t->keep.bytes ? STK_TOOL_OK : misused("--larger must be like 10G, got %s", optarg);
    case ':':
        return misused("%s needs a value", optopt ? "the last option" : "an option");
    default:
        return misused("there is no such option");
    }
}

/* -1: go on. */
static int read_words(struct stk_tool *t, int argc, char **argv)
{
    static const struct option options[] = {{"state", required_argument, NULL, 's'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"older", required_argument, NULL, 'a'},
                                            {"larger", required_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int c, rc;

    opterr = 0;
    while ((c = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
        if (c == 'h') {
            usage(stdout);
            return STK_TOOL_OK;
        }
        rc = c == '?' ? misused("there is no option %s", argv[optind - 1]) : read_option(t, c);
        if (rc != STK_TOOL_OK)
            return rc;
    }
    if (optind < argc)
        t->command = argv[optind++];
    if (optind < argc)
        t->file = argv[optind++];
    if (optind < argc)
        return misused("one file at a time, and not also %s", argv[optind]);
    return -1;
}

static int no_command(const struct stk_tool *t)
{
    unsigned best = stk_near_limit(t->command);
    const char *meant = NULL;

    for (size_t i = 0; i < N_COMMANDS; i++)
        if (stk_near(t->command, commands[i].name, &best))
            meant = commands[i].name;
    if (meant)
        return misused("there is no command \"%.40s\"; did you mean \"%s\"?", t->command, meant);
    return misused("there is no command \"%.40s\"", t->command);
}

static int run(struct stk_tool *t, size_t i)
{
    if (commands[i].file && !t->file)
        return misused("%s needs a file", t->command);
    if (!commands[i].file && t->file)
        return misused("%s takes no file", t->command);
    if (t->output && commands[i].run != stk_tool_export)
        return misused("--output is for export");
    if ((t->keep.age || t->keep.bytes) != (commands[i].run == stk_tool_prune))
        return misused(commands[i].run == stk_tool_prune ? "prune needs --older or --larger"
                                                         : "--older and --larger are for prune");
    if (t->state[0] == '\0' && default_state(t->state, sizeof(t->state)) != STK_TOOL_OK)
        return STK_TOOL_USAGE;
    return commands[i].run(t);
}

int main(int argc, char **argv)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct stk_tool t = {0};
    int rc = read_words(&t, argc, argv);

    if (rc >= 0)
        return rc;
    if (!t.command) {
        usage(stderr);
        return STK_TOOL_USAGE;
    }
    (void)sigaction(SIGINT, &act, NULL); /* a second one ends us as usual */
    (void)sigaction(SIGTERM, &act, NULL);
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(t.command, commands[i].name) == 0) {
            rc = run(&t, i);
            if (fflush(stdout) != 0 && rc == STK_TOOL_OK) {
                perror("stoker store: cannot write");
                rc = STK_TOOL_FAILED;
            }
            return rc;
        }
    return no_command(&t);
}
