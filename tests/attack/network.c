/* Roads off the machine and to the services of the host. ADDRESS is a numeric IPv4 or IPv6 address. */
#include "attack.h"
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static struct sockaddr_storage addr;
static socklen_t len;
static int family;

static void aim(const char *address, const char *port) {
    struct sockaddr_in *four = (void *)&addr;
    struct sockaddr_in6 *six = (void *)&addr;
    memset(&addr, 0, sizeof addr);
    if (strchr(address, ':')) {
        family = six->sin6_family = AF_INET6, len = sizeof *six, six->sin6_port = htons((uint16_t)atoi(port));
        if (inet_pton(AF_INET6, address, &six->sin6_addr) != 1) exit(2);
    } else {
        family = four->sin_family = AF_INET, len = sizeof *four, four->sin_port = htons((uint16_t)atoi(port));
        if (inet_pton(AF_INET, address, &four->sin_addr) != 1) exit(2);
    }
}
static int stream_to(int protocol, int kind) {
    int s = socket(family, kind, protocol);
    if (s < 0 || connect(s, (struct sockaddr *)&addr, len) < 0) return -1;
    return send(s, "pwned", 5, MSG_NOSIGNAL) == 5 ? 0 : -1;
}
static int datagram_to(int protocol) {
    int s = socket(family, SOCK_DGRAM, protocol);
    return s < 0 ? -1 : sendto(s, "pwned", 5, 0, (struct sockaddr *)&addr, len) == 5 ? 0 : -1;
}
static int tcp(char **a) { return aim(a[0], a[1]), stream_to(0, SOCK_STREAM); }
static int mptcp(char **a) { return aim(a[0], a[1]), stream_to(IPPROTO_MPTCP, SOCK_STREAM); }
static int sctp(char **a) { return aim(a[0], a[1]), stream_to(132, SOCK_STREAM); }
static int dccp(char **a) { return aim(a[0], a[1]), stream_to(33, 6); }
static int udp(char **a) { return aim(a[0], a[1]), datagram_to(0); }
static int udp_connect(char **a) { return aim(a[0], a[1]), stream_to(0, SOCK_DGRAM); }
static int udplite(char **a) { return aim(a[0], a[1]), datagram_to(136); }
static int ping(char **a) { return aim(a[0], "0"), socket(family, SOCK_DGRAM, family == AF_INET ? 1 : 58) < 0 ? -1 : 0; }
static int fast_open(char **a) {
    aim(a[0], a[1]);
    int s = socket(family, SOCK_STREAM, 0);
    return s < 0 ? -1 : sendto(s, "pwned", 5, MSG_FASTOPEN, (struct sockaddr *)&addr, len) == 5 ? 0 : -1;
}
/* Flags are an int: the kernel ignores what is above. */
static int fast_open_high(char **a) {
    aim(a[0], a[1]);
    int s = socket(family, SOCK_STREAM, 0);
    return s < 0 ? -1 : syscall(SYS_sendto, s, "pwned", 5, MSG_FASTOPEN | 0xab00000000UL, &addr, len) == 5 ? 0 : -1;
}
static int fast_open_vector(int many) {
    struct iovec vec = {"pwned", 5};
    struct mmsghdr message = {.msg_hdr = {.msg_name = &addr, .msg_namelen = len, .msg_iov = &vec, .msg_iovlen = 1}};
    int s = socket(family, SOCK_STREAM, 0);
    if (s < 0) return -1;
    return many ? (sendmmsg(s, &message, 1, MSG_FASTOPEN) == 1 ? 0 : -1)
                : (sendmsg(s, &message.msg_hdr, MSG_FASTOPEN) == 5 ? 0 : -1);
}
static int fast_open_sendmsg(char **a) { return aim(a[0], a[1]), fast_open_vector(0); }
static int fast_open_sendmmsg(char **a) { return aim(a[0], a[1]), fast_open_vector(1); }
static int fast_open_connect(char **a) {
    int on = 1, s = (aim(a[0], a[1]), socket(family, SOCK_STREAM, 0));
    if (s < 0 || setsockopt(s, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on) < 0) return -1;
    return connect(s, (struct sockaddr *)&addr, len) < 0 ? -1 : send(s, "pwned", 5, MSG_NOSIGNAL) == 5 ? 0 : -1;
}
/* Connects to an allowed port, dissolves the association, connects the same socket elsewhere. */
static int unspec_reconnect(char **a) {
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    aim(a[0], a[1]);
    int s = socket(family, SOCK_STREAM, 0);
    if (s < 0 || connect(s, (struct sockaddr *)&addr, len) < 0 || connect(s, &none, sizeof none) < 0) return -1;
    aim(a[0], a[2]);
    return connect(s, (struct sockaddr *)&addr, len) < 0 ? -1 : send(s, "pwned", 5, MSG_NOSIGNAL) == 5 ? 0 : -1;
}
/* Waits for one visitor and says what it brought. Without a bind the kernel picks the port by itself. */
static int serve(int bound, const char *address, const char *port) {
    char text[16] = "";
    aim(address, port);
    int s = socket(family, SOCK_STREAM, 0);
    if (s < 0 || (bound && bind(s, (struct sockaddr *)&addr, len) < 0) || listen(s, 1) < 0) return -1;
    len = sizeof addr;
    if (getsockname(s, (struct sockaddr *)&addr, &len) < 0) return -1;
    printf("listening %d\n", ntohs(((struct sockaddr_in *)&addr)->sin_port));
    struct pollfd wait = {s, POLLIN, 0};
    if (poll(&wait, 1, atoi(getenv("ATTACK_WAIT_MS") ? getenv("ATTACK_WAIT_MS") : "0")) != 1) return 0;
    int visitor = accept(s, NULL, NULL);
    if (read(visitor, text, sizeof text - 1) < 0) return -1;
    return printf("visited %s\n", text), 0;
}
static int autobind_listen(char **a) { return serve(0, a[0], "0"); }
static int bind_listen(char **a) { return serve(1, a[0], a[1]); }
static int bind_udp(char **a) {
    aim(a[0], a[1]);
    int s = socket(family, SOCK_DGRAM, 0);
    return s < 0 ? -1 : bind(s, (struct sockaddr *)&addr, len);
}
static int loopback(char **a, int kind) {
    char text[8];
    aim(a[0], "0");
    int server = socket(family, kind, 0), from = server;
    if (server < 0 || bind(server, (struct sockaddr *)&addr, len) < 0) return -1;
    if (kind == SOCK_STREAM && listen(server, 1) < 0) return -1;
    len = sizeof addr;
    if (getsockname(server, (struct sockaddr *)&addr, &len) < 0 || stream_to(0, kind) < 0) return -1;
    if (kind == SOCK_STREAM && (from = accept(server, NULL, NULL)) < 0) return -1;
    return recv(from, text, 5, 0) == 5 ? 0 : -1;
}
static int loopback_tcp(char **a) { return loopback(a, SOCK_STREAM); }
static int loopback_udp(char **a) { return loopback(a, SOCK_DGRAM); }
/* By number, as the kernel's names for families come and go. High bits are cut off: an int. */
static int socket_(char **a) {
    return syscall(SYS_socket, strtoul(a[0], NULL, 0), strtoul(a[1], NULL, 0), strtoul(a[2], NULL, 0)) < 0 ? -1 : 0;
}
static int socketpair_(char **a) {
    int pair[2];
    return (int)syscall(SYS_socketpair, strtoul(a[0], NULL, 0), strtoul(a[1], NULL, 0), strtoul(a[2], NULL, 0), pair);
}
/* Asks for the interfaces and prints how many there are: getaddrinfo and ip(8) need it. */
static int netlink_route(char **a) {
    struct {
        struct nlmsghdr head;
        struct {
            unsigned char family, pad[15];
        } body;
    } ask = {{sizeof ask, 18 /* RTM_GETLINK */, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {0}};
    char reply[8192];
    int links = 0, s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    (void)a;
    if (s < 0 || send(s, &ask, sizeof ask, 0) < 0) return -1;
    ssize_t n = recv(s, reply, sizeof reply, 0);
    if (n < 0) return -1;
    unsigned left = (unsigned)n;
    for (struct nlmsghdr *head = (void *)reply; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left))
        if (head->nlmsg_type == 16 /* RTM_NEWLINK */) links++;
    return printf("links %d\n", links), 0;
}

const struct op network_ops[] = {
    {"tcp", 2, "ADDRESS PORT", tcp},
    {"mptcp", 2, "ADDRESS PORT", mptcp},
    {"sctp", 2, "ADDRESS PORT", sctp},
    {"dccp", 2, "ADDRESS PORT", dccp},
    {"udp", 2, "ADDRESS PORT", udp},
    {"udp-connect", 2, "ADDRESS PORT", udp_connect},
    {"udplite", 2, "ADDRESS PORT", udplite},
    {"ping", 1, "ADDRESS", ping},
    {"fast-open", 2, "ADDRESS PORT", fast_open},
    {"fast-open-high", 2, "ADDRESS PORT", fast_open_high},
    {"fast-open-sendmsg", 2, "ADDRESS PORT", fast_open_sendmsg},
    {"fast-open-sendmmsg", 2, "ADDRESS PORT", fast_open_sendmmsg},
    {"fast-open-connect", 2, "ADDRESS PORT", fast_open_connect},
    {"unspec-reconnect", 3, "ADDRESS ALLOWED-PORT PORT", unspec_reconnect},
    {"autobind-listen", 1, "ADDRESS", autobind_listen},
    {"bind-listen", 2, "ADDRESS PORT", bind_listen},
    {"bind-udp", 2, "ADDRESS PORT", bind_udp},
    {"loopback-tcp", 1, "ADDRESS", loopback_tcp},
    {"loopback-udp", 1, "ADDRESS", loopback_udp},
    {"socket", 3, "FAMILY TYPE PROTOCOL", socket_},
    {"socketpair", 3, "FAMILY TYPE PROTOCOL", socketpair_},
    {"netlink-route", 0, "", netlink_route},
    {0},
};
