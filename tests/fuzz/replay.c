/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target over every file of a corpus, without a fuzzer: the corpus as a
 * test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);
    size_t n;

    if (!f || !data) {
        perror(path);
        exit(1);
    }
    n = fread(data, 1, 1 << 20, f);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 1;
}

int main(int argc, char **argv)
{
    DIR *d = argc > 1 ? opendir(argv[1]) : NULL;
    int n = 0;

    if (!d) {
        (void)fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    if (LLVMFuzzerInitialize)
        (void)LLVMFuzzerInitialize(&argc, &argv);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[4096];

        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
        n += replay(path);
    }
    (void)closedir(d);
    (void)printf("%d inputs\n", n);
    return n > 0 ? 0 : 1;
}
