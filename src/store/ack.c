/* SPDX-License-Identifier: Apache-2.0 */
/* ack.c - the file of what was acknowledged, and the check of a WAL against it.
 *
 * The file has two slots that are written in turn, each with a checksum: a write that is torn
 * leaves the other. It is not flushed with each commit. The WAL is, before: so what is in this file
 * after a power cut is never more than what the WAL has, and after kill -9 it is exact. Only when
 * the WAL has been emptied into the database must that be known before the next commit begins to
 * overwrite it, so then it is flushed.
 *
 * The checksums of WAL frames are SQLite's
 * (https://sqlite.org/fileformat2.html#checksum_algorithm), each over all frames before it.
 */
#include "store/ack.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

#define SLOT_BYTES 512 /* apart, so that one write does not tear both */
#define SLOT_WORDS 8
#define MAGIC UINT64_C(0x73746f6b61636b31) /* "stokack1" */
#define WAL_HEADER 32
#define FRAME_HEADER 24
#define WAL_MAGIC UINT32_C(0x377f0682)
#define MAX_PAGE 65536

/* ---- slots ---- */

static uint64_t hash_slot(const uint64_t word[SLOT_WORDS])
{
    uint64_t h = MAGIC;

    for (int i = 0; i < SLOT_WORDS - 1; i++)
        h = stk_hash_mix(h, le64toh(word[i]));
    return stk_hash_mix(h, 0);
}

static bool read_slot(int fd, int slot, struct stk_ack *ret)
{
    uint64_t word[SLOT_WORDS];

    if (pread(fd, word, sizeof(word), (off_t)slot * SLOT_BYTES) != (ssize_t)sizeof(word) ||
        le64toh(word[0]) != MAGIC || le64toh(word[7]) != hash_slot(word) ||
        le64toh(word[2]) > STK_ACK_CLEAN)
        return false;
    *ret =
        (struct stk_ack){.turn = le64toh(word[1]),
                         .state = (enum stk_ack_state)le64toh(word[2]),
                         .salt = {(uint32_t)(le64toh(word[3]) >> 32), (uint32_t)le64toh(word[3])},
                         .frames = (uint32_t)le64toh(word[4]),
                         .counter = (uint32_t)le64toh(word[5]),
                         .seq = le64toh(word[6])};
    return true;
}

int stk_ack_read(int dir_fd, struct stk_ack *ret)
{
    int fd = openat(dir_fd, STK_ACK_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stk_ack a, b;
    bool has_a, has_b;

    if (fd < 0)
        return -errno;
    has_a = read_slot(fd, 0, &a);
    has_b = read_slot(fd, 1, &b);
    (void)close(fd);
    if (!has_a && !has_b)
        return -EUCLEAN;
    *ret = has_a && (!has_b || a.turn > b.turn) ? a : b;
    return 0;
}

int stk_ack_open(int dir_fd)
{
    int fd = openat(dir_fd, STK_ACK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    /* cppcheck-suppress resourceLeak ; it is the caller's */
    return fd < 0 ? -errno : fd;
}

int stk_ack_write(int fd, struct stk_ack *ack, bool flush)
{
    uint64_t word[SLOT_WORDS] = {
        htole64(MAGIC),       htole64(++ack->turn),
        htole64(ack->state),  htole64((uint64_t)ack->salt[0] << 32 | ack->salt[1]),
        htole64(ack->frames), htole64(ack->counter),
        htole64(ack->seq)};

    word[7] = htole64(hash_slot(word));
    if (pwrite(fd, word, sizeof(word), (off_t)(ack->turn % 2) * SLOT_BYTES) !=
        (ssize_t)sizeof(word))
        return errno ? -errno : -EIO;
    return flush && fdatasync(fd) < 0 ? -errno : 0;
}

/* ---- the WAL ---- */

struct sum {
    uint32_t a, b;
    bool big; /* numbers are taken as big-endian */
};

static uint32_t get_be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void add_sum(struct sum *s, const unsigned char *p, size_t n)
{
    uint32_t a = s->a, b = s->b, x[2];

    if (s->big)
        for (const unsigned char *end = p + n; p < end; p += 8) {
            a += get_be32(p) + b;
            b += get_be32(p + 4) + a;
        }
    else
#pragma GCC unroll 4
        for (const unsigned char *end = p + n; p < end; p += 8) { /* most machines' way: fast */
            memcpy(x, p, sizeof(x));
            a += le32toh(x[0]) + b;
            b += le32toh(x[1]) + a;
        }
    s->a = a;
    s->b = b;
}

static bool equals(const struct sum *s, const unsigned char *p)
{
    return s->a == get_be32(p) && s->b == get_be32(p + 4);
}

struct frames { /* being read, one after the other */
    int fd;
    const struct stk_wal *wal;
    size_t len; /* of a frame with its header */
    uint32_t n; /* the next */
    struct sum sum;
    unsigned char *frame; /* the latest */
};

/* Reads the next frame. False: there is none. 'ret_right': it is of this WAL, and follows the one
 * before it. */
static bool read_frame(struct frames *f, bool *ret_right)
{
    const unsigned char *h = f->frame;

    if (pread(f->fd, f->frame, f->len, WAL_HEADER + (off_t)f->n * (off_t)f->len) != (ssize_t)f->len)
        return false;
    *ret_right = get_be32(h) != 0 && get_be32(h + 8) == f->wal->salt[0] &&
                 get_be32(h + 12) == f->wal->salt[1];
    if (*ret_right) {
        add_sum(&f->sum, h, 8);
        add_sum(&f->sum, h + FRAME_HEADER, f->len - FRAME_HEADER);
        *ret_right = equals(&f->sum, h + 16);
    }
    return true;
}

/* Whether, from the frame after the one that was read and is not right, there is a frame that
 * follows the last frame of a commit. It belongs to a later commit then, which SQLite begins only
 * when the one before it is on the disk: no power cut leaves a gap before it, only damage does.
 *
 * Whether a frame follows another is told by the checksum in the other's header, be that frame
 * right or not. So frames that were left by transactions that were given up are not taken for
 * commits. */
static bool find_later_commit(struct frames *f)
{
    bool right, ends;

    do {
        ends = get_be32(f->frame + 4) != 0; /* the last frame of a commit */
        f->sum.a = get_be32(f->frame + 16);
        f->sum.b = get_be32(f->frame + 20);
        f->n++;
        if (!read_frame(f, &right))
            return false;
    } while (!ends || !right);
    return true;
}

/* How many frames from the first on are right, and whether there is a gap. */
static int read_frames(int fd, struct sum s, uint32_t page, const struct stk_wal_scan *scan,
                       struct stk_wal *w)
{
    struct frames f = {.fd = fd, .wal = w, .len = (size_t)FRAME_HEADER + page, .sum = s};
    bool right = false;

    f.frame = malloc(f.len);
    if (!f.frame)
        return -ENOMEM;
    while ((scan->enough == 0 || f.n < scan->enough) && read_frame(&f, &right) && right) {
        if (scan->page)
            scan->page(scan->ctx, get_be32(f.frame));
        right = false;
        f.n++;
    }
    w->frames = f.n;
    w->gap = scan->enough == 0 && w->bytes >= WAL_HEADER + ((uint64_t)f.n + 1) * f.len &&
             find_later_commit(&f);
    free(f.frame);
    return 0;
}

int stk_wal_read(int dir_fd, const char *name, const struct stk_wal_scan *scan, struct stk_wal *ret)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    unsigned char head[WAL_HEADER];
    struct sum s = {0};
    struct stat st;
    uint32_t page;
    int rc = 0;

    *ret = (struct stk_wal){0};
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    ret->bytes = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
        (get_be32(head) & ~UINT32_C(1)) == WAL_MAGIC) {
        s.big = get_be32(head) & 1;
        page = get_be32(head + 8);
        add_sum(&s, head, 24);
        ret->whole = equals(&s, head + 24) && page >= 512 && page <= MAX_PAGE && page % 512 == 0;
        ret->salt[0] = get_be32(head + 16);
        ret->salt[1] = get_be32(head + 20);
        if (ret->whole)
            rc = read_frames(fd, s, page, scan, ret);
    }
    (void)close(fd);
    return rc;
}

int stk_wal_salt(int fd, uint32_t ret_salt[2])
{
    unsigned char salt[8];

    if (pread(fd, salt, sizeof(salt), 16) != (ssize_t)sizeof(salt))
        return -EIO;
    ret_salt[0] = get_be32(salt);
    ret_salt[1] = get_be32(salt + 4);
    return 0;
}
