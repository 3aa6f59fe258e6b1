/*
 * stuck_names.c -- preloaded into hearthd by test_scrape.py: a name server that does not answer.
 *
 * Names that end with ".test" are looked up for as long as the file STUCK_NAMES exists; then they have no address.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int lookup_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static const char *g_path;

__attribute__((constructor)) static void find_path(void)
{
    g_path = getenv("STUCK_NAMES");
}

int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    size_t n = node != NULL ? strlen(node) : 0;

    if (g_path == NULL || n < 5 || strcmp(node + n - 5, ".test") != 0) {
        return ((lookup_fn *)dlsym(RTLD_NEXT, "getaddrinfo"))(node, service, hints, ret);
    }
    while (access(g_path, F_OK) == 0) {
        (void)usleep(50000);
    }
    return EAI_AGAIN;
}
