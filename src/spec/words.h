/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - the small languages people write job requests in: durations, sizes, times of day, array
 * and dependency expressions, signals, job ids. Shared by the job files, by #SBATCH lines and by
 * the command line.
 *
 * All take a NUL terminated string, return 0 or -EINVAL and write their result only on success.
 * Those without an stk_err leave the sentence to the caller, who knows the flag or the key.
 */
#ifndef STK_SPEC_WORDS_H
#define STK_SPEC_WORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define STK_MAX_SECONDS INT64_C(3155760000) /* 100 years: no duration is longer */
#define STK_MAX_ARRAY 100000                /* elements of an array, and items of a batch */
#define STK_MAX_ARRAY_INDEX 2147483647

/* A whole number, digits only, at most 'max'. */
int stk_words_whole(const char *s, int64_t max, int64_t *ret);

/* The same with an optional sign. */
int stk_words_signed(const char *s, int64_t min, int64_t max, int64_t *ret);

/* Seconds from "90" (times 'unit_s': 60 where minutes are meant, as Slurm does), "30:00" (minutes
 * and seconds), "1:30:00", "1-12" (days and hours), "1-12:30", "1-12:30:15", "1h30m", "45s",
 * "2d", "1w"; "unlimited", "infinite", "off" and "none" are 0. */
int stk_words_duration(const char *s, uint32_t unit_s, int64_t *ret_s);

/* MiB from "32G", "512", "1.5T", "64GiB", "100KB" (rounded up). A bare number counts 'unit': one of
 * K, M, G, T. All units are powers of 1024. */
int stk_words_size(const char *s, char unit, int64_t *ret_mib);

/* Unix seconds from "now", "now+90" (seconds), "now+2hours", "now+1day", "16:30", "16:30:15",
 * "4:30pm", "midnight", "noon", "teatime", "today", "tomorrow", "010224" (MMDDYY), "01/02/24",
 * "2024-01-02", "2024-01-02T16:30[:15]", and a bare number of nine or more digits (Unix seconds
 * already). Times of day are local; one that has passed is tomorrow's. -EINVAL: it is not a time.
 * -ERANGE: a day that does not exist, or a time that the clock skips on the day that is named; the
 * sentence says which part is wrong ("2027-02-30: February 2027 has 28 days"). */
int stk_words_time(const char *s, int64_t now_s, int64_t *ret_s, struct stk_err *err);

/* "0-9%2", "1,3,5-9:2": the description's "array" object. Indices are sorted, each once. */
int stk_words_array(const char *s, json_t **ret_array, struct stk_err *err);

/* "n[1-4],m7": names of nodes, with commas between them that are not in brackets. */
int stk_words_nodes(const char *s, json_t *list, struct stk_err *err);

/* "afterok:12:13,afterany:14_3,singleton": appends to 'depends' (the description's list) and sets
 * *ret_singleton, which is otherwise left alone. A bare "12" means afterok:12. */
int stk_words_depend(const char *s, json_t *depends, bool *ret_singleton, struct stk_err *err);

/* "USR1", "SIGUSR1" or "10": the signal's number. */
int stk_words_signal(const char *s, int *ret_signal);

/* "USR1" for 10; NULL when it has no name here. */
const char *stk_signal_name(int signal);

/* "[R|B:]USR1[@60]": the description's "signal" object. */
int stk_words_signal_ahead(const char *s, json_t **ret_signal, struct stk_err *err);

/* "12", "12_4" (element 4 of array 12) and "12_[...]" (all of them, as squeue shows them). */
struct stk_job_ref {
    uint32_t job;
    int64_t index; /* -1: the job, or the whole array */
};
int stk_words_job(const char *s, struct stk_job_ref *ret);

/* "n[1-3,07-09],gpu2" to each name in turn, at most 65536. 'each' returns 0 to go on. */
int stk_words_hosts(const char *s, int (*each)(void *ctx, const char *name), void *ctx);

/* "true", "yes", "on", "1" and their opposites. */
int stk_words_bool(const char *s, bool *ret);

/* Is it in "a|b|c"? */
bool stk_words_among(const char *s, const char *words);

/* UTF-8 without control characters; with 'lines' also newlines, carriage returns and tabs. */
bool stk_words_is_text(const char *s, size_t len, bool lines);

/* The first % code of an output pattern that is not one of %j %A %a %x %t %N %u %%; 0: all are. */
char stk_words_bad_pattern(const char *s);

/* The word as a message may show it: short, printable. */
struct stk_word {
    char text[48];
};
struct stk_word stk_words_show(const char *s);

#endif
