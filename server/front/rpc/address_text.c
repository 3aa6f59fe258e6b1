/* address_text.c -- see address_text.h. */
#include "rpc/address_text.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

void hearth_ip_text(bool is_ipv6, const void *ip, unsigned port, char out[HEARTH_PEER_TEXT_BYTES])
{
    char text[INET6_ADDRSTRLEN];
    if (inet_ntop(is_ipv6 ? AF_INET6 : AF_INET, ip, text, sizeof text) == NULL) {
        (void)snprintf(out, HEARTH_PEER_TEXT_BYTES, "unknown");
        return;
    }
    (void)snprintf(out, HEARTH_PEER_TEXT_BYTES, is_ipv6 ? "[%s]:%u" : "%s:%u", text, port);
}

void hearth_address_text(const struct sockaddr *address, char out[HEARTH_PEER_TEXT_BYTES])
{
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        hearth_ip_text(true, &in6.sin6_addr, ntohs(in6.sin6_port), out);
    } else if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        hearth_ip_text(false, &in.sin_addr, ntohs(in.sin_port), out);
    } else {
        (void)snprintf(out, HEARTH_PEER_TEXT_BYTES, "unknown");
    }
}
