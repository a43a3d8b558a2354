/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/prop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

uint64_t prop_seed;
const char *prop_world;
static const char *name_of;

static void tell(int sig)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "%s%s%s failed at STOKER_SEED=%llu\n", name_of,
                     prop_world ? ": " : "", prop_world ? prop_world : "",
                     (unsigned long long)prop_seed);

    (void)!write(2, text, (size_t)n);
    (void)signal(sig, SIG_DFL);
    (void)raise(sig);
}

void prop_watch(const char *program)
{
    name_of = program;
    (void)signal(SIGABRT, tell);
}

uint64_t prop_number(const char *name, uint64_t usual)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : usual;
}
