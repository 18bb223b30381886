"""Hostile and odd programs in a real sandbox. Each attack says `safe`, or what it got through."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from course import bubblewrap, seccomp
from course.bubblewrap import Way
from course.errors import INFRASTRUCTURE, Unavailable
from course.leash import MIB, Limits
from course.overseer import Capture
from course.provision import PERMIT, SandboxMissing, find_sandbox, probe_sandbox
from course.sandbox import Sandbox, SandboxFailed, SandboxResult

BOX: Sandbox | None = None
WHY_NOT = ""
try:
    BOX = find_sandbox()
except SandboxMissing as missing:
    WHY_NOT = f"NO SANDBOX, SO NOTHING OF IT IS TESTED: {missing.message}: {missing.next_command}"

needs_sandbox = pytest.mark.skipif(BOX is None, reason=WHY_NOT)
MARK = f"course-test-{uuid.uuid4()}"
QUICK = Limits(wall_s=1.0)
ROOT = Path(__file__).parents[1]

PRELUDE = """
import ctypes, errno, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    '''The errno of a raw system call; 0 where it went through.'''
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *words) == -1 else 0

def closed(*names):
    '''Whether each of these system calls is unknown, as on an older kernel.'''
    present = [name for name in names if name in NUMBERS]
    open_ones = [name for name in present if call(NUMBERS[name], 0, 0, 0, 0, 0) != errno.ENOSYS]
    print("BREACH " + " ".join(open_ones) if open_ones or not present else "safe")

def refused(*attempts):
    '''Whether each attempt ends in an error.'''
    through = []
    for number, attempt in enumerate(attempts):
        try:
            through.append(f"{number}: {attempt()!r}"[:200])
        except (OSError, ValueError):
            pass
    print("BREACH " + "; ".join(through) if through else "safe")

def touch(path):
    with open(path, "ab") as file:
        return path
"""

SYSCALLS = {
    "reads another process": "ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp",
    "new namespaces": "unshare setns clone3",
    "mounts": "mount umount2 pivot_root chroot fsopen fsmount fsconfig fspick move_mount open_tree "
    "mount_setattr swapon swapoff quotactl",
    "programs the kernel": "bpf perf_event_open userfaultfd init_module finit_module kexec_load "
    "kexec_file_load delete_module",
    "io_uring": "io_uring_setup io_uring_enter io_uring_register io_setup io_submit",
    "keyrings": "keyctl add_key request_key",
    "memory that no limit counts": "memfd_create memfd_secret shmget shmat msgget semget mq_open",
    "opens by handle": "name_to_handle_at open_by_handle_at fanotify_init fanotify_mark",
    "the whole machine": "reboot sync syslog acct settimeofday clock_settime adjtimex "
    "sethostname setdomainname vhangup iopl ioperm personality",
    "its own filter": "seccomp landlock_create_ruleset",
    "its processors": "sched_setaffinity sched_setattr sched_setscheduler",
    "data by reference": "vmsplice splice tee process_madvise move_pages mbind",
}

ATTACKS = {
    "namespace by clone": """
        flags = [0x10000000, 0x20000, 0x40000000, 0x20000000, 0x02000000, 0x04000000, 0x08000000]
        codes = [call(NUMBERS["clone"], flag | 17, 0, 0, 0, 0) for flag in flags]
        print("safe" if codes == [errno.ENOSYS] * len(flags) else f"BREACH {codes}")
    """,
    "socket families": """
        families = [family for family in range(60) if family not in (1, 2, 10)]
        refused(*(lambda f=f, k=k: socket.socket(f, k) for f in families for k in (1, 2, 3, 5)))
    """,
    "raw sockets": """
        refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
                lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58))
    """,
    "types into a terminal": """
        import fcntl
        main, side = os.openpty()
        high = ctypes.c_ulong(0x100005412)
        codes = [call(NUMBERS["ioctl"], side, code, b"x") for code in (0x5412, 0x541C, high)]
        print("safe" if codes == [errno.ENOSYS] * 3 else f"BREACH {codes}")
    """,
    "the controlling terminal": "refused(lambda: os.open('/dev/tty', os.O_RDWR))",
    "memory of pid 1": """
        refused(lambda: os.open("/proc/1/mem", os.O_RDWR), lambda: os.listdir("/proc/1/fd"),
                lambda: os.open("/proc/1/environ", os.O_RDONLY), lambda: os.readlink("/proc/1/exe"),
                lambda: os.listdir("/proc/1/root"), lambda: os.stat("/proc/1/ns/user"))
    """,
    "kills pid 1": """
        for number in (9, 19, 15, 1, 11):
            try:
                os.kill(1, number)
            except OSError:
                pass
        time.sleep(0.2)
        print("safe")
    """,
    "signals its parent and its group": """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for send in (lambda: os.kill(os.getppid(), 19), lambda: os.kill(0, 15)):
            try:
                send()
            except OSError:
                pass
        print("safe")
    """,
    "secrets of the machine": """
        paths = ["/etc/shadow", "/etc/ssh", "/root/.ssh", "/root/.netrc", "/home", "/var", "/run",
                 "/sys", "/boot", "/mnt", "/opt", "/srv", "/media", "/proc/kcore", "/dev/mem",
                 "/dev/vda", "/dev/sda", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/run/docker.sock"]
        refused(*(lambda p=p: (os.listdir if os.path.isdir(p) else open)(p) for p in paths))
    """,
    "the course": """
        # (an interpreter in ROOT/.venv is seen, and nothing else of ROOT)
        refused(lambda: os.listdir(ROOT + "/labs"), lambda: open(ROOT + "/course/sandbox.py"),
                lambda: os.listdir(ROOT + "/solutions"), lambda: open(ROOT + "/pyproject.toml"))
    """,
    "looks outside by links": """
        os.symlink(ROOT, "/tmp/link")
        refused(lambda: os.listdir("/tmp/link/labs"), lambda: os.link("/usr", "/tmp/usr"),
                lambda: os.listdir("/proc/self/root" + ROOT + "/labs"),
                lambda: os.listdir("/desk/../.." + ROOT + "/labs"))
    """,
    "writes outside the scratch places": """
        def try_all(folder, depth):
            try:
                touch(folder + "/x")
                through.append(folder)
            except OSError:
                pass
            if depth:
                for entry in os.scandir(folder):
                    if entry.is_dir(follow_symlinks=False) and entry.path not in SCRATCH:
                        try:
                            try_all(entry.path, depth - 1)
                        except OSError:
                            pass
        SCRATCH, through = ("/tmp", "/dev/shm", "/proc/self"), []
        try_all("/", 3)
        print(f"BREACH {through}" if through else "safe")
    """,
    "changes what it was given": """
        here = os.path.abspath("attack.py")
        refused(lambda: touch(here), lambda: os.unlink(here), lambda: os.chmod(here, 0o777),
                lambda: os.rename(here, "/tmp/x"), lambda: touch("/desk/conftest.py"),
                lambda: os.mkdir("/desk/x"), lambda: os.utime(here, (0, 0)),
                lambda: os.setxattr(here, "user.x", b"1"))
    """,
    "plants code in the interpreter": """
        refused(*(lambda p=p: touch(p + "/usercustomize.py") for p in sys.path if os.path.isdir(p)),
                lambda: touch(os.path.realpath(sys.executable)), lambda: touch(os.__file__))
    """,
    "writes to its own input": """
        refused(lambda: os.write(0, b"x"), lambda: os.ftruncate(0, 1 << 20),
                lambda: os.write(os.open("/proc/self/fd/0", os.O_RDWR), b"x"))
    """,
    "kernel switches": """
        import glob
        def write_back(path):
            with open(path, "rb") as switch:
                value = switch.read()
            with open(path, "wb", buffering=0) as switch:
                return path, switch.write(value)
        switches = [p for p in glob.glob("/proc/sys/**", recursive=True) if os.path.isfile(p)]
        refused(*(lambda p=p: write_back(p) for p in switches),
                lambda: os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY)),
                lambda: os.write(os.open("/proc/self/uid_map", os.O_WRONLY), b"0 0 1"),
                lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-1000"))
    """,
    "device nodes": """
        refused(lambda: os.mknod("/tmp/mem", 0o20666, os.makedev(1, 1)),
                lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(254, 0)))
    """,
    "becomes root": """
        refused(lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0),
                lambda: os.setgroups([0]), lambda: os.chown("/tmp", 0, 0))
    """,
    "set-user-id programs": """
        import shutil, subprocess
        shutil.copy("/usr/bin/id", "/tmp/id")
        os.chmod("/tmp/id", 0o6755)
        uids = {subprocess.run(c, capture_output=True, text=True).stdout.strip()
                for c in (["/tmp/id", "-u"], ["/usr/bin/id", "-u"])}
        print("safe" if uids == {str(os.getuid())} and uids != {"0"} else f"BREACH {uids}")
    """,
    "capabilities": """
        status = dict(line.split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
        held = {k: v for k, v in status.items() if k.startswith("Cap") and int(v, 16)}
        fine = not held and status["NoNewPrivs"] == "1\\n" and status["Seccomp"] == "2\\n"
        print("safe" if fine and os.getuid() and os.getgid() else f"BREACH {held} {status}")
    """,
    "raises its limits": """
        import resource
        refused(*(lambda k=k: resource.setrlimit(k, (-1, -1)) for k in (
            resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE,
            resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)))
    """,
    "limits are there": """
        import resource as r
        wanted = {r.RLIMIT_AS: 1 << 30, r.RLIMIT_NPROC: 64, r.RLIMIT_CORE: 0,
                  r.RLIMIT_NOFILE: 128, r.RLIMIT_FSIZE: 16 << 20}
        found = {kind: r.getrlimit(kind)[1] for kind in wanted}
        print("safe" if found == wanted else f"BREACH {found}")
    """,
    "the grader's environment": """
        names = {"PATH", "HOME", "TMPDIR", "USER", "LANG", "PYTHONDONTWRITEBYTECODE", "MARK",
                 "MALLOC_ARENA_MAX", "PWD", "LC_CTYPE"}
        print("safe" if set(os.environ) <= names else f"BREACH {set(os.environ) - names}")
    """,
    "the grader's descriptors": """
        links = {}
        for fd in range(3, 256):
            try:
                links[fd] = os.readlink(f"/proc/self/fd/{fd}")
            except OSError:
                pass
        print(f"BREACH {links}" if links else "safe")
    """,
    "other processes": """
        seen = [name for name in os.listdir("/proc") if name.isdigit()]
        print("safe" if len(seen) == 2 and os.getpid() < 10 else f"BREACH {seen}")
    """,
    "the machine's name": """
        print("safe" if os.uname().nodename == "sandbox" else f"BREACH {os.uname()}")
    """,
    "the network": """
        def connect(family, address):
            with socket.socket(family) as s:
                s.settimeout(2)
                return s.connect(address)
        refused(lambda: connect(socket.AF_INET, ("127.0.0.1", PORT)),
                lambda: connect(socket.AF_INET, ("192.0.2.1", 80)),
                lambda: connect(socket.AF_INET6, ("::1", PORT)),
                lambda: connect(socket.AF_UNIX, ABSTRACT),
                lambda: socket.create_connection(("pypi.org", 443), timeout=2))
        interfaces = open("/proc/net/dev").read().count(":")
        print("safe" if interfaces == 1 else f"BREACH {interfaces} interfaces")
    """,
    "fills the scratch places": """
        def fill(folder):
            size = 0
            for number in range(100):
                with open(f"{folder}/{number}", "wb", buffering=0) as file:
                    for _ in range(15):
                        file.write(bytes(1 << 20))
                        size += 1
            return size
        written = []
        for folder in ("/tmp", "/dev/shm"):
            try:
                fill(folder)
            except OSError as error:
                written.append(error.errno == errno.ENOSPC)
        print("safe" if written == [True, True] else f"BREACH {written}")
    """,
    "one huge file": """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        def sparse():
            with open("/tmp/sparse", "wb") as file:
                file.truncate(1 << 40)
        def solid():
            with open("/tmp/solid", "wb") as file:
                for _ in range(17):
                    file.write(bytes(1 << 20))
        refused(sparse, solid)
    """,
    "a nest of folders": """
        os.chdir("/tmp")
        for _ in range(6000):
            os.mkdir("d")
            os.chdir("d")
        print("safe")
    """,
    "attributes without end": """
        open("/tmp/file", "w").close()
        refused(lambda: os.setxattr("/tmp/file", "user.x", bytes(60000)),
                lambda: os.setxattr("/tmp/file", "security.x", b"x"))
    """,
    "huge socket buffers": """
        pair = socket.socketpair()
        refused(lambda: pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30),
                lambda: pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30),
                lambda: pair[0].setsockopt(socket.SOL_SOCKET, 32, 1 << 30))
    """,
    "descriptors without end": """
        kept = []
        try:
            while True:
                kept.append(os.open("/dev/null", 0))
        except OSError as error:
            pass
        print("safe" if len(kept) < 300 else f"BREACH {len(kept)}", flush=True)
    """,
    "pipes full of data": """
        kept = []
        try:
            while True:
                pair = os.pipe()
                os.set_blocking(pair[1], False)
                kept.append(os.write(pair[1], bytes(1 << 20)))
        except OSError as error:
            pass
        print("safe" if sum(kept) < 32 << 20 else f"BREACH {sum(kept)}", flush=True)
    """,
    "threads without end": """
        import threading
        count = 0
        try:
            while count < 5000:
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
                count += 1
        except RuntimeError:
            pass
        print("safe" if count < 64 else f"BREACH {count}", flush=True)
        os._exit(0)
    """,
    "processes without end": """
        count = 0
        try:
            while count < 5000:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                count += 1
        except OSError:
            pass
        print("safe" if count < 64 else f"BREACH {count}", flush=True)
    """,
    "memory without end": """
        blocks = []
        try:
            while True:
                blocks.append(bytearray(1 << 24))
        except MemoryError:
            size = len(blocks)
        del blocks
        print("safe" if size < 64 else f"BREACH {size}")
    """,
    "another instruction set": """
        import mmap
        child = os.fork()
        if child == 0:
            page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
            entry = ctypes.addressof(ctypes.c_char.from_buffer(page))
            ctypes.CFUNCTYPE(ctypes.c_int)(entry)()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        x32 = os.fork()
        if x32 == 0:
            libc.syscall(ctypes.c_long(0x40000000 + 39))
            os._exit(0)
        other = os.waitpid(x32, 0)[1]
        killed = os.WIFSIGNALED(status) and os.WIFSIGNALED(other)
        print("safe" if killed or os.uname().machine != "x86_64" else f"BREACH {status} {other}")
    """,
}


def numbers() -> dict[str, int]:
    """System call numbers of this machine, by name, for the programs that try them."""
    names = {name for row in SYSCALLS.values() for name in row.split()} | {"clone", "ioctl"}
    library = ctypes.CDLL("libseccomp.so.2")
    found = {name: library.seccomp_syscall_resolve_name(name.encode()) for name in names}
    # Newer than the libseccomp of Debian 12; one number for every architecture.
    newer = {"landlock_create_ruleset": 444, "memfd_secret": 447, "mount_setattr": 442}
    return newer | {name: number for name, number in found.items() if number >= 0}


def programs() -> dict[str, str]:
    rows = {name: f"closed(*{row.split()!r})" for name, row in SYSCALLS.items()}
    return rows | {name: textwrap.dedent(source) for name, source in ATTACKS.items()}


def play(source: str, limits: Limits = QUICK, stdin: bytes = b"") -> SandboxResult:
    """Run a Python program in the sandbox, marked so that what it leaves can be found."""
    assert BOX
    return BOX.run(
        [BOX.python, "-I", "-S", "attack.py"],
        files={"attack.py": textwrap.dedent(source).encode()},
        env={"MARK": MARK},
        limits=limits,
        stdin=stdin,
    )


def left_over() -> list[str]:
    """Processes that carry the mark of these tests."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in folder.joinpath("environ").read_bytes():
                found.append(folder.joinpath("cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a process, a mount, a descriptor or a file behind."""

    def traces() -> tuple[str, set[str]]:
        descriptors = {path.name for path in Path("/proc/self/fd").iterdir()}
        return Path("/proc/self/mountinfo").read_text(), descriptors

    before = traces()
    yield
    assert left_over() == []
    assert traces() == before


@pytest.mark.skipif(BOX is None and not os.environ.get("CI"), reason=WHY_NOT)
def test_there_is_a_sandbox_to_test() -> None:
    """Elsewhere these tests are skipped with the reason; in CI the lack of one is a failure."""
    assert BOX, WHY_NOT


@needs_sandbox
@pytest.mark.parametrize("name", programs())
def test_an_attack_reaches_nothing(name: str) -> None:
    """Each program tries one kind of thing and prints `safe` only if none of it worked."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as hidden:
        abstract = f"\0{MARK}"
        hidden.bind(abstract)
        hidden.listen()
        facts = f"NUMBERS = {numbers()}\nROOT = {str(ROOT)!r}\n"
        facts += f"PORT = {server.getsockname()[1]}\nABSTRACT = {abstract!r}\n"
        result = play(facts + PRELUDE + programs()[name], Limits(wall_s=20))
    lines = set(result.stdout.splitlines())
    assert lines == {b"safe"}, (name, result)
    assert result.exit_status == 0, result
    assert not result.stopped


def slow(result: SandboxResult) -> bool:
    return result.timed_out and result.stopped == "time" and 0.9 < result.duration_s < 4


ENDINGS: dict[str, tuple[str, Callable[[SandboxResult], bool]]] = {
    "loops": ("while True: pass", slow),
    "sleeps": ("import time; time.sleep(600)", slow),
    "stops itself": ("import os; os.kill(os.getpid(), 19)", slow),
    "stops everybody": ("import os, time\nif os.fork(): os.kill(-1, 19)\ntime.sleep(600)", slow),
    "holds the interpreter lock": ("print(len(str(7 ** 10**9)))", slow),
    "a regular expression that never ends": (
        "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')",
        slow,
    ),
    "ignores every signal": (
        """
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True: pass
        """,
        slow,
    ),
    "closes its output and stays": (
        "import os, time\nos.close(1); os.close(2); time.sleep(600)",
        slow,
    ),
    "stays in a thread": (
        "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
        slow,
    ),
    "a bomb of forks": ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", slow),
    "children that replace themselves": (
        """
        import os
        while True:
            try:
                if os.fork():
                    os._exit(0) if os.getpid() != 2 else os.wait()
            except OSError:
                pass
        """,
        slow,
    ),
    "leaves a child with its output": (
        "import os, time\nif os.fork() == 0: os.setsid(); time.sleep(600)\nprint('done')",
        lambda r: r.exit_status == 0 and r.stdout == b"done\n" and r.duration_s < 2,
    ),
    "leaves a daemon": (
        """
        import os, signal, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
                for fd in (0, 1, 2): os.close(fd)
                time.sleep(600)
            os._exit(0)
        print('done')
        """,
        lambda r: r.exit_status == 0 and r.stdout == b"done\n" and r.duration_s < 2,
    ),
    "adopts orphans": (
        """
        import ctypes, os, time
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        if os.fork() == 0:
            if os.fork() == 0: time.sleep(600)
            os._exit(0)
        os.wait()
        """,
        lambda r: r.exit_status == 0 and r.duration_s < 2,
    ),
    "kills everybody": (
        "import os, time\nif os.fork() == 0: time.sleep(600)\nos.kill(-1, 9); print('alone')",
        lambda r: r.exit_status == 0 and r.stdout == b"alone\n",
    ),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", lambda r: r.exit_status == 137),
    "crashes": (
        "import ctypes; ctypes.string_at(0)",
        lambda r: r.exit_status == 139 and not r.timed_out,
    ),
    "exits at once": ("import os; os._exit(0)", lambda r: r.exit_status == 0 and not r.stdout),
    "speaks like bubblewrap": (
        "import sys; sys.exit('bwrap: setting up uid map: Permission denied')",
        lambda r: r.exit_status == 1 and r.stderr.startswith(b"bwrap: "),
    ),
    "memory in many processes": (
        """
        import os, time
        for _ in range(40):
            if os.fork() == 0:
                block = bytearray(200 << 20)
                for at in range(0, len(block), 4096): block[at] = 1
                time.sleep(600)
        time.sleep(600)
        """,
        lambda r: r.stopped == "memory",
    ),
    "files without end": (
        """
        import os
        os.chdir("/dev/shm")
        number = 0
        while True:
            os.mkdir(str(number))
            number += 1
        """,
        lambda r: r.stopped == "files",
    ),
    "writes without end": (
        "import os\nwhile True: os.write(1, bytes(1 << 16))",
        lambda r: r.stopped == "output" and r.output_truncated and len(r.stdout) < 1.1 * MIB,
    ),
    "writes 40 MB and is done": (
        "import os\nfor _ in range(640): os.write(2, b'x' * (1 << 16))\nprint('end')",
        lambda r: r.exit_status == 0 and r.output_truncated and r.stdout == b"end\n",
    ),
    "reads input that is not there": (
        "import sys; print(repr(sys.stdin.read()))",
        lambda r: r.exit_status == 0 and r.stdout == b"''\n",
    ),
    "uses up processor time with threads": (
        """
        import hashlib, threading
        work = lambda: hashlib.pbkdf2_hmac('sha256', b'x', b'y', 10**9)
        for _ in range(4): threading.Thread(target=work).start()
        """,
        slow,
    ),
}


@needs_sandbox
@pytest.mark.parametrize("name", ENDINGS)
def test_a_program_that_will_not_end_is_ended(name: str) -> None:
    """Whatever it does, the run ends in time, the verdict is right and nothing is left alive."""
    source, expected = ENDINGS[name]
    started = time.monotonic()
    wall = 1.0 if expected is slow else 20.0
    result = play(source, Limits(wall_s=wall, total_memory=800 * MIB))
    assert expected(result), result
    assert time.monotonic() - started < wall + 5


ODD_BUT_RIGHT = {
    "threads": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(16) as pool:
            assert sum(pool.map(lambda n: n * n, range(1000))) == 332833500
    """,
    "processes": """
        from concurrent.futures import ProcessPoolExecutor
        if __name__ == "__main__":
            with ProcessPoolExecutor(2) as pool:
                assert list(pool.map(abs, [-1, -2])) == [1, 2]
    """,
    "shared memory": """
        from multiprocessing import shared_memory
        block = shared_memory.SharedMemory(create=True, size=1000)
        block.close(); block.unlink()
    """,
    "commands": """
        import subprocess
        assert subprocess.run("echo a | tr a b", shell=True, capture_output=True).stdout == b"b\\n"
    """,
    "asyncio": """
        import asyncio
        async def main():
            server = await asyncio.start_server(lambda r, w: w.close(), "localhost", 0)
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("localhost", port)
            assert await reader.read() == b""
            child = await asyncio.create_subprocess_exec("true")
            assert await child.wait() == 0
        asyncio.run(main())
    """,
    "files": """
        import pathlib, shutil, sqlite3, tempfile
        folder = pathlib.Path(tempfile.mkdtemp())
        shutil.copytree("/usr/lib/locale" if pathlib.Path("/usr/lib/locale").exists() else "/desk",
                        folder / "copy", dirs_exist_ok=True)
        (folder / "link").symlink_to("copy")
        sqlite3.connect(folder / "x.db").execute("create table t (a)")
        assert pathlib.Path.home().is_dir()
        shutil.rmtree(folder)
    """,
    "signals": """
        import signal, time
        fired = []
        signal.signal(signal.SIGALRM, lambda *_: fired.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        time.sleep(0.1)
        assert fired
    """,
    "who and where": """
        import getpass, os, pathlib, pwd, socket, time
        assert getpass.getuser() == pwd.getpwuid(os.getuid()).pw_name == "student"
        assert socket.gethostbyname("localhost") == "127.0.0.1" and time.tzname
        assert pathlib.Path.cwd() == pathlib.Path("/desk") and os.cpu_count()
    """,
    "a broken stdout": "import sys; sys.stdout.close(); sys.stderr.close()",
}


@needs_sandbox
@pytest.mark.parametrize("name", ODD_BUT_RIGHT)
def test_honest_programs_do_not_notice(name: str) -> None:
    """What ordinary Python programs do works, and ends with status 0."""
    result = play(ODD_BUT_RIGHT[name], Limits(wall_s=20))
    assert result.exit_status == 0, result.stderr.decode()


@needs_sandbox
def test_files_binds_and_input_arrive_as_bytes(tmp_path: Path) -> None:
    """Files stand in the working folder, binds where they were asked for, stdin is the bytes."""
    assert BOX
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "tests.py").write_bytes(b"T")
    tmp_path.chmod(0o755)
    source = """
        import pathlib, sys
        data = pathlib.Path("a/b/c.py").read_bytes() + pathlib.Path("/course/tests.py").read_bytes()
        sys.stdout.buffer.write(data + sys.stdin.buffer.read())
    """
    result = BOX.run(
        [BOX.python, "-I", "-S", "main.py"],
        files={"main.py": textwrap.dedent(source).encode(), "a/b/c.py": b"\xff\x00", "empty": b""},
        binds={"/course": tmp_path / "shared"},
        stdin=b"\x00in",
    )
    assert result.stdout == b"\xff\x00T\x00in", result


@needs_sandbox
def test_a_hidden_folder_is_empty_even_inside_a_visible_one() -> None:
    """A course checkout below /usr, as in a container, is masked; the rest of /usr is not."""
    box = find_sandbox(hidden=[Path("/usr/share")])
    source = "import os; print(os.listdir('/usr/share'), os.path.isdir('/usr/bin'))"
    assert box.run([box.python, "-I", "-S", "-c", source]).stdout == b"[] True\n"


@needs_sandbox
def test_nothing_is_left_for_the_next_run() -> None:
    """Two runs of a program that leaves files: the second finds none, and nor do we."""
    source = """
        import os
        print(os.path.exists("/tmp/left"), os.listdir("/dev/shm"))
        open("/tmp/left", "w").close()
        open("/dev/shm/left", "w").close()
    """
    assert [play(source).stdout for _ in range(2)] == [b"False []\n"] * 2
    assert not Path("/tmp/left").exists() and not Path("/dev/shm/left").exists()


@needs_sandbox
@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", ".", "a\0b"])
def test_a_file_outside_the_folder_is_refused(path: str) -> None:
    """Paths that would leave the working folder are our own bug, not a run."""
    assert BOX
    with pytest.raises(ValueError):
        BOX.run(["true"], files={path: b""})


@needs_sandbox
def test_a_run_can_be_held_to_one_processor() -> None:
    """A bomb of forks then leaves the other processors to its neighbours."""
    last = max(os.sched_getaffinity(0))
    source = "import os; print(os.sched_getaffinity(0))"
    assert play(source, Limits(cpu=last)).stdout == f"{{{last}}}\n".encode()


@needs_sandbox
def test_a_word_cannot_become_an_option() -> None:
    """A NUL in an environment value would smuggle in another bubblewrap option."""
    assert BOX
    with pytest.raises(ValueError):
        BOX.run(["true"], env={"A": "x\0--bind\0/\0/host"})


@needs_sandbox
def test_a_command_that_is_not_there_ends_as_in_a_shell() -> None:
    """A missing program is status 127, whichever way the sandbox is made."""
    assert BOX
    assert BOX.run(["/no/such/program"]).exit_status == 127


@needs_sandbox
def test_a_grader_with_many_open_files_can_still_run_one() -> None:
    """Descriptors above 1,024, which select() cannot wait for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("this machine allows too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (3000, hard))
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(1500)]
    try:
        assert play("print('fine')").stdout == b"fine\n"
    finally:
        for descriptor in kept:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@needs_sandbox
def test_a_grader_without_descriptors_is_no_verdict() -> None:
    """Out of descriptors: an error of ours, and nothing half started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, hard))
        with contextlib.suppress(OSError):
            while True:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        for room in range(0, 30, 3):
            for descriptor in kept[:room]:
                os.close(descriptor)
            del kept[:room]
            with contextlib.suppress(SandboxFailed):
                play("print('fine')")
    finally:
        for descriptor in kept:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@needs_sandbox
def test_a_sandbox_that_cannot_be_made_is_no_verdict(tmp_path: Path) -> None:
    """bubblewrap's own failure is told apart from a program that exits with 1."""
    assert BOX
    with pytest.raises(SandboxFailed) as caught:
        BOX.run(["true"], binds={"/course": tmp_path / "missing"})
    assert "missing" in caught.value.message
    assert caught.value.exit_code == INFRASTRUCTURE


@needs_sandbox
def test_sandboxes_run_side_by_side() -> None:
    """Eight at once, each a fork bomb that counts: one never eats the share of another."""
    counting = """
        import os, time
        count = 0
        try:
            while True:
                if os.fork() == 0: time.sleep(60); os._exit(0)
                count += 1
        except OSError: print(count)
    """
    results: list[SandboxResult] = []
    threads = [
        threading.Thread(target=lambda: results.append(play(counting, Limits(wall_s=20))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = [int(result.stdout or 0) for result in results]
    assert len(counts) == 8 and min(counts) >= 55, counts


def decision(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What a classic BPF filter answers for one system call: an interpreter of ten instructions."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *words)
    accumulator = at = 0
    while True:
        code, when, otherwise, k = struct.unpack_from("<HBBI", program, at * 8)
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, k)[0]
        elif code == 0x54:
            accumulator &= k
        elif code == 0x05:
            at += k
        else:
            jumps = {0x15: accumulator == k, 0x25: accumulator > k, 0x35: accumulator >= k}
            at += when if jumps[code] else otherwise


@needs_sandbox
@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_the_filter_of_either_architecture_decides_alike(machine: str) -> None:
    """Built for x86-64 and for arm64 and read instruction by instruction: the same answers."""
    architecture = seccomp.ARCHITECTURES[machine]
    program = seccomp.build_filter(machine)
    resolve = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name_arch

    def allows(name: str, *arguments: int) -> bool:
        number = resolve(ctypes.c_uint32(architecture), name.encode())
        assert number >= 0, (machine, name)
        answer = decision(program, architecture, number, *arguments)
        assert answer in (0x7FFF0000, 0x50000 | 38, 0x50000 | 95), hex(answer)
        return answer == 0x7FFF0000

    for name in ("read", "openat", "execve", "wait4", "futex", "mmap", "exit_group", "statx"):
        assert allows(name), name
    for row in SYSCALLS.values():
        for name in row.split():
            if resolve(ctypes.c_uint32(architecture), name.encode()) >= 0:
                assert not allows(name), name
    assert allows("clone", 17) and allows("clone", 0x3D0F00) and not allows("clone", 0x10000011)
    assert allows("socket", 1) and allows("socket", 2) and not allows("socket", 40)
    assert not allows("socket", 16) and not allows("socket", 17) and not allows("setxattr")
    assert allows("ioctl", 0, 0x5401) and not allows("ioctl", 0, 0x5412)
    assert not allows("ioctl", 0, 0x1_0000_5412) and allows("ioctl", 0, 0xFFFF_FFFF_8004_5430)
    assert allows("setsockopt", 3, 1, 2) and not allows("setsockopt", 3, 1, 7)
    assert not allows("setsockopt", 3, 1, 0x1_0000_0007) and allows("setsockopt", 3, 6, 1)
    for other in {0x40000003, 0x40000028, *seccomp.ARCHITECTURES.values()} - {architecture}:
        assert decision(program, other, 20) == 0x80000000
    if machine == "x86_64":
        assert decision(program, architecture, 0x40000000 | 39) == 0x80000000


GRADER = """
import sys
from course.provision import find_sandbox
from course.leash import Limits
box = find_sandbox()
code = "import time; print('up', flush=True); time.sleep(600)"
print("go", flush=True)
box.run([box.python, "-I", "-S", "-c", code], env={"MARK": sys.argv[1]}, limits=Limits(wall_s=60))
"""


def gone_within(seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while left_over() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left_over()


@needs_sandbox
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_grader_takes_its_sandbox_with_it(number: int) -> None:
    """No signal to the grader leaves a student's program running."""
    grader = subprocess.Popen(
        [sys.executable, "-c", GRADER, MARK],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with grader:
        assert grader.stdout and grader.stdout.readline() == b"go\n"
        while not left_over():
            assert grader.poll() is None
            time.sleep(0.02)
        time.sleep(0.2)
        grader.send_signal(number)
    assert gone_within(5)


@needs_sandbox
def test_the_graders_terminal_is_out_of_reach() -> None:
    """With a controlling terminal outside, the program inside still has none."""
    child, terminal = pty.fork()
    if child == 0:
        try:
            result = play("import os; os.open('/dev/tty', os.O_RDWR)")
            os._exit(0 if b"No such device" in result.stderr else 1)
        finally:
            os._exit(2)
    status = os.waitpid(child, 0)[1]
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.fixture
def readable_package() -> Iterator[Path]:
    """A copy of what the sandbox consists of, where every user may read it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "course").mkdir(mode=0o755)
        for module in (ROOT / "course").glob("*.py"):
            Path(shutil.copy(module, Path(folder, "course"))).chmod(0o644)
        yield Path(folder)


DRIVER = """
import json, sys
from course.provision import find_sandbox
from course.leash import Limits
box = find_sandbox()
job = json.load(sys.stdin)
outcome = {}
for name, source in job["programs"].items():
    result = box.run([box.python, "-I", "-S", "attack.py"], files={"attack.py": source.encode()},
                     env={"MARK": job["mark"]}, limits=Limits(wall_s=20))
    outcome[name] = result.stdout.decode().split() + result.stderr.decode().splitlines()
print(json.dumps({"way": box.way, "outcome": outcome}))
"""


@needs_sandbox
@pytest.mark.skipif(os.geteuid() != 0, reason="the tests above already run as an ordinary user")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python for everybody")
@pytest.mark.parametrize("within", [(), ("unshare", "-Ur")], ids=["nobody", "a root of nobody"])
def test_an_ordinary_user_makes_the_same_walls(
    within: tuple[str, ...], readable_package: Path
) -> None:
    """As nobody, and as the root of a container that nobody made: every attack again, with the
    system's Python."""
    facts = f"NUMBERS = {numbers()}\nROOT = {str(ROOT)!r}\nPORT = 9\nABSTRACT = '\\0none'\n"
    sources = {name: facts + PRELUDE + source for name, source in programs().items()}
    driver = subprocess.run(
        [*within, "/usr/bin/python3", "-c", DRIVER],
        input=json.dumps({"programs": sources, "mark": MARK}),
        env={"PYTHONPATH": str(readable_package), "PATH": "/usr/bin:/bin"},
        cwd="/",
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
    )
    if re.search("no sandbox can be made here|unshare failed", driver.stderr):
        pytest.skip(f"an ordinary user cannot make a sandbox here: {driver.stderr[-500:]}")
    assert driver.returncode == 0, driver.stderr
    report = json.loads(driver.stdout)
    assert report["way"] in (Way.USER, Way.OLD_USER)
    breaches = {name: said for name, said in report["outcome"].items() if set(said) != {"safe"}}
    assert breaches == {}


@needs_sandbox
@pytest.mark.skipif(os.geteuid() != 0, reason="who may not be nobody is told the same")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a Python for everybody")
def test_a_user_without_namespaces_is_told_what_to_permit(readable_package: Path) -> None:
    """Not a fallback: an error that says what to type."""
    driver = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces && exec "
         "/usr/bin/python3 -c 'from course.provision import find_sandbox; find_sandbox()'"],
        env={"PYTHONPATH": str(readable_package), "PATH": "/usr/bin:/bin"}, cwd="/", user=65534,
        group=65534, extra_groups=[], capture_output=True, text=True,
    )
    if "unshare failed" in driver.stderr:
        pytest.skip("an ordinary user cannot make a user namespace here")
    assert driver.returncode == 1 and "SandboxMissing: no sandbox can be made" in driver.stderr
    assert "max_user_namespaces" in PERMIT


@needs_sandbox
def test_a_folder_that_may_be_written_takes_new_files_within_limits() -> None:
    """Beside what is there, for this run only, and no more than a scratch place takes."""
    program = (
        "import pathlib\n"
        "for place in ('new.log', 'src/deep/new.log'):\n"
        "    pathlib.Path('/desk', place).write_text('x')\n"
        "try:\n"
        "    pathlib.Path('/desk/large').write_bytes(bytes(3_000_000))\n"
        "except OSError:\n"
        "    print(sorted(path.name for path in pathlib.Path('/desk').iterdir()))\n"
    )
    box = find_sandbox()
    for _ in range(2):
        result = box.run([box.python, "-I", "-S", "-c", program], files={"src/deep/a.py": b""},
                         limits=Limits(writable=True, scratch=2 * MIB))
        assert result.stdout == b"['large', 'new.log', 'src']\n", result.stderr
    flood = "for n in range(10_000): open(f'/desk/{n}', 'w').close()\nwhile True: pass"
    result = box.run([box.python, "-I", "-S", "-c", flood],
                     limits=Limits(writable=True, scratch_files=5_000))
    assert result.stopped == "files"
    assert box.run([box.python, "-I", "-S", "-c", program]).exit_status == 1


@pytest.mark.parametrize("sizes", [[], [5], [10], [11], [3, 3, 3, 3], [1] * 40, [200_000, 7]])
def test_a_capture_keeps_head_and_tail(sizes: list[int]) -> None:
    """Short streams come whole; of long ones both ends, and a line with the exact count between."""
    stream = bytes(n % 251 for n in range(sum(sizes)))
    capture = Capture(10)
    at = 0
    for size in sizes:
        capture.add(stream[at : at + size])
        at += size
    if len(stream) <= 10:
        assert capture.text() == stream and not capture.truncated
    else:
        note = f"\n[... {len(stream) - 10} bytes left out ...]\n".encode()
        assert capture.text() == stream[:5] + note + stream[-5:] and capture.truncated


def test_a_missing_bubblewrap_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never a silent fallback: exit code 4, the missing thing by name, the command to type."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SandboxMissing) as caught:
        find_sandbox()
    assert caught.value.exit_code == INFRASTRUCTURE and caught.value.kind == "sandbox"
    assert "bwrap" in caught.value.message
    assert "apt-get install bubblewrap" in caught.value.next_command
    assert "dnf install bubblewrap" in caught.value.next_command
    checks = {check.name: check for check in probe_sandbox()}
    assert not checks["bubblewrap"].ok and not checks["sandbox"].ok


def test_a_machine_that_forbids_namespaces_is_told_what_to_permit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A bubblewrap that cannot work: its own words, and what to permit on a runner or in docker."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxMissing) as caught:
        find_sandbox()
    assert "setting up uid map" in caught.value.message
    assert "apparmor_restrict_unprivileged_userns" in caught.value.next_command
    assert "docker" in caught.value.next_command
    assert [check.ok for check in probe_sandbox()] == [True, True, False]


def test_a_missing_libseccomp_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the filter there is no sandbox, rather than a weaker one."""

    def absent(name: str) -> ctypes.CDLL:
        raise OSError(name)

    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(ctypes, "CDLL", absent)
    with pytest.raises(SandboxMissing) as caught:
        find_sandbox()
    assert "libseccomp" in caught.value.message


def test_another_system_is_told_where_to_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS and Windows the doctor says so, and nothing is imported that is not there."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SandboxMissing, match="Linux"):
        find_sandbox()
    assert [(check.name, check.ok) for check in probe_sandbox()] == [("sandbox", False)]


def test_an_unknown_architecture_is_no_sandbox() -> None:
    """The filter was thought through for two architectures; others are refused by name."""
    with pytest.raises(Unavailable, match="riscv64"):
        seccomp.build_filter("riscv64")


@pytest.mark.parametrize(
    ("uid_map", "low", "high"),
    [
        ("         0          0 4294967295\n", 1_800_000_000, 2_000_000_000),
        ("         0     100000      65536\n", 60_000, 65_535),
        ("         0       1000          1\n         1     100000      65536\n", 60_000, 65_536),
        ("      1000       1000          1\n", 1000, 1000),
    ],
)
def test_an_ordinary_uid_exists_and_is_not_root(uid_map: str, low: int, high: int) -> None:
    """On a whole machine, in a container with 65,536 uids, and where there is only one."""
    assert all(low <= bubblewrap.ordinary_uid(uid_map) <= high for _ in range(100))


@needs_sandbox
def test_the_doctor_sees_a_working_sandbox() -> None:
    """Three checks, the last of which ran a program."""
    assert [(check.name, check.ok) for check in probe_sandbox()] == [
        ("bubblewrap", True),
        ("seccomp", True),
        ("sandbox", True),
    ]


@needs_sandbox
def test_a_run_costs_little_more_than_the_interpreter() -> None:
    """bubblewrap, filter, limits and the death of all inside: within 60 ms of plain Python."""
    assert BOX
    command = [BOX.python, "-I", "-S", "-c", "pass"]

    def fastest(run: Callable[[], object]) -> float:
        times = []
        for _ in range(15):
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
        return min(times)

    plain = fastest(lambda: subprocess.run(command, check=True))
    boxed = fastest(lambda: BOX.run(command) if BOX else None)
    assert boxed - plain < 0.06, (boxed, plain)
