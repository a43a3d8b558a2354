/* SPDX-License-Identifier: Apache-2.0 */
/* test_logcut.c - a log that is over its cap stays text, and offsets in the output stay right. Each
 * case on a file system that can take a range out of a file, where there is one, and on tmpfs,
 * which cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/logcut.h"

#define CAP ((uint64_t)1 << 20)
#define HEAD (CAP / 4)
#define LINE 40

static char path[64];

static int open_log(const char *folder)
{
    int fd;

    (void)snprintf(path, sizeof(path), "%s/stk-logcut-%d", folder, (int)getpid());
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* Line i begins at byte 40 i of the output, and says so. */
static void write_lines(int fd, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        char line[LINE + 1];

        (void)snprintf(line, sizeof(line), "line at byte %-26u\n", i * LINE);
        assert_int_equal(write(fd, line, LINE), LINE);
    }
}

static char *read_file(size_t *ret_n)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text;

    assert_int_equal(fstat(fd, &st), 0);
    text = malloc((size_t)st.st_size + 1);
    assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
    (void)close(fd);
    text[st.st_size] = '\0';
    *ret_n = (size_t)st.st_size;
    return text;
}

/* Every line is whole; all but the one of the cut are where they say that they are. */
static void check_file(uint32_t lines)
{
    struct stk_logcut c;
    size_t n, seen = 0;
    char *text = read_file(&n), *line = text;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    stk_logcut_find(fd, HEAD, &c);
    (void)close(fd);
    assert_true(n <= CAP && c.lost > 0);
    assert_null(memchr(text, '\0', n));
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        unsigned at;

        if (line == text + c.at) {
            assert_memory_equal(line, "[stoker: the log reached its size limit, left out:", 50);
            assert_ptr_equal(end + 1, text + c.next);
            continue;
        }
        assert_int_equal(sscanf(line, "line at byte %u", &at), 1);
        assert_int_equal(at, stk_logcut_to_logical(&c, (uint64_t)(line - text)));
        assert_int_equal(stk_logcut_to_file(&c, at), line - text);
        seen++;
    }
    assert_int_equal(c.lost % LINE, 0);
    assert_int_equal(seen + c.lost / LINE, lines);
    assert_true(n > CAP - 3 * 65536);
    free(text);
}

static void cut_again_and_again(const char *folder)
{
    int fd = open_log(folder);

    for (uint32_t i = 0; i < 5; i++) {
        write_lines(fd, i * 40000, (i + 1) * 40000);
        assert_int_equal(stk_logcut_make(fd, HEAD, CAP, STK_LOGCUT_RUNS), 0);
    }
    write_lines(fd, 200000, 200100);
    assert_int_equal(stk_logcut_make(fd, HEAD, CAP, STK_LOGCUT_OVER), 0);
    check_file(200100);
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC); /* the job is started again */
    write_lines(fd, 200100, 260000);
    assert_int_equal(stk_logcut_make(fd, HEAD, CAP, STK_LOGCUT_OVER), 0);
    check_file(260000);
    (void)unlink(path);
}

static void a_cut_log_stays_text(void **state)
{
    (void)state;
    cut_again_and_again("/tmp");
    if (access("/dev/shm", W_OK) == 0)
        cut_again_and_again("/dev/shm");
}

static void a_small_log_is_left_alone(void **state)
{
    size_t n;
    int fd = open_log("/tmp");

    (void)state;
    write_lines(fd, 0, 26000);
    assert_int_equal(stk_logcut_make(fd, HEAD, CAP, STK_LOGCUT_OVER), 0);
    free(read_file(&n));
    assert_int_equal(n, 26000 * LINE);
    (void)unlink(path);
}

static void one_long_line_is_cut_between_characters(void **state)
{
    static const char *const folders[] = {"/tmp", "/dev/shm"};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        int fd = open_log(folders[access(folders[k], W_OK) == 0 ? k : 0]);
        size_t n;
        char *text;

        for (int i = 0; i < 1000000; i++)
            assert_int_equal(write(fd, "\xe2\x82\xac", 3), 3);
        assert_int_equal(stk_logcut_make(fd, HEAD, CAP, STK_LOGCUT_OVER), 0);
        text = read_file(&n);
        assert_true(n <= CAP);
        for (const char *p = text; *p; p++)
            if (*p == '\xe2') {
                assert_memory_equal(p, "\xe2\x82\xac", 3);
                p += 2;
            } else {
                assert_true(*p > 0); /* the line of the cut */
            }
        free(text);
        (void)unlink(path);
    }
}

static void text_that_only_looks_like_a_cut_is_none(void **state)
{
    static const char *const texts[] = {"12 bytes, from byte 262100 on]\n",
                                        "99999999999999999999 bytes, from byte 262100 on]\n",
                                        "0 bytes, from byte 262100 on]\n", "12 bytes, from\n"};
    struct stk_logcut c;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        int fd = open_log("/tmp"), in;

        write_lines(fd, 0, HEAD / LINE);
        assert_int_equal(ftruncate(fd, HEAD), 0);
        assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
        (void)close(fd);
        in = open(path, O_RDONLY | O_CLOEXEC);
        stk_logcut_find(in, HEAD, &c);
        assert_int_equal(c.lost, 0);
        (void)close(in);
        (void)unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_log_stays_text),
        cmocka_unit_test(a_small_log_is_left_alone),
        cmocka_unit_test(one_long_line_is_cut_between_characters),
        cmocka_unit_test(text_that_only_looks_like_a_cut_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
