/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - a list of words to execute, being put together. A lack of memory is remembered. */
#ifndef STK_SHIM_WORDS_H
#define STK_SHIM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct stk_shim;

struct stk_words {
    char **word; /* malloced; NULL at the end */
    size_t n;
    bool failed;
};

void stk_words_add(struct stk_words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* image.c: the words that begin a container around the command; 'env' is what it will have. */
int stk_image_words(const struct stk_shim *s, uint32_t task, char *const *env, struct stk_words *w,
                    struct stk_err *err);
/* What runs the image of the job: chosen once, before any task starts. */
void stk_image_choose(struct stk_shim *s);
/* Starts what removes the job's containers, whatever state they are in; the reaper waits for it. */
void stk_image_remove(struct stk_shim *s);

#endif
