/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h - errors of GPUs: did one end a job, and which GPUs are not used any more because of
 * one. The latter is kept in the store until an operator says that the GPU is well. */
#ifndef STK_DAEMON_FAULTS_H
#define STK_DAEMON_FAULTS_H

#include "gpuview/gpuview.h"
#include "model/time.h"
#include "store/store.h"

/* 1: an error that ends processes, and a sentence; 0: none; the sentence may name a lesser one. */
int stk_fault_find(const struct stk_gpus *t, uint64_t mask, stk_time since, char *text,
                   size_t size);

/* What an earlier daemon has seen. */
void stk_faults_load(struct stk_gpus *t, struct stk_store *st);
/* Name and value under which a GPU's fault is kept; "" is none. */
void stk_fault_words(const struct stk_gpu *g, char *name, size_t name_size, char *value,
                     size_t value_size);

#endif
