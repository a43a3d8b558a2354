/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - what is executed: the command or the script, with set-up lines before it and a
 * container around both. From the inside out:
 *     command | script | shell      then  sh -c 'setup; exec "$@"'      then  podman run ... */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/shim.h"
#include "shim/words.h"

#define MAX_WORDS 65536

static void add_taken(struct stk_words *w, char *take_word)
{
    char **more = w->n < MAX_WORDS ? realloc(w->word, (w->n + 2) * sizeof(*more)) : NULL;

    if (more)
        w->word = more;
    if (!more || !take_word) {
        free(take_word);
        w->failed = true;
        return;
    }
    w->word[w->n++] = take_word;
    w->word[w->n] = NULL;
}

void stk_words_add(struct stk_words *w, const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        s = NULL;
    va_end(ap);
    add_taken(w, s);
}

/* Every {} in the word becomes the item. */
static char *fill(const char *word, const char *item)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    for (const char *p = word; *p; p++) {
        if (p[0] == '{' && p[1] == '}') {
            (void)fputs(item, f);
            p++;
        } else {
            (void)fputc(*p, f);
        }
    }
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void add_all(struct stk_words *w, const json_t *list, const char *item)
{
    const json_t *v;
    size_t i;

    json_array_foreach(list, i, v)
    {
        const char *word = json_string_value(v);

        if (word)
            add_taken(w, item ? fill(word, item) : strdup(word));
    }
}

/* A word that is not there in the container's file system would be found too late: sh is. */
static void add_setup(const struct stk_launch *l, struct stk_words *w)
{
    const char *setup = stk_str_or(l->spec, "setup", NULL);
    bool bash;

    if (!setup || !*setup)
        return;
    bash = !stk_str_or(l->spec, "image", NULL) && access("/bin/bash", X_OK) == 0;
    stk_words_add(w, "%s", bash ? "/bin/bash" : "/bin/sh");
    stk_words_add(w, "-c");
    stk_words_add(w, "set -e\n%s\nset +e\nexec \"$@\"\n", setup);
    stk_words_add(w, "setup");
}

static void add_script(const struct stk_shim *s, struct stk_words *w, const char *item)
{
    const char *script = stk_str(s->l.spec, "script");

    if (strncmp(script, "#!", 2) != 0)
        stk_words_add(w, "/bin/sh");
    stk_words_add(w, "%s", s->script);
    add_all(w, json_object_get(s->l.spec, "args"), item);
}

char **stk_command_words(const struct stk_shim *s, uint32_t task, char **env, struct stk_err *err)
{
    const struct stk_launch *l = &s->l;
    const json_t *command = json_object_get(l->spec, "command");
    struct stk_words w = {0};
    const char *item = NULL;

    if (l->items)
        item = json_string_value(json_array_get(l->items, (size_t)s->tasks[task].item));
    if (stk_str_or(l->spec, "image", NULL) && stk_image_words(s, task, env, &w, err) < 0)
        return NULL;
    add_setup(l, &w);
    if (s->script[0])
        add_script(s, &w, item);
    else if (json_array_size(command) > 0)
        add_all(&w, command, item);
    else if (l->interactive)
        stk_words_add(&w, "%s", l->shell);
    else {
        (void)stk_err_set(err, -EINVAL, "it has neither a command nor a script");
        return NULL;
    }
    if (!w.failed)
        return w.word;
    (void)stk_err_set(err, -ENOMEM, "out of memory for its command");
    free(w.word); /* not the words: the process is about to end */
    return NULL;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/* The folder belongs to the daemon and nobody else may make files in it: the user owns the file
 * and can do no harm with its name. */
int stk_command_script(struct stk_shim *s, struct stk_err *err)
{
    const char *text = stk_str_or(s->l.spec, "script", NULL);
    int fd, rc;

    if (!text)
        return 0;
    rc = snprintf(s->script, sizeof(s->script), "%s/script/stoker-%u.%u", s->l.state_dir,
                  s->l.number, s->l.launch);
    if (rc < 0 || (size_t)rc >= sizeof(s->script)) {
        s->script[0] = 0;
        return stk_err_set(err, -ENAMETOOLONG, "the state folder's path is too long");
    }
    (void)unlink(s->script);
    fd = open(s->script, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
    if (fd < 0)
        return stk_err_set(err, -errno, "cannot write its script: %s", strerror(errno));
    rc = write_all(fd, text, strlen(text));
    if (rc == 0 && geteuid() == 0 && fchown(fd, s->l.uid, s->l.gid) < 0)
        rc = -errno;
    if (rc == 0 && fchmod(fd, 0700) < 0)
        rc = -errno;
    (void)close(fd);
    return rc < 0 ? stk_err_set(err, rc, "cannot write its script: %s", strerror(-rc)) : 0;
}

void stk_command_clean(struct stk_shim *s)
{
    if (s->script[0])
        (void)unlink(s->script);
}
