/* SPDX-License-Identifier: Apache-2.0 */
/* teller.c - words wait in a list (news.h) until the socket takes them. It has ten places, and
 * whoever reads it may be busy: the thread waits for room, and nobody waits for the thread. A word
 * that nobody is there for is dropped: who comes later begins by looking. */
#include "slurmctld/teller.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "slurmctld/news.h"

#define WAIT_US 100000 /* for room, before the thread looks whether it is to end */

struct stk_teller {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t some;
    int fd;
    bool ends;
    struct stk_news news;
    struct sockaddr_un addr;
};

/* False: there was no room. */
static bool send_word(const struct stk_teller *t, const struct sockaddr_un *addr, const char *word)
{
    return sendto(t->fd, word, strlen(word), MSG_NOSIGNAL, (const struct sockaddr *)addr,
                  sizeof(*addr)) >= 0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM && errno != EINTR);
}

static void *run(void *arg)
{
    struct stk_teller *t = arg;
    char word[STK_SLURMCTLD_WORD] = "";

    (void)pthread_mutex_lock(&t->lock);
    while (!t->ends) {
        const struct sockaddr_un addr = t->addr;

        if (!word[0] && !stk_news_take(&t->news, word)) {
            (void)pthread_cond_wait(&t->some, &t->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&t->lock);
        if (send_word(t, &addr, word))
            word[0] = '\0';
        (void)pthread_mutex_lock(&t->lock);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return NULL;
}

struct stk_teller *stk_teller_new(void)
{
    const struct timeval most = {.tv_usec = WAIT_US};
    struct stk_teller *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_cond_init(&t->some, NULL);
    t->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (t->fd >= 0 && setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) == 0 &&
        pthread_create(&t->thread, NULL, run, t) == 0)
        return t;
    if (t->fd >= 0)
        (void)close(t->fd);
    free(t);
    return NULL;
}

void stk_teller_free(struct stk_teller *t)
{
    if (!t)
        return;
    (void)pthread_mutex_lock(&t->lock);
    t->ends = true;
    (void)pthread_cond_signal(&t->some);
    (void)pthread_mutex_unlock(&t->lock);
    (void)pthread_join(t->thread, NULL);
    (void)pthread_cond_destroy(&t->some);
    (void)pthread_mutex_destroy(&t->lock);
    (void)close(t->fd);
    free(t);
}

void stk_teller_say(struct stk_teller *t, const char *params, const char *folder, const char *word)
{
    struct sockaddr_un addr;

    if (!t || stk_slurmctld_address(params, folder, &addr) < 0)
        return;
    (void)pthread_mutex_lock(&t->lock);
    t->addr = addr;
    if (stk_news_word(&t->news, word))
        (void)pthread_cond_signal(&t->some);
    (void)pthread_mutex_unlock(&t->lock);
}
