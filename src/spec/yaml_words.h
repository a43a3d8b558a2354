/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_words.h - the words of job files: which there are and what each becomes. Used by yaml.c. */
#ifndef STK_SPEC_YAML_WORDS_H
#define STK_SPEC_YAML_WORDS_H

#include "spec/keys.h"
#include "spec/yaml_tree.h"

struct stk_yaml_job {
    const struct stk_yaml *y;
    json_t *job;      /* the description so far */
    json_t *origin;   /* key of the description: path in the file */
    const char *path; /* of the word in hand */
    struct stk_err *err;
};

struct stk_yaml_word {
    const char *path; /* "resources.gpus"; NULL ends the table */
    int (*take)(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v);
    const char *text; /* a key, or the sentence of a refusal */
};

extern const struct stk_yaml_word stk_yaml_words[];

/* Those of yaml_resources.c. */
int stk_yaml_accelerators(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v);
int stk_yaml_cpus(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v);
int stk_yaml_memory(struct stk_yaml_job *j, const struct stk_yaml_word *w, const json_t *v);

/* "job.yaml:7: resources.gpus: " and the sentence. */
int stk_yaml_bad(const struct stk_yaml_job *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets a key of the description and notes where it came from. */
int stk_yaml_put(struct stk_yaml_job *j, const char *key, json_t *take_value);

/* The tree's value as the key's type wants it: "8" as a number where numbers are expected. What
 * does not look right is left as it is, for the check to complain about. A new reference. */
json_t *stk_yaml_typed(const struct stk_key *k, const json_t *v);

#endif
