/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - the Unix socket on which our plugins in slurmctld and stoker-libslurm talk: datagrams
 * of one word or two. Both read its place from slurm.conf, so it is said there and nowhere else.
 *
 *   pass         run the scheduler now: jobs were released
 *   pass all     likewise, and look at the whole queue
 *   hear         the sender wants the news from now on; it is answered with "hear"
 *   new          a job was submitted        } passed on to those who hear
 *   end NUMBER   a job ended or was requeued }
 *   look         to those who hear: more has happened than was told; also to who is new
 *
 * docs/spec/slurm-plugins.md. */
#ifndef STK_SLURMCTLD_WHERE_H
#define STK_SLURMCTLD_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define STK_SLURMCTLD_WORD 32 /* the longest datagram, with its end */

/* 'params' is SchedulerParameters of slurm.conf (stoker_socket=PATH), 'folder' StateSaveLocation,
 * where it is without that; both may be NULL. -ENAMETOOLONG, -ENOENT. */
int stk_slurmctld_address(const char *params, const char *folder, struct sockaddr_un *ret);

/* Whether the list has this word. */
bool stk_slurmctld_param(const char *params, const char *word);

/* What is behind 'key' ("stoker_then=") in the list; false: nothing, or too long. */
bool stk_slurmctld_value(const char *params, const char *key, char *ret, size_t size);

/* A datagram of the socket 'fd', which has SO_PASSCRED; false: there is none. One that is too long
 * is an empty word. *ret_who is the sender, (uid_t)-1 when the kernel does not say; 'from' may be
 * NULL, else *ret_len is the length of the sender's address. */
bool stk_slurmctld_receive(int fd, char word[STK_SLURMCTLD_WORD], uid_t *ret_who,
                           struct sockaddr_un *from, socklen_t *ret_len);

/* The number of a job as Slurm prints one: "JobId=12", "JobId=12_3(15)"; NULL and others: 0. */
uint32_t stk_slurmctld_job(const char *text);

#endif
