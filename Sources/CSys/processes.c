#define _GNU_SOURCE
#include "csys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static inline int result(int value) { return value < 0 ? -errno : value; }

int csys_pidfd_open(pid_t pid) { return result((int)syscall(SYS_pidfd_open, pid, 0)); }

int csys_open(const char *path, int flags, mode_t mode) { return result(open(path, flags | O_CLOEXEC, mode)); }

int csys_dup_cloexec(int fd) { return result(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

int csys_set_nonblocking(int fd, int on) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) return -errno;
    return result(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

int csys_pipe(int ends[2]) { return result(pipe2(ends, O_CLOEXEC)); }

static int set_attributes(posix_spawnattr_t *attributes, int new_session) {
    // A daemon must not inherit what the caller ignores or blocks (a shell's `nohup`, a signalfd's mask).
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    flags |= new_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    int error = posix_spawnattr_setflags(attributes, flags);
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error) error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error && !new_session) error = posix_spawnattr_setpgroup(attributes, 0);
    return error;
}

int csys_spawn(const struct csys_spawn_request *request) {
    if (request->inherited_count < 0 || request->inherited_count > 64) return -EINVAL;
    int total = 3 + request->inherited_count;
    // Copies above every target number, so that no dup2 below overwrites the source of a later one.
    int copies[3 + 64];
    for (int i = 0; i < total; i++) copies[i] = -1;

    int error = 0;
    for (int i = 0; i < total && !error; i++) {
        int source = i == 0   ? request->standard_input
                     : i == 1 ? request->standard_output
                     : i == 2 ? request->standard_error
                              : request->inherited[i - 3];
        if (source < 0 && i < 3) {
            int opened = open("/dev/null", O_RDWR | O_CLOEXEC);
            if (opened < 0) {
                error = errno;
                break;
            }
            copies[i] = fcntl(opened, F_DUPFD_CLOEXEC, total);
            if (copies[i] < 0) error = errno;
            close(opened);
        } else {
            copies[i] = fcntl(source, F_DUPFD_CLOEXEC, total);
            if (copies[i] < 0) error = errno;
        }
    }

    pid_t pid = -1;
    if (!error) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        for (int i = 0; i < total && !error; i++) error = posix_spawn_file_actions_adddup2(&actions, copies[i], i);
        if (!error) error = posix_spawn_file_actions_addclosefrom_np(&actions, total);
        if (!error && request->working_directory) {
            error = posix_spawn_file_actions_addchdir_np(&actions, request->working_directory);
        }
        if (!error) error = set_attributes(&attributes, request->new_session);
        if (!error) {
            error = posix_spawnp(
                &pid, request->executable, &actions, &attributes, request->arguments, request->environment);
        }
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
    }
    for (int i = 0; i < total; i++) {
        if (copies[i] >= 0) close(copies[i]);
    }
    return error ? -error : pid;
}

static int reap(pid_t pid, int options, int *exited, int *value) {
    int status = 0;
    pid_t found;
    do {
        found = waitpid(pid, &status, options);
    } while (found < 0 && errno == EINTR);
    if (found < 0) return -errno;
    if (found == 0) return 0;
    *exited = WIFEXITED(status);
    *value = *exited ? WEXITSTATUS(status) : WTERMSIG(status);
    return 1;
}

int csys_reap(pid_t pid, int *exited, int *value) { return reap(pid, WNOHANG, exited, value); }

int csys_reap_wait(pid_t pid, int *exited, int *value) { return reap(pid, 0, exited, value); }
