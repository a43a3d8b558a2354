/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - members of JSON objects, by name. What is missing, or is of another kind than is asked
 * for, is nothing: "", 0, false, or the value given. So what comes from elsewhere is read without
 * a check first, and an object may be NULL. Strings live as long as the object. */
#ifndef STK_SYS_JSON_H
#define STK_SYS_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* json_loadb() for text that may be large. NULL: it is not JSON, or there is too little memory, for
 * which *why (may be NULL) has json_error_out_of_memory. jansson 2.14 ignores that its buffer for a
 * string cannot grow and reads and writes beyond it, so the memory that it may need is proved to be
 * there first. */
json_t *stk_json_load(const char *text, size_t len, size_t flags, json_error_t *why);
/* The same of a string without flags; NULL is no JSON. */
json_t *stk_json_loads(const char *text);

const char *stk_str(const json_t *o, const char *name);
const char *stk_str_or(const json_t *o, const char *name, const char *none);
/* It is there, and is this word. */
bool stk_str_is(const json_t *o, const char *name, const char *word);
/* Any number; what is behind its point is cut off. */
int64_t stk_int(const json_t *o, const char *name, int64_t none);
/* A number that is written without a point; else 0. */
json_int_t stk_whole(const json_t *o, const char *name);
double stk_num(const json_t *o, const char *name, double none);
bool stk_yes(const json_t *o, const char *name); /* it is true */
/* JSON has one kind of number, and 4.0 is a whole one: makes integers of such reals, in place. A
 * single value at the top stays as it is. */
void stk_json_make_whole(json_t *v);

#endif
