#define _GNU_SOURCE
#include "csys.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static inline int result(int value) { return value < 0 ? -errno : value; }

static const int64_t second_ns = 1000000000;

static struct timespec to_timespec(int64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / second_ns), .tv_nsec = (long)(ns % second_ns)};
}

// ---- epoll

_Static_assert(CSYS_EPOLL_IN == (uint32_t)EPOLLIN && CSYS_EPOLL_OUT == (uint32_t)EPOLLOUT, "epoll flags");
_Static_assert(CSYS_EPOLL_ERR == (uint32_t)EPOLLERR && CSYS_EPOLL_HUP == (uint32_t)EPOLLHUP, "epoll flags");
_Static_assert(CSYS_EPOLL_RDHUP == (uint32_t)EPOLLRDHUP, "epoll flags");

int csys_epoll_create(void) { return result(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int epoll_fd, int operation, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = {.events = events, .data.u64 = token};
    return result(epoll_ctl(epoll_fd, operation, fd, &event));
}

int csys_epoll_add(int epoll_fd, int fd, uint32_t events, uint64_t token) {
    return control(epoll_fd, EPOLL_CTL_ADD, fd, events, token);
}

int csys_epoll_modify(int epoll_fd, int fd, uint32_t events, uint64_t token) {
    return control(epoll_fd, EPOLL_CTL_MOD, fd, events, token);
}

int csys_epoll_remove(int epoll_fd, int fd) { return control(epoll_fd, EPOLL_CTL_DEL, fd, 0, 0); }

int csys_epoll_wait(int epoll_fd, struct csys_epoll_event *events, int capacity, int64_t timeout_ns) {
    enum { most = 256 };
    static _Atomic int lacks_pwait2;
    struct epoll_event ready[most];
    if (capacity > most) capacity = most;
    int count;
    if (timeout_ns <= 0) {
        count = epoll_wait(epoll_fd, ready, capacity, timeout_ns < 0 ? -1 : 0);
    } else {
        count = -1;
        errno = ENOSYS;
        if (!lacks_pwait2) {
            struct timespec timeout = to_timespec(timeout_ns);
            count = epoll_pwait2(epoll_fd, ready, capacity, &timeout, NULL);
        }
        if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
            // Old kernels lack the call; some container filters answer EPERM for calls that they do not know.
            lacks_pwait2 = 1;
            int64_t milliseconds = (timeout_ns + 999999) / 1000000;
            count = epoll_wait(epoll_fd, ready, capacity, milliseconds > 0x7fffffff ? 0x7fffffff : (int)milliseconds);
        }
    }
    if (count < 0) return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < count; i++) {
        events[i].token = ready[i].data.u64;
        events[i].events = ready[i].events;
    }
    return count;
}

// ---- eventfd and timerfd

int csys_eventfd_create(void) { return result(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

int csys_eventfd_signal(int fd) {
    uint64_t one = 1;
    // EAGAIN: the counter is full, so the descriptor is readable already.
    if (write(fd, &one, sizeof one) < 0 && errno != EAGAIN) return -errno;
    return 0;
}

static int64_t read_counter(int fd) {
    uint64_t value = 0;
    if (read(fd, &value, sizeof value) < 0) return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

int64_t csys_eventfd_drain(int fd) { return read_counter(fd); }

int csys_timerfd_create(void) { return result(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)); }

int csys_timerfd_arm(int fd, int64_t first_ns, int64_t interval_ns) {
    // A time of 0 would disarm the timer.
    struct itimerspec setting = {.it_value = to_timespec(first_ns < 1 ? 1 : first_ns),
                                 .it_interval = to_timespec(interval_ns < 0 ? 0 : interval_ns)};
    return result(timerfd_settime(fd, TFD_TIMER_ABSTIME, &setting, NULL));
}

int csys_timerfd_disarm(int fd) {
    struct itimerspec setting = {0};
    return result(timerfd_settime(fd, 0, &setting, NULL));
}

int64_t csys_timerfd_read(int fd) { return read_counter(fd); }

int64_t csys_monotonic_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * second_ns + now.tv_nsec;
}

int csys_sleep_until(int64_t when_ns) {
    struct timespec when = to_timespec(when_ns < 0 ? 0 : when_ns);
    int error;
    do {
        error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
    } while (error == EINTR);
    return -error;
}

// ---- signals

static void signal_set(sigset_t *set, const int *signals, int count) {
    sigemptyset(set);
    for (int i = 0; i < count; i++) sigaddset(set, signals[i]);
}

int csys_signals_block(const int *signals, int count) {
    sigset_t set;
    signal_set(&set, signals, count);
    return -pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int csys_signals_unblock(const int *signals, int count) {
    sigset_t set;
    signal_set(&set, signals, count);
    return -pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int csys_signalfd_create(const int *signals, int count) {
    sigset_t set;
    signal_set(&set, signals, count);
    return result(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

int csys_signalfd_read(int fd, pid_t *sender) {
    struct signalfd_siginfo info;
    ssize_t count = read(fd, &info, sizeof info);
    if (count < 0) return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (count != sizeof info) return -EIO;
    if (sender) *sender = (pid_t)info.ssi_pid;
    return (int)info.ssi_signo;
}

int csys_signal_ignore(int signal) {
    struct sigaction action = {.sa_handler = SIG_IGN};
    return result(sigaction(signal, &action, NULL));
}

// ---- threads

int csys_thread_set_name(const char *name) {
    char kept[16] = {0};
    for (int i = 0; i < 15 && name[i]; i++) kept[i] = name[i];
    return -pthread_setname_np(pthread_self(), kept);
}

pid_t csys_thread_id(void) { return (pid_t)syscall(SYS_gettid); }

int csys_thread_set_fifo(int priority) {
    struct sched_param parameter = {.sched_priority = priority};
    return result(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter));
}

int csys_thread_realtime_priority(void) {
    int policy = sched_getscheduler(0);
    if (policy < 0) return -errno;
    policy &= ~SCHED_RESET_ON_FORK;
    if (policy != SCHED_FIFO && policy != SCHED_RR) return 0;
    struct sched_param parameter;
    if (sched_getparam(0, &parameter) < 0) return -errno;
    return parameter.sched_priority;
}

int64_t csys_thread_cpu_time(void) {
    struct timespec used;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) < 0) return -errno;
    return (int64_t)used.tv_sec * second_ns + used.tv_nsec;
}

int csys_lock_memory(void) { return result(mlockall(MCL_CURRENT | MCL_FUTURE)); }

int csys_random(void *bytes, size_t length) {
    unsigned char *next = bytes;
    while (length > 0) {
        ssize_t count = getrandom(next, length, 0);
        if (count < 0) {
            if (errno == EINTR) continue;
            return -errno;
        }
        next += count;
        length -= (size_t)count;
    }
    return 0;
}

int csys_set_parent_death_signal(int signal) { return result(prctl(PR_SET_PDEATHSIG, signal)); }

int csys_set_dumpable(int dumpable) { return result(prctl(PR_SET_DUMPABLE, dumpable)); }
