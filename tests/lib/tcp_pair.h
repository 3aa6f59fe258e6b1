/* tcp_pair.h -- two ends of a TCP connection over loopback, where what the kernel counts of one matters. */
#ifndef HEARTH_TESTS_TCP_PAIR_H
#define HEARTH_TESTS_TCP_PAIR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* [0] is the accepted end, whose own address is returned, too. */
static inline bool tcp_pair(int pair[2], struct sockaddr_storage *ret_address)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bool listens = bind(listener, (struct sockaddr *)&address, n) == 0 &&
                   listen(listener, 1) == 0 &&
                   getsockname(listener, (struct sockaddr *)&address, &n) == 0;
    pair[1] = socket(AF_INET, SOCK_STREAM, 0);
    bool connects = listens && connect(pair[1], (struct sockaddr *)&address, n) == 0;
    pair[0] = connects ? accept(listener, NULL, NULL) : -1;
    (void)close(listener);
    *ret_address = (struct sockaddr_storage){0};
    memcpy(ret_address, &address, sizeof address);
    return pair[0] >= 0;
}

#endif
