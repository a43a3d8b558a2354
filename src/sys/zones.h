/* SPDX-License-Identifier: Apache-2.0 */
/* zones.h - time zones of this system: the files under /usr/share/zoneinfo (Debian: tzdata), or
 * where the variable TZDIR says. */
#ifndef STK_SYS_ZONES_H
#define STK_SYS_ZONES_H

#include "when/zone.h"

/* By name, "Europe/Berlin"; "local": the one of this machine. -ENOENT with what to do, -EINVAL,
 * -EBADMSG. */
int stk_zones_load(const char *name, struct stk_zone *ret, struct stk_err *err);
/* The machine's own: the variable TZ, /etc/localtime, or else UTC. */
void stk_zones_local(struct stk_zone *ret);

#endif
