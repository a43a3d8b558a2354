/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - reads formats and prints rows; see fields.h. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "slurmcmd/fields.h"
#include "spec/words.h"

static struct stk_slurm_column *add(struct stk_slurm_table *t)
{
    struct stk_slurm_column *more = realloc(t->columns, (t->n + 1) * sizeof(*more));

    if (!more)
        return NULL;
    t->columns = more;
    more[t->n] = (struct stk_slurm_column){0};
    return &more[t->n++];
}

/* "%.18i": '.' means right, digits the width. */
static int add_letter(struct stk_slurm_table *t, const char **p, const char *text, size_t len,
                      struct stk_err *err)
{
    struct stk_slurm_column *c;
    const struct stk_slurm_field *f = stk_slurm_fields;
    const char *s = *p + 1;
    bool right = *s == '.';
    int width = 0;

    s += right || *s == '-';
    for (; *s >= '0' && *s <= '9' && width < 1000; s++)
        width = width * 10 + (*s - '0');
    while (f->name && f->letter != *s)
        f++;
    if (*s == '\0' || !f->name)
        return stk_err_set(err, -EINVAL, "the format has %%%c, which is not known",
                           *s > ' ' && *s < 127 ? *s : '?');
    c = add(t);
    if (!c)
        return stk_err_set(err, -ENOMEM, "out of memory");
    c->field = f;
    c->width = width;
    c->right = right;
    (void)snprintf(c->text, sizeof(c->text), "%.*s", (int)len, text);
    t->detail |= f->detail;
    *p = s + 1;
    return 0;
}

int stk_slurm_letters(struct stk_slurm_table *t, const char *format, struct stk_err *err)
{
    const char *p = format, *text = format;
    int rc = 0;

    while (rc == 0 && *p != '\0') {
        if (*p != '%') {
            p++;
            continue;
        }
        rc = add_letter(t, &p, text, (size_t)(p - text), err);
        text = p;
    }
    (void)snprintf(t->tail, sizeof(t->tail), "%s", text);
    return rc;
}

static const struct stk_slurm_field *find_name(const char *name, size_t n, bool sacct)
{
    const struct stk_slurm_field *found = NULL;

    for (const struct stk_slurm_field *f = stk_slurm_fields; f->name; f++)
        if ((strlen(f->name) == n && strncasecmp(f->name, name, n) == 0) ||
            (f->other && strlen(f->other) == n && strncasecmp(f->other, name, n) == 0))
            found = found && !sacct ? found : f;
    return found;
}

int stk_slurm_names(struct stk_slurm_table *t, const char *format, char width_mark,
                    struct stk_err *err)
{
    const char stop[] = {width_mark, ',', ' ', '\0'};

    while (*format != '\0') {
        size_t n = strcspn(format, stop);
        const struct stk_slurm_field *f = find_name(format, n, width_mark == '%');
        struct stk_slurm_column *c;
        long width;

        if (n == 0) {
            format++;
            continue;
        }
        if (!f)
            return stk_err_set(err, -EINVAL, "Invalid field requested: \"%.*s\"",
                               (int)(n < 40 ? n : 40), format);
        c = add(t);
        if (!c)
            return stk_err_set(err, -ENOMEM, "out of memory");
        c->field = f;
        c->width = width_mark == '%' ? f->width : 20;
        c->right = width_mark == '%';
        t->detail |= f->detail;
        format += n;
        if (*format == width_mark) {
            char *end;

            width = strtol(format + 1, &end, 10);
            c->width = (int)(width < 0 ? -width : width) % 10000;
            c->right = width_mark == '%' && width >= 0;
            format = end;
        }
        format += strspn(format, ", ");
    }
    return t->n > 0 ? 0 : stk_err_set(err, -EINVAL, "the format is empty");
}

void stk_slurm_table_done(struct stk_slurm_table *t)
{
    free(t->columns);
    *t = (struct stk_slurm_table){0};
}

void stk_slurm_cell(const char *text, int width, bool right)
{
    if (width <= 0)
        (void)fputs(text, stdout);
    else
        (void)printf(right ? "%*.*s" : "%-*.*s", width, width, text);
}

/* Text from users must not reach the terminal as anything but text. */
static void clean(char *text)
{
    if (stk_words_is_text(text, strlen(text), false))
        return;
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            *p = '?';
}

static void print_row(const struct stk_slurm_table *t, const struct stk_slurm *s, const json_t *job)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct stk_slurm_column *c = &t->columns[i];
        char text[STK_FIELD_MAX] = "";

        if (job)
            c->field->get(s, job, text, sizeof(text));
        else
            (void)snprintf(text, sizeof(text), "%s", t->names ? c->field->name : c->field->header);
        clean(text);
        (void)fputs(c->text, stdout);
        if (t->separator) {
            (void)printf("%s%s", text, i + 1 < t->n || t->end ? (char[]){t->separator, '\0'} : "");
            continue;
        }
        stk_slurm_cell(text, c->width, c->right);
        if (t->names && i + 1 < t->n)
            (void)putchar(' ');
    }
    (void)printf("%s\n", t->tail);
}

void stk_slurm_header(const struct stk_slurm_table *t)
{
    print_row(t, NULL, NULL);
    for (size_t i = 0; t->names && !t->separator && i < t->n; i++) {
        for (int k = 0; k < t->columns[i].width; k++)
            (void)putchar('-');
        (void)putchar(i + 1 < t->n ? ' ' : '\n');
    }
}

void stk_slurm_row(const struct stk_slurm_table *t, const struct stk_slurm *s, const json_t *job)
{
    print_row(t, s, job);
}
