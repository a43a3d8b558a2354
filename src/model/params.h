/* SPDX-License-Identifier: Apache-2.0 */
/* params.h - policy parameters: "las.thresholds=3250,7200,18000".
 *
 * A policy declares what it takes in a table of struct stk_param. From that table come the check of
 * a name and value given by a user, the help text and the documents. Values are kept as text that
 * has been checked; typed getters read them and fall back to the declared default.
 */
#ifndef STK_MODEL_PARAMS_H
#define STK_MODEL_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/time.h"

enum stk_param_type {
    STK_PARAM_INT,     /* whole number */
    STK_PARAM_SECONDS, /* seconds, up to six decimals */
    STK_PARAM_MILLI,   /* up to three decimals; kept in thousandths */
    STK_PARAM_LIST,    /* ascending whole numbers joined by commas */
    STK_PARAM_SIZES,   /* seconds, or by size: "8:40,*:60" is 40 s up to 8 GPUs, else 60 s */
    STK_PARAM_WORD,    /* one of 'words' */
};

struct stk_param {
    const char *name;
    enum stk_param_type type;
    const char *def;   /* as a user would write it; "" : not set */
    int64_t min, max;  /* of INT and LIST items; of SECONDS and SIZES in seconds; of MILLI in
                          thousandths */
    const char *words; /* WORD: "a|b|c" */
    const char *help;
};

#define STK_MAX_PARAMS 32
#define STK_MAX_PARAM_TEXT 200
#define STK_MAX_PARAM_LIST 16

struct stk_params {
    struct {
        const struct stk_param *decl;
        char text[STK_MAX_PARAM_TEXT];
    } set[STK_MAX_PARAMS];
    uint32_t n;
};

/* Checks 'text' against the declaration and remembers it, replacing an earlier value. */
int stk_params_set(struct stk_params *p, const struct stk_param *decl, const char *text,
                   struct stk_err *err);

bool stk_params_has(const struct stk_params *p, const struct stk_param *decl);
int64_t stk_params_int(const struct stk_params *p, const struct stk_param *decl);
int64_t stk_params_milli(const struct stk_params *p, const struct stk_param *decl);
stk_time stk_params_seconds(const struct stk_params *p, const struct stk_param *decl);
/* Fills at most STK_MAX_PARAM_LIST numbers, returns how many. */
uint32_t stk_params_list(const struct stk_params *p, const struct stk_param *decl, int64_t *ret);
/* The value of a SIZES parameter for a job of that many GPUs. */
stk_time stk_params_size(const struct stk_params *p, const struct stk_param *decl, uint64_t gpus);
/* All of it: up to so many GPUs (-1: any), and microseconds. Returns how many, at most 'most'. */
uint32_t stk_params_sizes(const struct stk_params *p, const struct stk_param *decl,
                          int64_t *ret_upto, stk_time *ret_us, uint32_t most);
bool stk_params_word(const struct stk_params *p, const struct stk_param *decl, const char *word);

#endif
