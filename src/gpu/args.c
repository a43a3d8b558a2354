/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda.h"

#define DAY_MS 86400000

struct option {
    const char *name;
    const char *commands; /* that take it */
    size_t at;
    int64_t min, max;
};

#define NUMBER(name, commands, member, min, max)                                                   \
    {                                                                                              \
        name, commands, offsetof(struct stk_gpu_args, member), min, max                            \
    }
static const struct option numbers[] = {
    NUMBER("--interval-ms", "watch", interval_ms, 100, DAY_MS),
    NUMBER("--count", "watch", count, 0, INT32_MAX),
    NUMBER("--lock-timeout-ms", "suspend", lock_timeout_ms, 1, DAY_MS),
    NUMBER("--host-reserve-mib", "suspend", host_reserve_mib, 0, INT32_MAX),
    NUMBER("--wait-ms", "resume", wait_ms, 0, DAY_MS),
    NUMBER("--timeout-ms", "list watch suspend resume state", timeout_ms, 1, DAY_MS),
};

static int number(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret,
                  struct stk_err *err)
{
    char *end;
    long long v;

    errno = 0;
    v = text ? strtoll(text, &end, 10) : 0;
    if (!text || errno || end == text || *end != '\0' || v < min || v > max)
        return stk_err_set(err, -EINVAL, "%s takes a number from %lld to %lld, got %.40s", what,
                           (long long)min, (long long)max, text ? text : "nothing");
    *ret = v;
    return 0;
}

static int take_need(struct stk_gpu_args *a, const char *name, const char *value,
                     struct stk_err *err)
{
    struct cuda_uuid u;

    if (strcmp(name, "--need-mib") == 0) {
        if (a->n_needs == 0)
            return stk_err_set(err, -EINVAL, "--need-mib belongs after the --gpu it is for");
        return number(name, value, 0, INT32_MAX, &a->need[a->n_needs - 1].need_mib, err);
    }
    if (!value || !stk_cuda_uuid(value, &u))
        return stk_err_set(err, -EINVAL, "--gpu takes a UUID (GPU-...), got %.60s",
                           value ? value : "nothing");
    if (a->n_needs == STK_ARGS_MAX_GPUS)
        return stk_err_set(err, -E2BIG, "more than %d --gpu", STK_ARGS_MAX_GPUS);
    a->need[a->n_needs].uuid = value;
    a->need[a->n_needs++].need_mib = 0;
    return 0;
}

static int take_move(struct stk_gpu_args *a, const char *value, struct stk_err *err)
{
    const char *to = value ? strchr(value, '=') : NULL;
    struct cuda_uuid u;

    if (a->n_moves == STK_ARGS_MAX_GPUS)
        return stk_err_set(err, -E2BIG, "more than %d --move", STK_ARGS_MAX_GPUS);
    if (to)
        (void)snprintf(a->move[a->n_moves].from, sizeof(a->move[0].from), "%.*s", (int)(to - value),
                       value);
    if (!to || !stk_cuda_uuid(a->move[a->n_moves].from, &u) || !stk_cuda_uuid(to + 1, &u))
        return stk_err_set(err, -EINVAL, "--move takes OLD=NEW, two UUIDs (GPU-...), got %.100s",
                           value ? value : "nothing");
    a->move[a->n_moves++].to = to + 1;
    return 0;
}

static int take_option(struct stk_gpu_args *a, const char *command, const char *name,
                       const char *value, struct stk_err *err)
{
    bool resume = strcmp(command, "resume") == 0;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (strcmp(name, numbers[i].name) == 0 && strstr(numbers[i].commands, command))
            return number(name, value, numbers[i].min, numbers[i].max,
                          (int64_t *)(void *)((char *)a + numbers[i].at), err);
    if (resume && (strcmp(name, "--gpu") == 0 || strcmp(name, "--need-mib") == 0))
        return take_need(a, name, value, err);
    if (resume && strcmp(name, "--move") == 0)
        return take_move(a, value, err);
    return stk_err_set(err, -EINVAL, "%s has no option %.40s", command, name);
}

int stk_gpu_args_parse(struct stk_gpu_args *a, int argc, char **argv, struct stk_err *err)
{
    bool pids = strcmp(argv[0], "list") != 0 && strcmp(argv[0], "watch") != 0;
    int64_t v = 0;
    int rc = 0;

    *a = (struct stk_gpu_args){
        .interval_ms = 2000, .lock_timeout_ms = 10000, .host_reserve_mib = 1024};
    if (argc > STK_ARGS_MAX_PIDS)
        return stk_err_set(err, -E2BIG, "more than %d arguments", STK_ARGS_MAX_PIDS);
    a->pids = calloc((size_t)argc, sizeof(*a->pids));
    if (!a->pids)
        return stk_err_set(err, -ENOMEM, "out of memory");
    for (int i = 1; rc == 0 && i < argc; i++) {
        if (argv[i][0] == '-') {
            rc = take_option(a, argv[0], argv[i], i + 1 < argc ? argv[i + 1] : NULL, err);
            i++;
        } else if (pids) {
            rc = number("a PID", argv[i], 1, INT32_MAX, &v, err);
            if (rc == 0)
                a->pids[a->n_pids++] = (int)v;
        } else {
            rc = stk_err_set(err, -EINVAL, "%s takes no argument %.40s", argv[0], argv[i]);
        }
    }
    if (rc == 0 && pids && a->n_pids == 0)
        rc = stk_err_set(err, -EINVAL, "%s needs at least one PID", argv[0]);
    if (rc < 0)
        stk_gpu_args_done(a);
    return rc;
}

void stk_gpu_args_done(struct stk_gpu_args *a)
{
    free(a->pids);
    *a = (struct stk_gpu_args){.n_pids = 0};
}
