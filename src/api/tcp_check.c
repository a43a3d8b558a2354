/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_check.c - what is asked of an address, a certificate and a key before anybody listens. Used
 * where the daemon listens, and where a configuration is checked. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/conn.h"
#include "sys/owned.h"

#define MAX_PEM ((size_t)262144)

/* A key is of no use that everybody knows, or may put another in its place. */
static int check_key(const char *path, int fd, struct stk_err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return stk_err_set(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || !(st.st_mode & 026))
        return 0;
    return stk_err_set(err, -EPERM,
                       "others may %s the key %.90s (mode %04o); run: chmod g-w,o-rw %.90s",
                       st.st_mode & 022 ? "change" : "read", path, st.st_mode & 07777, path);
}

static int read_pem(const char *path, bool is_key, char **ret, struct stk_err *err)
{
    int fd = stk_owned_open(path, err), rc, e;
    char *text;
    ssize_t n;

    if (fd < 0)
        return -EINVAL;
    rc = is_key ? check_key(path, fd, err) : 0;
    text = rc < 0 ? NULL : calloc(1, MAX_PEM);
    n = text ? read(fd, text, MAX_PEM - 1) : -1;
    e = errno;
    (void)close(fd);
    if (rc < 0)
        return -EINVAL;
    if (n <= 0 || !strstr(text, "-----BEGIN")) {
        free(text);
        return n < 0 ? stk_err_set(err, -EINVAL, "%s: %s", path, strerror(e))
                     : stk_err_set(err, -EINVAL, "%s is not in PEM format", path);
    }
    *ret = text;
    return 0;
}

void stk_pem_free(char *cert, char *key)
{
    free(cert);
    if (key)
        explicit_bzero(key, MAX_PEM);
    free(key);
}

int stk_pem_read(const struct stk_http_tcp *tcp, char **ret_cert, char **ret_key,
                 const char **ret_which, struct stk_err *err)
{
    const char *which = NULL;
    int rc = 0;

    *ret_cert = *ret_key = NULL;
    ret_which = ret_which ? ret_which : &which;
    *ret_which = tcp->cert ? "tls.cert" : "tls.key";
    if (!tcp->cert != !tcp->key)
        return stk_err_set(err, -EINVAL, "TLS needs both a certificate and a key");
    if (!tcp->cert)
        return 0;
    rc = read_pem(tcp->cert, false, ret_cert, err);
    if (rc < 0)
        return rc;
    *ret_which = "tls.key";
    rc = read_pem(tcp->key, true, ret_key, err);
    if (rc < 0) {
        stk_pem_free(*ret_cert, NULL);
        *ret_cert = NULL;
    }
    return rc;
}

// NOLINTNEXTLINE(readability-function-size): the signature is libmicrohttpd's
static enum MHD_Result refuse_request(void *ctx, struct MHD_Connection *c, const char *url,
                                      const char *method, const char *version, const char *body,
                                      size_t *len, void **own)
{
    (void)ctx;
    (void)c;
    (void)url;
    (void)method;
    (void)version;
    (void)body;
    (void)len;
    (void)own;
    return MHD_NO;
}

static void ignore_log(void *ctx, const char *fmt, va_list ap)
{
    (void)ctx;
    (void)fmt;
    (void)ap;
}

/* A server that listens nowhere takes a certificate and its key, or does not. */
static bool is_pair(char *cert, char *key)
{
    struct MHD_Daemon *d = MHD_start_daemon(
        MHD_USE_TLS | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0, NULL, NULL, refuse_request,
        NULL, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL, MHD_OPTION_HTTPS_MEM_CERT, cert,
        MHD_OPTION_HTTPS_MEM_KEY, key, MHD_OPTION_END);

    if (!d)
        return false;
    MHD_stop_daemon(d);
    return true;
}

int stk_http_check_tcp(const struct stk_http_tcp *tcp, const char **ret_key, struct stk_err *err)
{
    char *cert = NULL, *key = NULL;
    const char *which = NULL;
    bool loopback = false;
    int rc;

    ret_key = ret_key ? ret_key : &which;
    rc = stk_pem_read(tcp, &cert, &key, ret_key, err);
    if (rc == 0 && cert && !is_pair(cert, key)) {
        *ret_key = "tls.cert";
        rc = stk_err_set(err, -EINVAL,
                         "cannot start the HTTPS server; are certificate and key a pair?");
    }
    stk_pem_free(cert, key);
    if (rc < 0)
        return rc;
    *ret_key = "listen";
    rc = stk_listen_check(tcp->address, &loopback, err);
    if (rc < 0 || loopback || tcp->cert || tcp->insecure)
        return rc;
    return stk_err_set(err, -EINVAL,
                       "will not listen on %.100s without TLS, for tokens would be sent in the "
                       "clear; give --tls-cert and --tls-key, or --insecure",
                       tcp->address);
}
