"""The system calls that untrusted code may make, as a BPF program for bubblewrap.

An allow list: what is not named fails with ENOSYS, as on an older kernel, so a call that a later
kernel brings is closed too. libseccomp assembles the program for the machine it runs on; it is
called through ctypes because its Python binding is not on PyPI (docs/adr, sandbox).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from collections.abc import Iterator

from course.errors import Unavailable

FILES = """
access faccessat faccessat2 open openat openat2 creat close close_range dup dup2 dup3 fcntl flock
read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 lseek ftruncate truncate
fallocate fadvise64 fsync fdatasync sync_file_range copy_file_range sendfile stat fstat lstat
newfstatat statx statfs fstatfs readlink readlinkat getdents getdents64 getcwd chdir fchdir umask
mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat mknod
mknodat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat
futimesat getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr
fremovexattr
"""
MEMORY = "brk mmap munmap mprotect mremap madvise msync mincore mlock mlock2 munlock membarrier"
PROCESSES = """
fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pidfd_open
pidfd_send_signal getpid getppid gettid getpgid getpgrp setpgid getsid setsid getuid geteuid getgid
getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid setgroups
setfsuid setfsgid capget capset prctl arch_prctl set_tid_address set_robust_list get_robust_list
rseq getrlimit setrlimit prlimit64 getrusage times getpriority setpriority sched_yield
sched_getaffinity sched_getscheduler sched_getparam sched_get_priority_max
sched_get_priority_min futex futex_waitv futex_wait futex_wake futex_requeue uname sysinfo getcpu
getrandom
"""
SIGNALS = """
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait
rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack restart_syscall pause alarm setitimer getitimer
signalfd signalfd4
"""
WAITING = """
nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time timer_create timer_settime
timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime poll
ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
eventfd eventfd2 pipe pipe2
"""
SOCKETS = """
bind listen accept accept4 connect getsockname getpeername getsockopt sendto sendmsg sendmmsg
recvfrom recvmsg recvmmsg shutdown
"""
# Extended attributes on a tmpfs are kernel memory that no limit counts; shutil expects ENOTSUP.
UNSUPPORTED = ("setxattr", "lsetxattr", "fsetxattr")
ALLOWED = f"{FILES} {MEMORY} {PROCESSES} {SIGNALS} {WAITING} {SOCKETS}".split()

# clone may make threads and processes but no namespaces; clone3 hides its flags from a filter, so
# it stays out and libc falls back to clone.
NAMESPACES = 0x7E020000
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}
# Options of any protocol, and those of SOL_SOCKET that leave the size of its buffers alone.
PROTOCOLS = {"IPPROTO_IP": 0, "IPPROTO_TCP": 6, "IPPROTO_UDP": 17, "IPPROTO_IPV6": 41}
SOL_SOCKET = 1
OPTIONS = {
    "SO_REUSEADDR": 2, "SO_BROADCAST": 6, "SO_KEEPALIVE": 9, "SO_OOBINLINE": 10, "SO_LINGER": 13,
    "SO_REUSEPORT": 15, "SO_PASSCRED": 16, "SO_RCVTIMEO": 20, "SO_SNDTIMEO": 21,
}  # fmt: skip
# Terminal and descriptor requests; TIOCSTI, which types into a terminal, is not one of them.
REQUESTS = {
    "TCGETS": 0x5401, "TCSETS": 0x5402, "TCSETSW": 0x5403, "TCSETSF": 0x5404,
    "TIOCSCTTY": 0x540E, "TIOCGPGRP": 0x540F, "TIOCSPGRP": 0x5410, "TIOCGWINSZ": 0x5413,
    "TIOCSWINSZ": 0x5414, "FIONREAD": 0x541B, "FIONBIO": 0x5421, "TIOCGPTPEER": 0x5441,
    "FIONCLEX": 0x5450, "FIOCLEX": 0x5451, "TCGETS2": 0x802C542A, "TIOCGPTN": 0x80045430,
    "TIOCSPTLCK": 0x40045431, "FICLONE": 0x40049409,
}  # fmt: skip

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_NATIVE = 0
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_BAD_ARCHITECTURE = 2
_OPTIMISE = 8
_MASKED_EQUAL = 7
_LOW_HALF = 0xFFFFFFFF  # the kernel looks at 32 bits of these arguments; so must the filter


class _Compare(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


def build_filter(machine: str = platform.machine()) -> bytes:
    """The BPF program for x86_64 or aarch64; Unavailable elsewhere and without libseccomp."""
    if machine not in ARCHITECTURES:
        raise Unavailable(f"the sandbox knows {', '.join(ARCHITECTURES)}, not {machine}")
    library = _libseccomp()
    context = library.seccomp_init(_ERRNO | errno.ENOSYS)
    try:
        if machine != platform.machine():
            library.seccomp_arch_remove(context, _NATIVE)
            library.seccomp_arch_add(context, ARCHITECTURES[machine])
        library.seccomp_attr_set(context, _BAD_ARCHITECTURE, _KILL_PROCESS)
        library.seccomp_attr_set(context, _OPTIMISE, 2)
        for action, name, *conditions in _rules():
            _add(library, context, action, name, conditions)
        return _export(library, context)
    finally:
        library.seccomp_release(context)


def _rules() -> Iterator[tuple[int, str, *tuple[_Compare, ...]]]:
    for name in ALLOWED:
        yield _ALLOW, name
    for name in UNSUPPORTED:
        yield _ERRNO | errno.ENOTSUP, name
    for family in FAMILIES.values():
        yield _ALLOW, "socket", _is(0, family)
        yield _ALLOW, "socketpair", _is(0, family)
    for protocol in PROTOCOLS.values():
        yield _ALLOW, "setsockopt", _is(1, protocol)
    for option in OPTIONS.values():
        yield _ALLOW, "setsockopt", _is(1, SOL_SOCKET), _is(2, option)
    for request in REQUESTS.values():
        yield _ALLOW, "ioctl", _is(1, request)
    yield _ALLOW, "clone", _Compare(0, _MASKED_EQUAL, NAMESPACES, 0)


def _is(argument: int, value: int) -> _Compare:
    return _Compare(argument, _MASKED_EQUAL, _LOW_HALF, value)


def _libseccomp() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as missing:
        raise Unavailable(
            "libseccomp (libseccomp.so.2) is not installed",
            "apt-get install libseccomp2    (Fedora: dnf install libseccomp)",
        ) from missing
    context = ctypes.c_void_p
    library.seccomp_init.restype = context
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_arch_add.argtypes = [context, ctypes.c_uint32]
    library.seccomp_arch_remove.argtypes = [context, ctypes.c_uint32]
    library.seccomp_attr_set.argtypes = [context, ctypes.c_int, ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        context, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(_Compare),
    ]  # fmt: skip
    library.seccomp_export_bpf.argtypes = [context, ctypes.c_int]
    library.seccomp_release.argtypes = [context]
    library.seccomp_release.restype = None
    library.seccomp_syscall_resolve_name.argtypes = [ctypes.c_char_p]
    return library


def _add(
    library: ctypes.CDLL, context: int, action: int, name: str, conditions: list[_Compare]
) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number < 0:  # not on this architecture, or newer than this libseccomp: stays closed
        return
    array = (_Compare * len(conditions))(*conditions)
    if library.seccomp_rule_add_array(context, action, number, len(conditions), array):
        raise Unavailable(f"libseccomp refused the rule for {name}")


def _export(library: ctypes.CDLL, context: int) -> bytes:
    with os.fdopen(os.memfd_create("seccomp"), "r+b") as program:
        if library.seccomp_export_bpf(context, program.fileno()):
            raise Unavailable("libseccomp could not write the filter")
        program.seek(0)
        return program.read()
