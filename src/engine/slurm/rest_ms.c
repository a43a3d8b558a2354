/* SPDX-License-Identifier: Apache-2.0 */
/* rest_ms.c - how long a job rests before it is tried again (rest.c): twice as long each time.
 *
 * Gangs that share nodes and do not fit as Slurm lays them out are in each other's way, for ever,
 * if they are started together: so they rest, and not equally long. One to four times as long as it
 * would be, by another digit of their numbers each time: any two differ in one of them. */
#include "engine/slurm/inner.h"

#define FIRST_MS 5000
#define MOST_MS 300000
#define DIGITS 16u /* of a number, to the base of four */

static int64_t how_long(uint32_t times, int64_t most)
{
    int64_t ms = times > 7 ? most : (int64_t)FIRST_MS << (times - 1);

    return ms > most ? most : ms;
}

int64_t stk_slurm_rest_ms(uint32_t times)
{
    return how_long(times, MOST_MS);
}

int64_t stk_slurm_odd_ms(stk_job_number number, uint32_t times)
{
    const uint32_t digit = (number >> 2 * ((times - 1) % DIGITS)) % 4;

    return how_long(times, MOST_MS / 4) * (1 + digit);
}
