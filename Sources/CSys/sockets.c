#define _GNU_SOURCE
#include "csys.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <time.h>

static inline int result(int value) { return value < 0 ? -errno : value; }
static inline ssize_t long_result(ssize_t value) { return value < 0 ? -errno : value; }

int csys_socket(int family, int type, int protocol) {
    return result(socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
}

int csys_accept(int fd, struct sockaddr_storage *address, socklen_t *length) {
    return result(accept4(fd, (struct sockaddr *)address, length, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int csys_connect(int fd, const struct sockaddr *address, socklen_t length) {
    return result(connect(fd, address, length));
}

int csys_socket_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? errno : error;
}

int csys_set_int_option(int fd, int level, int option, int value) {
    return result(setsockopt(fd, level, option, &value, sizeof value));
}

int csys_set_abortive_close(int fd) {
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    return result(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

ssize_t csys_send(int fd, const void *bytes, size_t length) {
    return long_result(send(fd, bytes, length, MSG_NOSIGNAL));
}

ssize_t csys_recv(int fd, void *bytes, size_t length) { return long_result(recv(fd, bytes, length, 0)); }

ssize_t csys_sendto(
    int fd, const void *bytes, size_t length, const struct sockaddr *address, socklen_t address_length) {
    return long_result(sendto(fd, bytes, length, MSG_NOSIGNAL, address, address_length));
}

ssize_t csys_recvfrom(
    int fd, void *bytes, size_t length, struct sockaddr_storage *address, socklen_t *address_length, int *truncated) {
    struct iovec vector = {.iov_base = bytes, .iov_len = length};
    struct msghdr message = {
        .msg_name = address, .msg_namelen = sizeof *address, .msg_iov = &vector, .msg_iovlen = 1};
    ssize_t count = recvmsg(fd, &message, 0);
    if (count < 0) return -errno;
    *address_length = message.msg_namelen;
    *truncated = (message.msg_flags & MSG_TRUNC) != 0;
    return count;
}

int csys_recv_datagrams(int fd, struct csys_datagram *datagrams, int count) {
    enum { most = 64 };
    struct mmsghdr messages[most];
    struct iovec vectors[most];
    if (count > most) count = most;
    for (int i = 0; i < count; i++) {
        vectors[i] = (struct iovec){.iov_base = datagrams[i].bytes, .iov_len = datagrams[i].capacity};
        memset(&messages[i], 0, sizeof messages[i]);
        messages[i].msg_hdr.msg_name = &datagrams[i].address;
        messages[i].msg_hdr.msg_namelen = sizeof datagrams[i].address;
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    int received = recvmmsg(fd, messages, (unsigned)count, MSG_DONTWAIT, NULL);
    if (received < 0) return -errno;
    for (int i = 0; i < received; i++) {
        datagrams[i].length = messages[i].msg_len;
        datagrams[i].truncated = (messages[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
        datagrams[i].address_length = messages[i].msg_hdr.msg_namelen;
    }
    return received;
}

_Static_assert(CSYS_ORIGIN_NONE == SO_EE_ORIGIN_NONE && CSYS_ORIGIN_LOCAL == SO_EE_ORIGIN_LOCAL &&
                   CSYS_ORIGIN_ICMP == SO_EE_ORIGIN_ICMP && CSYS_ORIGIN_ICMP6 == SO_EE_ORIGIN_ICMP6,
               "error origins");

int csys_enable_error_queue(int fd, int ipv6) {
    return csys_set_int_option(
        fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_RECVERR : IP_RECVERR, 1);
}

int csys_read_error_queue(int fd, struct csys_queued_error *error) {
    // Room for the extended error, the offender's address behind it, and options that others may have set.
    union {
        struct cmsghdr header;
        char bytes[512];
    } control;
    char returned[1];  // The failed datagram's bytes come back too; nobody needs them.
    struct iovec vector = {.iov_base = returned, .iov_len = sizeof returned};
    struct msghdr message = {
        .msg_name = &error->peer,
        .msg_namelen = sizeof error->peer,
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    }
    error->error = 0;
    error->origin = CSYS_ORIGIN_NONE;
    error->icmp_type = 0;
    error->icmp_code = 0;
    error->peer_length = message.msg_namelen;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
        int is_ipv4 = item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_RECVERR;
        int is_ipv6 = item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_RECVERR;
        if (!is_ipv4 && !is_ipv6) continue;
        if (item->cmsg_len < CMSG_LEN(sizeof(struct sock_extended_err))) continue;
        struct sock_extended_err extended;
        memcpy(&extended, CMSG_DATA(item), sizeof extended);
        error->error = (int)extended.ee_errno;
        error->origin = extended.ee_origin;
        error->icmp_type = extended.ee_type;
        error->icmp_code = extended.ee_code;
    }
    return 1;
}

int csys_tcp_tune(int fd, int idle, int interval, int count, int user_timeout_ms) {
    struct {
        int level, option, value;
    } settings[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},        {SOL_SOCKET, SO_KEEPALIVE, 1},  {IPPROTO_TCP, TCP_KEEPIDLE, idle},
        {IPPROTO_TCP, TCP_KEEPINTVL, interval}, {IPPROTO_TCP, TCP_KEEPCNT, count},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms},
    };
    int first_error = 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        int error = csys_set_int_option(fd, settings[i].level, settings[i].option, settings[i].value);
        if (error < 0 && first_error == 0) first_error = error;
    }
    return first_error;
}

int csys_peer_credentials(int fd, pid_t *pid, uid_t *uid, gid_t *gid) {
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0) return -errno;
    *pid = credentials.pid;
    *uid = credentials.uid;
    *gid = credentials.gid;
    return 0;
}

int csys_set_traffic_class(int fd, int ipv6, int traffic_class) {
    return csys_set_int_option(
        fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_TCLASS : IP_TOS, traffic_class);
}
