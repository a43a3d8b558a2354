/* SPDX-License-Identifier: Apache-2.0 */
/* scenario [-v] FILE... - plays the scenarios of each file. Exit code: 0 when all is as expected, 1
 * when something is not, 2 when a file cannot be read. docs/spec/scenarios.md. */
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

static char *slurp(const char *path, size_t *ret_len)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc(SCN_MAX_FILE + 1) : NULL;
    size_t n = text ? fread(text, 1, SCN_MAX_FILE + 1, f) : 0;

    if (f)
        (void)fclose(f);
    if (!text)
        (void)fprintf(stderr, "scenario: cannot read %s\n", path);
    if (n > SCN_MAX_FILE) {
        (void)fprintf(stderr, "scenario: %s is larger than %d bytes\n", path, SCN_MAX_FILE);
        free(text);
        return NULL;
    }
    *ret_len = n;
    return text;
}

static int play_file(const char *path, bool verbose)
{
    struct stk_err err = {{0}};
    size_t len = 0;
    char *text = slurp(path, &len);
    const char *at = text;
    uint32_t line = 0, n = 0, bad = 0;
    struct scenario s;
    int rc;

    if (!text)
        return 2;
    while ((rc = scn_parse(&at, text + len, &line, &s, &err)) > 0) {
        int failed = scn_play(&s, path, stdout, &err);

        if (failed < 0)
            (void)printf("%s: in \"%s\": %s\n", path, s.title, err.text);
        if (verbose && failed == 0)
            (void)printf("ok: %s\n", s.title);
        bad += failed != 0;
        n++;
        scn_free(&s);
    }
    if (rc < 0) {
        (void)printf("%s: %s\n", path, err.text);
        scn_free(&s);
    }
    (void)printf("%s: %u scenarios, %u not as expected\n", path, n, bad);
    free(text);
    return rc < 0 ? 2 : bad > 0;
}

int main(int argc, char **argv)
{
    bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    int worst = 0;

    if (argc < 2 + verbose) {
        (void)fprintf(stderr, "usage: scenario [-v] FILE...\n");
        return 2;
    }
    for (int i = 1 + verbose; i < argc; i++) {
        int rc = play_file(argv[i], verbose);

        worst = rc > worst ? rc : worst;
    }
    return worst;
}
