/* SPDX-License-Identifier: Apache-2.0 */
/* store_image.h - the files of a store as bytes, to be damaged and put back. */
#ifndef STK_TESTS_STORE_IMAGE_H
#define STK_TESTS_STORE_IMAGE_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store_fixture.h"

static const char *const files[] = {"stoker.db", "stoker.db-wal", "stoker.ack"};
#define N_FILES (sizeof(files) / sizeof(*files))

struct image {
    unsigned char *data[N_FILES];
    size_t len[N_FILES]; /* 0: there is no such file */
};

static inline struct image load_image(struct box *b)
{
    struct image im = {{0}, {0}};

    for (size_t i = 0; i < N_FILES; i++) {
        char path[256];
        int fd = open(fx_dir_at(&b->dir, files[i], path, sizeof(path)), O_RDONLY | O_CLOEXEC);
        struct stat s;

        if (fd < 0)
            continue;
        assert_int_equal(fstat(fd, &s), 0);
        im.len[i] = (size_t)s.st_size;
        im.data[i] = malloc(im.len[i] + 1);
        assert_non_null(im.data[i]);
        assert_int_equal(read(fd, im.data[i], im.len[i]), (ssize_t)im.len[i]);
        (void)close(fd);
    }
    return im;
}

static inline void write_one(struct box *b, const char *name, const void *data, size_t len)
{
    char path[256];
    int fd;

    (void)unlink(fx_dir_at(&b->dir, name, path, sizeof(path)));
    if (!data)
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    (void)close(fd);
}

static inline void write_image(struct box *b, const struct image *im)
{
    char path[256];

    (void)unlink(fx_dir_at(&b->dir, "stoker.db-shm", path, sizeof(path)));
    for (size_t i = 0; i < N_FILES; i++)
        write_one(b, files[i], im->data[i], im->len[i]);
}

static inline void free_image(struct image *im)
{
    for (size_t i = 0; i < N_FILES; i++)
        free(im->data[i]);
}

#endif
