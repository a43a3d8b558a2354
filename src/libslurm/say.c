/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libslurm/helper.h"

/* The first of Slurm's errors about sockets; newer ones have no name for it. */
#define ZERO_RECEIVED (ESLURM_PROTOCOL_INCOMPLETE_PACKET - 3)

void stk_slurm_say(json_t *take_line)
{
    char *text = take_line ? json_dumps(take_line, JSON_COMPACT) : NULL;

    json_decref(take_line);
    if (!text || puts(text) < 0 || fflush(stdout) != 0)
        _exit(1); /* the other thread may be anywhere */
    free(text);
}

void stk_slurm_answer(const json_t *request, json_t *take_out)
{
    json_t *id = json_object_get(request, "id");

    (void)json_object_set_new(take_out, "op", json_string("answer"));
    (void)json_object_set_new(take_out, "id", id ? json_incref(id) : json_null());
    stk_slurm_say(take_out);
}

void stk_slurm_say_line(const char *line, size_t n)
{
    if (fwrite(line, 1, n, stdout) != n || fflush(stdout) != 0)
        _exit(1);
}

int64_t stk_slurm_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

const char *stk_slurm_trouble(int error)
{
    static _Thread_local char text[512];
    static const struct {
        int error;
        const char *advice;
    } known[] = {
        {SLURM_PROTOCOL_VERSION_ERROR,
         "the cluster runs another version of Slurm than this machine's libslurm"},
        {SLURM_PROTOCOL_AUTHENTICATION_ERROR,
         "is munged running here, and does it have the cluster's key?"},
        {ESLURM_AUTH_CRED_INVALID, "is munged running here, and does it have the cluster's key?"},
        {ZERO_RECEIVED,
         "slurmctld hung up: does munged here have the cluster's key, and this machine its time?"},
        {SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT,
         "slurmctld hung up: does munged here have the cluster's key, and this machine its time?"},
        {ESLURM_USER_ID_MISSING,
         "stoker must run as root or as SlurmUser to act on the jobs of others"},
        {ESLURM_ACCESS_DENIED,
         "stoker must run as root or as SlurmUser to act on the jobs of others"},
        {SLURM_COMMUNICATIONS_CONNECTION_ERROR, "is slurmctld running (scontrol ping)?"},
        {SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR, "is slurmctld running (scontrol ping)?"},
        {SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR, "is slurmctld running (scontrol ping)?"},
        {ESLURM_INVALID_PARTITION_NAME, "sinfo lists the partitions"},
    };
    const char *said = slurm_strerror(error);

    (void)snprintf(text, sizeof(text), "%s", said ? said : "unknown error");
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].error == error)
            (void)snprintf(text, sizeof(text), "%s: %s", said ? said : "error", known[i].advice);
    return text;
}

bool stk_slurm_unanswered(int error)
{
    return error == ECONNRESET || error == EPIPE || error == ETIMEDOUT || error == ECONNREFUSED ||
           (error >= SLURM_COMMUNICATIONS_CONNECTION_ERROR && error < SLURM_NO_CHANGE_IN_DATA) ||
           (error >= ZERO_RECEIVED && error <= SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT);
}

json_t *stk_slurm_cut(const char *s, size_t most)
{
    char *copy;
    json_t *v;

    if (!s || strnlen(s, most + 1) <= most)
        return stk_slurm_text(s);
    while (most > 0 && ((unsigned char)s[most] & 0xc0) == 0x80) /* no half of a character */
        most--;
    copy = strndup(s, most);
    v = stk_slurm_text(copy);
    free(copy);
    return v;
}

/* The queue is full (MaxJobCount), a backup takes over, the partition takes no jobs, a limit of the
 * account or the QOS is reached, or slurmdbd is away. */
bool stk_slurm_passes(int error)
{
    return error == EAGAIN || error == ESLURM_IN_STANDBY_MODE ||
           error == ESLURM_PARTITION_NOT_AVAIL || error == ESLURM_PARTITION_DOWN ||
           error == ESLURM_ACCOUNTING_POLICY || error == ESLURM_ERROR_ON_DESC_TO_RECORD_COPY ||
           error == ESLURM_DB_CONNECTION;
}

json_t *stk_slurm_text(const char *s)
{
    json_t *v = json_string(s ? s : "");
    char *copy;

    if (v || !s)
        return v;
    copy = strdup(s);
    for (char *p = copy; p && *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    v = copy ? json_string(copy) : NULL;
    free(copy);
    return v;
}
