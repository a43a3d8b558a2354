/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h - the one table of what a job description may hold. The check, the documentation
 * (docs/spec/job.md), the schema and the job files' readers all come from it. */
#ifndef STK_SPEC_KEYS_H
#define STK_SPEC_KEYS_H

#include <jansson.h>
#include <stdint.h>
#include <string.h>

enum stk_key_type {
    STK_KEY_NAME,    /* a string in one line, without '/' */
    STK_KEY_LINE,    /* a string in one line */
    STK_KEY_TEXT,    /* a string, lines allowed */
    STK_KEY_PATH,    /* an absolute path */
    STK_KEY_PATTERN, /* a path with %j and the like */
    STK_KEY_WORD,    /* one of 'words' */
    STK_KEY_SIGNAL,  /* a signal's name */
    STK_KEY_IMAGE,   /* the name of a container image, or an absolute path */
    STK_KEY_INT,     /* a whole number */
    STK_KEY_NUMBER,  /* a number, at most three digits after the point count */
    STK_KEY_BOOL,    /* true or false */
    STK_KEY_BUDGET,  /* a whole number or "always" */
    STK_KEY_INTS,    /* a list of whole numbers */
    STK_KEY_STRINGS, /* a list of strings */
    STK_KEY_NAMES,   /* a list of names */
    STK_KEY_TYPES,   /* a list of names, or numbers above 0 by name */
    STK_KEY_AMOUNTS, /* whole numbers by name */
    STK_KEY_ENVS,    /* strings by name */
    STK_KEY_SECRETS, /* absolute paths by name */
    STK_KEY_OBJECT,  /* keys of its own */
    STK_KEY_OBJECTS, /* a list of those */
    STK_KEY_TYPE_MAX
};

struct stk_key {
    const char *name;
    enum stk_key_type type;
    int64_t min, max;  /* numbers (and those of INTS): the value; strings: bytes; else: entries */
    int64_t each;      /* STRINGS, NAMES, TYPES, ENVS: bytes of one; INTS: entries; AMOUNTS: the
                          largest number */
    const char *words; /* WORD: "a|b|c" */
    const struct stk_key *keys; /* OBJECT and OBJECTS; ends with a NULL name */
    const char *standard;       /* what holds when it is not given, in words */
    const char *help;
};

#define STK_MAX_TEXT (1 << 20) /* bytes of a script, of all arguments, of all of envs */
#define STK_MAX_ENVS 4096
#define STK_MAX_ENV_NAME 255
#define STK_MAX_ARGS 4096
#define STK_MAX_ARG 131071 /* bytes of one argument or NAME=value; what execve() takes */
#define STK_MAX_PATH 4095
#define STK_MAX_ITEMS_BYTES (8 << 20)

/* jansson wants to be able to write to what it only walks or counts. */
static inline json_t *stk_json_loose(const json_t *v)
{
    json_t *p;

    memcpy(&p, &v, sizeof(p));
    return p;
}

/* Ends with a NULL name. */
const struct stk_key *stk_spec_keys(void);

/* The key of that name in a table; NULL: there is none. */
const struct stk_key *stk_key_find(const struct stk_key *keys, const char *name);

/* The name in the table that was meant by 'word', as base/near.h counts; NULL: none. */
const char *stk_key_nearest(const struct stk_key *keys, const char *word, unsigned *best);

/* "whole number", "list of strings": for messages and documents. */
const char *stk_key_type_name(enum stk_key_type type);

#endif
