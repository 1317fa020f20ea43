"""What processes cost."""

import os
import time


def cpu_seconds(pid):
    """User and system time that a process has used, all threads: its CPU clock, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | 2)


def resident_mib(pid):
    """VmRSS in MiB."""
    return _mebibytes(f"/proc/{pid}/status", "VmRSS:")


def own_mib(pid):
    """Memory that no file backs, in MiB."""
    return _mebibytes(f"/proc/{pid}/smaps_rollup", "Anonymous:")


def _mebibytes(path, field):
    with open(path) as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) / 1024
    raise RuntimeError(f"{path} has no {field}")


def wall_time(arguments, environment):
    """Seconds from before the process is made until it has ended; its output goes to /dev/null."""
    null = [(os.POSIX_SPAWN_OPEN, descriptor, "/dev/null", os.O_RDWR, 0) for descriptor in (0, 1, 2)]
    begin = time.perf_counter()
    pid = os.posix_spawn(arguments[0], arguments, environment, file_actions=null)
    os.waitpid(pid, 0)
    return time.perf_counter() - begin
