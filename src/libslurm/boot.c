/* SPDX-License-Identifier: Apache-2.0 */
/* boot.c - which slurmctld answers, known by when it was started.
 *
 * One that was killed gives out numbers again that it had given to jobs it has forgotten. A request
 * about a number that was made before then is about a job that is gone, and would be done to
 * another, whoever that belongs to. So the daemon says with each which slurmctld it has been told
 * of, and one that is older than the slurmctld there is is not done.
 *
 * Whether it is still the same costs slurmctld next to nothing: its configuration, if that was read
 * since. It is asked right before the request. */
#include <errno.h>
#include <pthread.h>

#include "libslurm/helper.h"

#define FRESH_MS 5 /* nobody starts a slurmctld in so short a time */

static struct {
    pthread_mutex_t lock;
    time_t asked_at, boot;
    int64_t known_at; /* ms */
} it = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int ask(void)
{
    slurm_conf_t *conf = NULL;

    if (slurm_load_ctl_conf(it.asked_at, &conf) != SLURM_SUCCESS)
        return errno == SLURM_NO_CHANGE_IN_DATA ? 0 : errno;
    it.asked_at = conf->last_update;
    it.boot = conf->boot_time;
    slurm_free_ctl_conf(conf);
    return 0;
}

int stk_slurm_boot(int64_t *ret_boot)
{
    int rc = 0;

    (void)pthread_mutex_lock(&it.lock);
    if (stk_slurm_now_ms() >= it.known_at + FRESH_MS)
        rc = ask();
    if (rc == 0)
        it.known_at = stk_slurm_now_ms();
    *ret_boot = it.boot;
    (void)pthread_mutex_unlock(&it.lock);
    return rc;
}

json_t *stk_slurm_too_old(const json_t *request)
{
    json_int_t of = json_integer_value(json_object_get(request, "boot"));
    int64_t boot;
    int error = of > 0 ? stk_slurm_boot(&boot) : 0;

    if (error == 0 && (of <= 0 || of == boot))
        return NULL;
    return json_pack("{s:b,s:s,s:i,s:b}", "ok", 0, "why",
                     error ? stk_slurm_trouble(error)
                           : "slurmctld was started again since this was asked for",
                     "code", error, "unanswered", 1);
}
