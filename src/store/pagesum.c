/* SPDX-License-Identifier: Apache-2.0 */
/* pagesum.c - the VFS that checks pages.
 *
 * SQLite reads and writes a database file page by page. A page that goes to the file gets its
 * checksum on the way; one that comes from it is compared. The WAL, journals and temporary files
 * are opened by the system's VFS directly: the frames of a WAL have checksums of SQLite's own, and
 * a page gets ours when the WAL is copied into the database. So the reserved bytes of a page in the
 * WAL mean nothing.
 *
 * Not every read is a whole page. SQLite reads the header before it knows the page size and before
 * it has recovered the WAL, when page 1 of the file may be half written: reads within the header
 * are passed through. Any other part of a page is read with its whole page.
 *
 * The checksum covers the page's number, so that a page in the place of another does not match. It
 * has 64 bits and takes in two words with each multiplication, whose halves it folds: damage that
 * nobody made on purpose goes unnoticed about once in 2^64 times. It does not depend on the
 * machine's byte order, and it is no protection against people who can write to the file.
 *
 * Memory mapping would pass by the VFS: its methods are offered as version 2, which has none.
 */
#include "store/pagesum.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/db.h"

#define NAME "stoker"
#define PAGE STK_STORE_PAGE_BYTES
#define SUMMED (PAGE - STK_PAGESUM_BYTES) /* bytes that the checksum covers */
#define HEADER 100                        /* of page 1 */
#define AT_PAGE_SIZE 16
#define AT_RESERVED 20

/* SQLite locks bytes of this page and never stores anything there. */
#define UNUSED_PAGE (0x40000000 / PAGE + 1)

struct sum_vfs {
    sqlite3_vfs base; /* the system's, but for its name, size and xOpen */
    sqlite3_vfs *real;
};

struct sum_file { /* the file of the system's VFS follows */
    sqlite3_file base;
    unsigned char *page; /* scratch */
    bool summed;         /* its pages have checksums */
    bool tolerate;
    uint32_t bad; /* the latest page that did not match */
};

/* ---- the checksum ---- */

__extension__ typedef unsigned __int128 u128;

static uint64_t get_word(const unsigned char *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof(x));
    return le64toh(x);
}

static uint64_t fold(uint64_t x, uint64_t y)
{
    u128 p = (u128)x * y;

    return (uint64_t)(p >> 64) ^ (uint64_t)p;
}

uint64_t stk_pagesum(const unsigned char *page, uint32_t number)
{
    const uint64_t k = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t sum = UINT64_C(0xc2b2ae3d27d4eb4f) ^ number;
    size_t i;

#pragma GCC unroll 7
    for (i = 0; i + 16 <= SUMMED; i += 16)
        sum = fold(get_word(page + i) ^ k, get_word(page + i + 8) ^ sum);
    return fold(get_word(page + i) ^ k, sum ^ ~k);
}
_Static_assert(SUMMED % 16 == 8, "one word is left after the pairs");

static void put_sum(unsigned char *page, uint32_t number)
{
    uint64_t sum = htole64(stk_pagesum(page, number));

    memcpy(page + SUMMED, &sum, sizeof(sum));
}

static bool matches(const unsigned char *page, uint32_t number)
{
    return get_word(page + SUMMED) == stk_pagesum(page, number);
}

static bool header_says_summed(const unsigned char *header)
{
    return header[AT_PAGE_SIZE] == PAGE >> 8 && header[AT_PAGE_SIZE + 1] == 0 &&
           header[AT_RESERVED] == STK_PAGESUM_BYTES;
}

/* ---- reading and writing ---- */

static sqlite3_file *real_of(sqlite3_file *file)
{
    return (sqlite3_file *)((struct sum_file *)file + 1);
}

static uint32_t number_of(sqlite3_int64 at)
{
    return (uint32_t)(at / PAGE + 1);
}

/* Compares a page that was read. 'rc' is what the read gave: a page that is cut off never matches.
 */
static int judge_page(struct sum_file *f, const unsigned char *page, uint32_t number, int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        return rc;
    if (rc == SQLITE_OK && matches(page, number))
        return SQLITE_OK;
    f->bad = number;
    return f->tolerate ? rc : SQLITE_IOERR_DATA;
}

static int read_part(struct sum_file *f, void *to, int n, sqlite3_int64 at)
{
    sqlite3_file *real = real_of(&f->base);
    sqlite3_int64 begin = at - at % PAGE;
    int rc;

    if (at + n > begin + PAGE) /* SQLite never reads across pages */
        return SQLITE_IOERR_READ;
    rc = real->pMethods->xRead(real, f->page, PAGE, begin);
    rc = judge_page(f, f->page, number_of(at), rc);
    if (rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ)
        memcpy(to, f->page + at % PAGE, (size_t)n);
    return rc;
}

static int read_file(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    struct sum_file *f = (struct sum_file *)file;
    sqlite3_file *real = real_of(file);
    int rc;

    if (!f->summed || at + n <= HEADER)
        return real->pMethods->xRead(real, to, n, at);
    if (n != PAGE || at % PAGE != 0)
        return read_part(f, to, n, at);
    rc = real->pMethods->xRead(real, to, n, at);
    return judge_page(f, to, number_of(at), rc);
}

static int write_file(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
    struct sum_file *f = (struct sum_file *)file;
    sqlite3_file *real = real_of(file);

    if (at == 0 && n >= HEADER)
        f->summed = n == PAGE && header_says_summed(from);
    if (!f->summed || n != PAGE || at % PAGE != 0)
        return real->pMethods->xWrite(real, from, n, at);
    memcpy(f->page, from, SUMMED); /* what SQLite has in its cache is not ours to change */
    put_sum(f->page, number_of(at));
    return real->pMethods->xWrite(real, f->page, n, at);
}

/* ---- what is passed through ---- */

static int close_file(sqlite3_file *file)
{
    struct sum_file *f = (struct sum_file *)file;
    sqlite3_file *real = real_of(file);

    free(f->page);
    f->page = NULL;
    return real->pMethods->xClose(real);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int sync_file(sqlite3_file *file, int flags)
{
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int size_file(sqlite3_file *file, sqlite3_int64 *ret)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int lock_file(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int unlock_file(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int look_at_lock(sqlite3_file *file, int *ret)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int control_file(sqlite3_file *file, int op, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int device_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int map_shm(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), region, size, extend, ret);
}

static int lock_shm(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void fence_shm(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int unmap_shm(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {.iVersion = 2,
                                           .xClose = close_file,
                                           .xRead = read_file,
                                           .xWrite = write_file,
                                           .xTruncate = truncate_file,
                                           .xSync = sync_file,
                                           .xFileSize = size_file,
                                           .xLock = lock_file,
                                           .xUnlock = unlock_file,
                                           .xCheckReservedLock = look_at_lock,
                                           .xFileControl = control_file,
                                           .xSectorSize = sector_size,
                                           .xDeviceCharacteristics = device_traits,
                                           .xShmMap = map_shm,
                                           .xShmLock = lock_shm,
                                           .xShmBarrier = fence_shm,
                                           .xShmUnmap = unmap_shm};

/* ---- opening ---- */

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    sqlite3_vfs *under = ((struct sum_vfs *)vfs)->real;
    struct sum_file *f = (struct sum_file *)file;
    unsigned char header[HEADER];
    sqlite3_file *real = real_of(file);
    int rc;

    if (!(flags & SQLITE_OPEN_MAIN_DB))
        return under->xOpen(under, name, file, flags, ret_flags);
    *f = (struct sum_file){.page = malloc(PAGE)};
    if (!f->page)
        return SQLITE_NOMEM;
    rc = under->xOpen(under, name, real, flags, ret_flags);
    if (rc != SQLITE_OK) {
        free(f->page);
        return rc;
    }
    f->base.pMethods = &methods;
    if (real->pMethods->xRead(real, header, HEADER, 0) == SQLITE_OK)
        f->summed = header_says_summed(header);
    return SQLITE_OK;
}

const char *stk_pagesum_vfs(void)
{
    sqlite3_vfs *real;
    struct sum_vfs *v;

    if (sqlite3_vfs_find(NAME))
        return NAME;
    real = sqlite3_vfs_find(NULL);
    v = real ? calloc(1, sizeof(*v)) : NULL; /* SQLite's from then on, as long as we run */
    if (!v)
        return NULL;
    v->base = *real;
    v->real = real;
    v->base.pNext = NULL;
    v->base.zName = NAME;
    v->base.szOsFile = (int)sizeof(struct sum_file) + real->szOsFile;
    v->base.xOpen = open_file;
    if (sqlite3_vfs_register(&v->base, 0) == SQLITE_OK)
        return NAME;
    free(v);
    return NULL;
}

/* ---- what the store asks ---- */

static sqlite3_file *file_of(sqlite3 *db)
{
    sqlite3_file *file = NULL;

    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return file && file->pMethods == &methods ? file : NULL;
}

int stk_pagesum_reserve(sqlite3 *db)
{
    int n = STK_PAGESUM_BYTES;

    return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &n);
}

void stk_pagesum_begin(sqlite3 *db)
{
    struct sum_file *f = (struct sum_file *)file_of(db);

    if (f)
        f->summed = true;
}

/* The page size and the reserved bytes that the connection has read, from the WAL where page 1 is
 * there. */
bool stk_pagesum_has(sqlite3 *db)
{
    int n = -1;

    return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &n) == SQLITE_OK &&
           n == STK_PAGESUM_BYTES;
}

void stk_pagesum_tolerate(sqlite3 *db, bool tolerate)
{
    struct sum_file *f = (struct sum_file *)file_of(db);

    if (f)
        f->tolerate = tolerate;
}

uint32_t stk_pagesum_bad(sqlite3 *db)
{
    const struct sum_file *f = (const struct sum_file *)file_of(db);

    return f ? f->bad : 0;
}

int stk_pagesum_look(sqlite3 *db, uint32_t page, bool mend)
{
    const sqlite3_int64 at = ((sqlite3_int64)page - 1) * PAGE;
    struct sum_file *f = (struct sum_file *)file_of(db);
    sqlite3_file *real = f ? real_of(&f->base) : NULL;
    int rc;

    if (!f || !f->summed || page == UNUSED_PAGE)
        return 1;
    rc = real->pMethods->xRead(real, f->page, PAGE, at);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
        return -EIO;
    if (rc == SQLITE_OK && matches(f->page, page))
        return 1;
    if (!mend)
        return 0;
    put_sum(f->page, page);
    return real->pMethods->xWrite(real, f->page, PAGE, at) == SQLITE_OK ? 0 : -EIO;
}

int stk_pagesum_flush(sqlite3 *db)
{
    sqlite3_file *f = file_of(db);

    return !f || f->pMethods->xSync(f, SQLITE_SYNC_NORMAL) == SQLITE_OK ? 0 : -EIO;
}
