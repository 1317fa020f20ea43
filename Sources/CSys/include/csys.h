#pragma once

// Linux calls that Swift's Glibc module lacks (macros, variadic functions, _GNU_SOURCE).
//
// Every function that can fail returns a value >= 0, or -errno: Swift may run code of its own (retain, release,
// allocation) between a call and a look at `errno`, so the error travels in the result.
// Times are nanoseconds on CLOCK_MONOTONIC. Descriptors that are made here are close-on-exec.

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

// ---- epoll ------------------------------------------------------------------------------------------------------

#define CSYS_EPOLL_IN 0x001u
#define CSYS_EPOLL_OUT 0x004u
#define CSYS_EPOLL_ERR 0x008u
#define CSYS_EPOLL_HUP 0x010u
#define CSYS_EPOLL_RDHUP 0x2000u

struct csys_epoll_event {
    uint64_t token;  // what csys_epoll_add was given
    uint32_t events;
};

int csys_epoll_create(void);
int csys_epoll_add(int epoll_fd, int fd, uint32_t events, uint64_t token);
int csys_epoll_modify(int epoll_fd, int fd, uint32_t events, uint64_t token);
int csys_epoll_remove(int epoll_fd, int fd);
/// Waits for at most `capacity` events (capped at 256); `timeout_ns` < 0 waits for ever. Returns their number;
/// an interrupted wait counts as 0. Sleeps with nanosecond time-outs where the kernel can (5.11), else rounds up to
/// whole milliseconds.
int csys_epoll_wait(int epoll_fd, struct csys_epoll_event *events, int capacity, int64_t timeout_ns);

// ---- eventfd and timerfd ------------------------------------------------------------------------------------------

/// A non-blocking eventfd counter at 0.
int csys_eventfd_create(void);
/// Adds one and so makes the descriptor readable.
int csys_eventfd_signal(int fd);
/// Resets the counter; returns its value, 0 when it was not signalled.
int64_t csys_eventfd_drain(int fd);

/// A non-blocking timer on CLOCK_MONOTONIC, not armed.
int csys_timerfd_create(void);
/// Fires at `first_ns` (absolute; a time in the past fires at once) and then every `interval_ns` (0: once).
int csys_timerfd_arm(int fd, int64_t first_ns, int64_t interval_ns);
int csys_timerfd_disarm(int fd);
/// How often the timer fired since the last read; 0 when it did not.
int64_t csys_timerfd_read(int fd);

/// CLOCK_MONOTONIC in nanoseconds.
int64_t csys_monotonic_now(void);
/// Sleeps until an absolute time on CLOCK_MONOTONIC; continues after signals.
int csys_sleep_until(int64_t when_ns);

// ---- signals ------------------------------------------------------------------------------------------------------

/// Blocks the signals in the calling thread (and in the threads that it creates later).
int csys_signals_block(const int *signals, int count);
int csys_signals_unblock(const int *signals, int count);
/// A non-blocking descriptor that reports these (blocked) signals.
int csys_signalfd_create(const int *signals, int count);
/// The next pending signal's number; 0 when there is none. `sender` gets the sending process's id.
int csys_signalfd_read(int fd, pid_t *sender);
/// Ignores a signal in the whole process.
int csys_signal_ignore(int signal);

// ---- sockets ------------------------------------------------------------------------------------------------------

/// A non-blocking, close-on-exec socket.
int csys_socket(int family, int type, int protocol);
/// accept4 with non-blocking and close-on-exec; `address` may be null.
int csys_accept(int fd, struct sockaddr_storage *address, socklen_t *length);
/// 0 when connected, -EINPROGRESS while under way.
int csys_connect(int fd, const struct sockaddr *address, socklen_t length);
/// The pending SO_ERROR as a positive number, 0 when there is none; reading it clears it.
int csys_socket_error(int fd);
int csys_set_int_option(int fd, int level, int option, int value);
/// SO_LINGER with time 0: the next close resets the connection.
int csys_set_abortive_close(int fd);

/// Never raises SIGPIPE.
ssize_t csys_send(int fd, const void *bytes, size_t length);
ssize_t csys_recv(int fd, void *bytes, size_t length);
ssize_t csys_sendto(int fd, const void *bytes, size_t length, const struct sockaddr *address, socklen_t address_length);
/// One datagram. Returns its length as kept; `truncated` gets 1 when it was longer than the buffer.
ssize_t csys_recvfrom(
    int fd, void *bytes, size_t length, struct sockaddr_storage *address, socklen_t *address_length, int *truncated);

struct csys_datagram {
    void *bytes;       // in: the buffer
    uint32_t capacity; // in: its size
    uint32_t length;   // out: the datagram's length as kept
    int truncated;     // out: 1 when it was longer than the buffer
    struct sockaddr_storage address;  // out: the sender
    socklen_t address_length;         // out
};
/// Up to `count` (capped at 64) datagrams in one system call; returns how many arrived, -EAGAIN for none.
int csys_recv_datagrams(int fd, struct csys_datagram *datagrams, int count);

#define CSYS_ORIGIN_NONE 0
#define CSYS_ORIGIN_LOCAL 1
#define CSYS_ORIGIN_ICMP 2
#define CSYS_ORIGIN_ICMP6 3

struct csys_queued_error {
    int error;   // a positive errno, such as ECONNREFUSED
    int origin;  // CSYS_ORIGIN_...
    uint8_t icmp_type;
    uint8_t icmp_code;
    struct sockaddr_storage peer;  // where the failed datagram was going
    socklen_t peer_length;
};
/// Asks the kernel to queue ICMP errors of a datagram socket (IP_RECVERR or IPV6_RECVERR).
int csys_enable_error_queue(int fd, int ipv6);
/// The next queued error: 1 and `error` filled, 0 when the queue is empty.
int csys_read_error_queue(int fd, struct csys_queued_error *error);

/// TCP_NODELAY, and keep-alive after `idle` seconds of silence with `count` probes `interval` seconds apart;
/// `user_timeout_ms` bounds how long sent data may stay unacknowledged (0: the system's default).
int csys_tcp_tune(int fd, int idle, int interval, int count, int user_timeout_ms);
/// The process at the other end of a Unix socket, as it was when it connected or listened (SO_PEERCRED).
int csys_peer_credentials(int fd, pid_t *pid, uid_t *uid, gid_t *gid);
/// IP_TOS or IPV6_TCLASS: the DSCP in the upper six bits.
int csys_set_traffic_class(int fd, int ipv6, int traffic_class);

// ---- threads and processes ----------------------------------------------------------------------------------------

/// Names the calling thread (15 bytes are kept).
int csys_thread_set_name(const char *name);
pid_t csys_thread_id(void);
/// SCHED_FIFO with this priority for the calling thread; children do not inherit it. -EPERM when not allowed.
int csys_thread_set_fifo(int priority);
/// The calling thread's policy: 0 for the time-sharing ones, else the real-time priority.
int csys_thread_realtime_priority(void);
/// CPU time that the calling thread used, in nanoseconds.
int64_t csys_thread_cpu_time(void);
/// Locks the process's present and future pages in memory.
int csys_lock_memory(void);
/// Fills the buffer from the kernel's generator; never short.
int csys_random(void *bytes, size_t length);
/// The calling process gets `signal` when its parent ends.
int csys_set_parent_death_signal(int signal);
/// 0 forbids core dumps and ptrace by others of the same user.
int csys_set_dumpable(int dumpable);
/// A descriptor that becomes readable when the process ends.
int csys_pidfd_open(pid_t pid);

/// An open close-on-exec file; `mode` is used when O_CREAT creates it.
int csys_open(const char *path, int flags, mode_t mode);
int csys_dup_cloexec(int fd);
int csys_set_nonblocking(int fd, int on);
/// A close-on-exec pipe: ends[0] reads, ends[1] writes.
int csys_pipe(int ends[2]);

struct csys_spawn_request {
    const char *executable;      // searched in PATH when it has no slash
    char *const *arguments;      // null-terminated, with argv[0]
    char *const *environment;    // null-terminated
    int standard_input;          // descriptors that become 0, 1 and 2; -1: /dev/null
    int standard_output;
    int standard_error;
    const int *inherited;        // become 3, 4, ... in this order; every other descriptor is closed
    int inherited_count;
    const char *working_directory;  // null: the caller's
    int new_session;             // 1: setsid, away from the terminal; 0: a process group of its own
};
/// Starts a process with default signal handling and nothing blocked; returns its id.
int csys_spawn(const struct csys_spawn_request *request);
/// Collects an ended child: 1 when it ended, 0 while it runs. `exited` gets 1 for exit and 0 for a signal; `value`
/// the exit status or the signal.
int csys_reap(pid_t pid, int *exited, int *value);
/// The same, waiting for the end.
int csys_reap_wait(pid_t pid, int *exited, int *value);
