/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h - columns about jobs, and the three ways to ask for them: squeue's letters
 * ("%.18i %j"), squeue's names ("JobID:20,Name") and sacct's names ("JobID,State%20"). */
#ifndef STK_SLURMCMD_FIELDS_H
#define STK_SLURMCMD_FIELDS_H

#include <stdio.h>

#include "slurmcmd/slurm.h"

#define STK_FIELD_MAX 4200

struct stk_slurm_field {
    const char *name;   /* sacct's word, also known to squeue -O */
    const char *other;  /* another word of squeue -O; NULL: none */
    char letter;        /* squeue -o; 0: none */
    const char *header; /* of squeue; sacct shows 'name' */
    int width;          /* sacct's default */
    bool detail;        /* needs the job's description */
    void (*get)(const struct stk_slurm *s, const json_t *job, char *buf, size_t size);
};

struct stk_slurm_column {
    const struct stk_slurm_field *field; /* NULL: only 'text' */
    int width;                           /* 0: as wide as it is */
    bool right;
    char text[64]; /* in front of it */
};

struct stk_slurm_table {
    struct stk_slurm_column *columns;
    size_t n;
    char tail[64];  /* after the last */
    char separator; /* sacct -P: '|'; 0: columns */
    bool end;       /* sacct -p: one at the end too */
    bool names;     /* headers are sacct's names, underlined when there is no separator */
    bool detail;    /* some column needs the description */
};

/* One of Slurm's codes for what our reason says: "Dependency". */
void stk_slurm_reason(const json_t *job, char *buf, size_t size);
/* "afterok:12(failed),afterany:13"; "(null)": it depends on none. */
void stk_slurm_dependency(const json_t *job, char *buf, size_t size);

/* Reads a format. -EINVAL names the word or letter that is not known. */
int stk_slurm_letters(struct stk_slurm_table *t, const char *format, struct stk_err *err);
int stk_slurm_names(struct stk_slurm_table *t, const char *format, char width_mark,
                    struct stk_err *err);
void stk_slurm_table_done(struct stk_slurm_table *t);

void stk_slurm_header(const struct stk_slurm_table *t);
void stk_slurm_row(const struct stk_slurm_table *t, const struct stk_slurm *s, const json_t *job);

/* One column of any command: padded, cut when too long. */
void stk_slurm_cell(const char *text, int width, bool right);

/* Ends with a NULL name. Where a name stands twice, squeue means the first and sacct the last. */
extern const struct stk_slurm_field stk_slurm_fields[];

#endif
