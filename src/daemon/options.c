/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "sys/owned.h"

static void usage(FILE *f)
{
    (void)fprintf(f,
                  "stokerd " STK_DAEMON_VERSION ": runs jobs on this machine's GPUs\n"
                  "\n"
                  "usage: stokerd [options]        (\"stoker serve\" is the same)\n"
                  "\n"
                  "  --config FILE       configuration, YAML (--help-config lists the keys)\n"
                  "  --state DIR         where everything is kept (/var/lib/stoker as root)\n"
                  "  --socket PATH       Unix socket (/run/stoker/stoker.sock as root)\n"
                  "  --listen HOST:PORT  page and API (127.0.0.1:8470; port 0: any; off: none)\n"
                  "  --virtual-gpus N    pretend to have N GPUs; processes are real\n"
                  "  --virtual-gpus MxN  pretend to be M machines with N GPUs each\n"
                  "  --default-cpus N    CPUs of jobs that ask for neither GPUs nor CPUs (1)\n"
                  "  --tls-cert FILE     certificate and key, PEM: serve HTTPS\n"
                  "  --tls-key FILE\n"
                  "  --insecure          listen beyond this machine without TLS\n"
                  "  --verbose           log more\n"
                  "  --paranoid          check every invariant after every turn, and stop at the\n"
                  "                      first that is broken; slow, for tests\n"
                  "  --check             only say whether the daemon would start with the\n"
                  "                      configuration (\"stoker config check FILE\" is the same)\n"
                  "  --help, --help-config, --version\n"
                  "\n"
                  "SIGTERM stops the daemon; its jobs go on and are taken over by the next one.\n"
                  "SIGHUP reads the configuration again.\n");
}

/* "8", or "1250x8". */
static int set_gpus(const char *text, struct stk_daemon_options *o)
{
    size_t first = strspn(text, "0123456789"), second = 0;
    unsigned long nodes = 1, gpus = strtoul(text, NULL, 10);

    if (text[first] == 'x') {
        second = strspn(text + first + 1, "0123456789") + 1;
        nodes = gpus;
        gpus = strtoul(text + first + 1, NULL, 10);
    }
    if (first == 0 || second == 1 || text[first + second] != '\0' || nodes < 1 ||
        nodes > STK_CONFIG_MAX_NODES || gpus > STK_MAX_NODE_GPUS) {
        (void)fprintf(
            stderr,
            "stokerd: --virtual-gpus takes a number from 0 to %d, or machines x GPUs such "
            "as 4x8 (at most %ux%d), got \"%.40s\"\n",
            STK_MAX_NODE_GPUS, STK_CONFIG_MAX_NODES, STK_MAX_NODE_GPUS, text);
        return -EINVAL;
    }
    o->virtual_nodes = second ? (uint32_t)nodes : 0;
    o->virtual_gpus = (uint32_t)gpus;
    return 0;
}

enum {
    CONFIG = 1,
    STATE,
    SOCKET,
    LISTEN,
    GPUS,
    CPUS,
    CERT,
    KEY,
    INSECURE,
    VERBOSE,
    PARANOID,
    CHECK,
    HELP,
    KEYS,
    VERSION
};

static int take(int what, struct stk_daemon_options *o)
{
    switch (what) {
    case CONFIG:
        o->config = optarg;
        return 0;
    case STATE:
        o->state = optarg;
        return 0;
    case SOCKET:
        o->socket = optarg;
        return 0;
    case LISTEN:
        o->listen = optarg;
        return 0;
    case GPUS:
        return set_gpus(optarg, o);
    case CPUS:
        o->default_cpus = optarg;
        return 0;
    case CERT:
        o->tls_cert = optarg;
        return 0;
    case KEY:
        o->tls_key = optarg;
        return 0;
    case INSECURE:
        o->insecure = true;
        return 0;
    case VERBOSE:
        o->verbose = true;
        return 0;
    case PARANOID:
        o->paranoid = true;
        return 0;
    case CHECK:
        o->check = true;
        return 0;
    case HELP:
        usage(stdout);
        return 1;
    case KEYS:
        stk_config_print_keys(stdout);
        return 1;
    case VERSION:
        (void)puts("stokerd " STK_DAEMON_VERSION);
        return 1;
    default:
        (void)fprintf(stderr, "stokerd --help says what there is.\n");
        return -EINVAL;
    }
}

int stk_daemon_options(int argc, char **argv, struct stk_daemon_options *ret)
{
    static const struct option longs[] = {{"config", required_argument, NULL, CONFIG},
                                          {"state", required_argument, NULL, STATE},
                                          {"socket", required_argument, NULL, SOCKET},
                                          {"listen", required_argument, NULL, LISTEN},
                                          {"virtual-gpus", required_argument, NULL, GPUS},
                                          {"default-cpus", required_argument, NULL, CPUS},
                                          {"tls-cert", required_argument, NULL, CERT},
                                          {"tls-key", required_argument, NULL, KEY},
                                          {"insecure", no_argument, NULL, INSECURE},
                                          {"verbose", no_argument, NULL, VERBOSE},
                                          {"paranoid", no_argument, NULL, PARANOID},
                                          {"check", no_argument, NULL, CHECK},
                                          {"help", no_argument, NULL, HELP},
                                          {"help-config", no_argument, NULL, KEYS},
                                          {"version", no_argument, NULL, VERSION},
                                          {NULL, 0, NULL, 0}};
    struct stk_daemon_options o = {.virtual_gpus = STK_CONFIG_NO_GPUS};
    int c, rc = 0;

    while (rc == 0 && (c = getopt_long(argc, argv, "", longs, NULL)) != -1)
        rc = take(c, &o);
    if (rc == 0 && optind < argc) {
        (void)fprintf(stderr, "stokerd: takes no words, got \"%.60s\"\n", argv[optind]);
        rc = -EINVAL;
    }
    if (rc == 0)
        *ret = o;
    return rc;
}

/* What the command line says goes first, and has no line in the file. */
static int replace(struct stk_config *c, const char *path, char **at, const char *with)
{
    char *p = with ? strdup(with) : NULL;

    if (!with)
        return 0;
    free(*at);
    *at = p;
    stk_config_forget_line(c, path);
    return p ? 0 : -ENOMEM;
}

/* A file of rules lies in the folder of the configuration's file, unless its path begins with /. */
static int place_rules(const struct stk_daemon_options *o, struct stk_config *c)
{
    const char *slash = o->config ? strrchr(o->config, '/') : NULL;
    char *path = NULL;

    if (!c->rules || c->rules[0] == '/' || !slash)
        return 0;
    if (asprintf(&path, "%.*s/%s", (int)(slash - o->config), o->config, c->rules) < 0)
        return -ENOMEM;
    free(c->rules);
    c->rules = path;
    return 0;
}

int stk_daemon_merge(const struct stk_daemon_options *o, struct stk_config *c, struct stk_err *err)
{
    if (replace(c, "listen", &c->listen, o->listen) < 0 ||
        replace(c, "socket", &c->socket, o->socket) < 0 ||
        replace(c, "state", &c->state, o->state) < 0 ||
        replace(c, "tls.cert", &c->tls.cert, o->tls_cert) < 0 ||
        replace(c, "tls.key", &c->tls.key, o->tls_key) < 0 || place_rules(o, c) < 0)
        return stk_err_set(err, -ENOMEM, "out of memory");
    if (o->virtual_gpus != STK_CONFIG_NO_GPUS) {
        c->virtual_gpus = o->virtual_gpus;
        if (o->virtual_nodes > 0) /* else as the configuration says */
            c->virtual_nodes = o->virtual_nodes;
    }
    if (o->insecure)
        c->insecure = 1;
    for (const struct stk_config_key *k = stk_config_keys; o->default_cpus && k->path; k++)
        if (strcmp(k->path, "defaults.cpus") == 0)
            return stk_config_set(c, k, o->default_cpus, strlen(o->default_cpus), err);
    return 0;
}

int stk_daemon_read_config(struct stk_daemon *d, struct stk_config *c, struct stk_err *err)
{
    int rc = 0;

    if (!d->opt.config)
        d->opt.config = d->found = stk_daemon_config_path();
    if (d->opt.config)
        rc = stk_owned_open(d->opt.config, err);
    if (rc >= 0 && d->opt.config)
        rc = stk_config_read(d->opt.config, rc, c, err);
    return rc < 0 ? rc : stk_daemon_merge(&d->opt, c, err);
}
