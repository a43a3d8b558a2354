/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FILE *fake_open(const char *name, const char *mode)
{
    const char *dir = getenv("STOKER_FAKE_DIR");
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/%s", dir ? dir : "/nonexistent", name);
    return fopen(path, mode);
}

bool fake_without(const char *what)
{
    const char *all = getenv("STOKER_FAKE_WITHOUT");
    char list[512], *word, *rest = list;

    (void)snprintf(list, sizeof(list), "%s", all ? all : "");
    while ((word = strsep(&rest, " ")))
        if (strcmp(word, what) == 0)
            return true;
    return false;
}

int fake_fail(const char *step, int pid)
{
    const char *all = getenv("STOKER_FAKE_FAIL");
    char list[512], *word, *rest = list;

    (void)snprintf(list, sizeof(list), "%s", all ? all : "");
    while ((word = strsep(&rest, " "))) {
        char name[32] = "", what[32] = "";
        int which = 0;

        if (sscanf(word, "%31[^:]:%d:%31s", name, &which, what) != 3 || strcmp(name, step) != 0 ||
            (which != 0 && which != pid))
            continue;
        while (strcmp(what, "hang") == 0)
            (void)pause();
        if (strcmp(what, "crash") == 0)
            abort();
        return atoi(what);
    }
    return 0;
}

static const char *const states[] = {"running", "locked", "checkpointed", "failed"};

int fake_state(int pid)
{
    char name[32], word[32] = "";
    FILE *f;

    (void)snprintf(name, sizeof(name), "%d.state", pid);
    f = fake_open(name, "re");
    if (!f)
        return -1;
    if (fscanf(f, "%31s", word) != 1)
        word[0] = '\0';
    (void)fclose(f);
    for (int i = 0; i < 4; i++)
        if (strcmp(word, states[i]) == 0)
            return i;
    return -1;
}

void fake_set_state(int pid, int state)
{
    char name[32];
    FILE *f;

    (void)snprintf(name, sizeof(name), "%d.state", pid);
    f = fake_open(name, "we");
    if (!f)
        return;
    (void)fprintf(f, "%s\n", states[state]);
    (void)fclose(f);
}

static unsigned long long sum(int gpu, int pid)
{
    FILE *f = fake_open("procs", "re");
    unsigned long long all = 0, mib;
    char line[256];
    int g, p;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%d %d %llu", &g, &p, &mib) == 3 && g == gpu && (pid == 0 || p == pid))
            all += fake_state(p) == 2 ? 4 : mib;
    if (f)
        (void)fclose(f);
    return all;
}

unsigned long long fake_held(int gpu, int pid)
{
    return sum(gpu, pid);
}

unsigned long long fake_used(int gpu)
{
    return sum(gpu, 0);
}
