/* address_text.h -- addresses of clients as texts, for logs. Threads: pure. */
#ifndef HEARTH_FRONT_ADDRESS_TEXT_H
#define HEARTH_FRONT_ADDRESS_TEXT_H

#include <stdbool.h>
#include <sys/socket.h>

/* "127.0.0.1:50123", "[::1]:50123" or "unknown", with the NUL. */
#define HEARTH_PEER_TEXT_BYTES 64

/* "unknown" unless the address is IPv4 or IPv6. */
void hearth_address_text(const struct sockaddr *address, char out[HEARTH_PEER_TEXT_BYTES]);
/* ip: 16 bytes of IPv6 or 4 of IPv4, in network order; port in host order. */
void hearth_ip_text(bool is_ipv6, const void *ip, unsigned port, char out[HEARTH_PEER_TEXT_BYTES]);

#endif
