"""What untrusted code can see, as options for bubblewrap. Starts nothing; see sandbox.

The program gets /usr and the interpreter read-only, its own files read-only in FOLDER, which is
its working folder, and two sized scratch places: /tmp and /dev/shm. Nothing else can be written.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePosixPath

FOLDER = "/desk"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives")
INSIDE = 1000  # the uid that the program sees in a user namespace of its own


class Way(StrEnum):
    """How the namespaces are made. All three end as an ordinary uid without capabilities."""

    ROOT = "root"  # by root, who has setpriv drop to an ordinary uid inside
    USER = "user namespace"
    OLD_USER = "user namespace, bubblewrap before 0.8"  # cannot forbid nested ones; seccomp does


def ways() -> Sequence[Way]:
    """The ways worth trying for whoever runs this, best first."""
    if may_drop() and shutil.which("setpriv"):
        return (Way.ROOT, Way.USER, Way.OLD_USER)
    return (Way.USER, Way.OLD_USER)


def may_drop() -> bool:
    """Whether this is a root who can become somebody else: in a container without root's rights
    there may be nobody else."""
    return os.geteuid() == 0 and ordinary_uid(Path("/proc/self/uid_map").read_text()) != 0


def ordinary_uid(uid_map: str) -> int:
    """A fresh uid that nobody has, from the upper part of what /proc/self/uid_map says exists.

    Fresh, because RLIMIT_NPROC counts by uid: two sandboxes with one uid would share the count.
    """
    first, _, count = (int(word) for word in uid_map.splitlines()[-1].split())
    end = min(first + count, 2_000_000_000)
    return end - 1 - secrets.randbelow(max(1, (end - first) // 16))


def namespace_options(way: Way) -> list[str]:
    """New namespaces of every kind, one session, no environment, and nobody left behind."""
    options = ["--new-session", "--die-with-parent", "--clearenv", "--hostname", "sandbox"]
    options += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    options += ["--unshare-cgroup-try", "--cap-drop", "ALL"]
    if way is Way.ROOT:
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            options += ["--cap-add", capability]
        return options
    options += ["--unshare-user", "--uid", str(INSIDE), "--gid", str(INSIDE)]
    return options + (["--disable-userns"] if way is Way.USER else [])


def drop_command(way: Way, uid: int) -> list[str]:
    """What goes before the program so that it runs as `uid` with no way back."""
    if way is not Way.ROOT:
        return []
    setpriv = shutil.which("setpriv") or "setpriv"
    who = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return [setpriv, *who, "--inh-caps=-all", "--bounding-set=-all", "--"]


def place_of(path: str) -> str:
    """Where in the sandbox a file with this relative path goes."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise ValueError(f"not a path below the sandbox's folder: {path!r}")
    return f"{FOLDER}/{PurePosixPath(path)}"


def settings(uid: int) -> dict[str, bytes]:
    """The files in /etc without which names of users and of this machine have no meaning."""
    user = f"student:x:{uid}:{uid}:student:/tmp:/bin/sh\n"
    return {"/etc/passwd": user.encode(), "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n"}


def environment_options(extra: Mapping[str, str]) -> list[str]:
    """The whole environment of the program."""
    values = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "USER": "student",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MALLOC_ARENA_MAX": "2",  # threads must not eat the address space that is limited
        **extra,
    }
    return [word for name, value in values.items() for word in ("--setenv", name, value)]


@cache
def interpreter_trees() -> Sequence[Path]:
    """The parts of this interpreter's installation and virtual environment that it runs from."""
    prefixes = {Path(prefix) for prefix in (sys.prefix, sys.base_prefix, sys.base_exec_prefix)}
    prefixes |= {prefix.resolve() for prefix in prefixes}
    parts = (p / part for p in prefixes for part in ("bin", "lib", "lib64", "pyvenv.cfg"))
    return sorted(part for part in parts if part.exists())


def view_options(
    binds: Mapping[str, Path], hidden: tuple[Path, ...], files: Mapping[str, int], scratch: int,
    *, writable: bool = False,
) -> list[str]:
    """The file system. `files` maps places inside to descriptors that hold their contents.

    Folders in `hidden` are empty even where something visible contains them; `binds` (place in
    the sandbox → path outside) are read-only and win over `hidden`. `writable`: in the program's
    folder files can be made, as in /tmp.
    """
    masks = _masks(hidden)
    mounts = _system_mounts(scratch) | _interpreter_mounts(masks)
    mounts |= {FOLDER: _empty(FOLDER, "1777", scratch)} if writable else {}
    mounts |= {mask: _empty(mask, "0555", 4096) for mask in masks}
    mounts |= {place: ["--ro-bind", str(source), place] for place, source in binds.items()}
    made = set(mounts)
    options = []
    # Outer places first, so that what lies inside another one is kept.
    for place in sorted(mounts, key=lambda place: (place.count("/"), place)):
        options += _folders(place, made) + mounts[place]
    for place, descriptor in files.items():
        mode = "1777" if writable and place.startswith(f"{FOLDER}/") else "0755"
        options += _folders(place, made, mode)
        options += ["--perms", "0444", "--file", str(descriptor), place]
    options += _folders(f"{FOLDER}/", made)
    for place in ("/proc/1", "/proc", "/dev", *masks, "/"):
        options += ["--remount-ro", place]
    return [*options, "--chdir", FOLDER]


def as_arguments(options: Iterable[str]) -> bytes:
    """The options as --args reads them; no word may smuggle in another one."""
    words = [os.fsencode(word) for word in options]
    if any(b"\0" in word for word in words):
        raise ValueError("a NUL in a sandbox option")
    return b"".join(word + b"\0" for word in words)


def _system_mounts(scratch: int) -> dict[str, list[str]]:
    mounts = {
        "/proc": ["--proc", "/proc"],
        "/dev": ["--dev", "/dev"],
        "/dev/shm": _empty("/dev/shm", "1777", scratch),
        "/tmp": _empty("/tmp", "1777", scratch),
        # In a user namespace pid 1 has the program's uid: its memory and output lie open.
        "/proc/1": _empty("/proc/1", "0555", 4096),
    }
    outside = filter(Path.exists, map(Path, (*SYSTEM, *SETTINGS)))
    return mounts | {str(path): _show(path) for path in outside}


def _interpreter_mounts(masks: Sequence[str]) -> dict[str, list[str]]:
    trees = interpreter_trees()
    covered = [tree for tree in trees if _inside(tree, SYSTEM) and not _inside(tree, masks)]
    return {str(tree): _show(tree) for tree in trees if tree not in covered}


def _show(path: Path) -> list[str]:
    """Options that show `path` inside where it is outside; /lib64 stays a link to /usr/lib64."""
    link = path.readlink() if path.is_symlink() else Path("/")
    if link.is_absolute() or ".." in link.parts:
        return ["--ro-bind", str(path), str(path)]
    return ["--symlink", str(link), str(path)]


@cache
def _masks(hidden: tuple[Path, ...]) -> Sequence[str]:
    """Those of `hidden` (and /usr/src, where containers keep checkouts) that would be seen."""
    trees = [str(tree) for tree in interpreter_trees()]
    folders = {path.resolve() for path in (*hidden, Path("/usr/src")) if path.is_dir()}
    seen = (path for path in folders if _inside(path, [*SYSTEM, *trees]))
    return sorted(str(path) for path in seen if str(path) not in {*SYSTEM, *trees})


def _inside(path: Path, places: Iterable[str]) -> bool:
    return any(path.is_relative_to(place) for place in places)


def _empty(place: str, permissions: str, size: int) -> list[str]:
    return ["--size", str(size), "--perms", permissions, "--tmpfs", place]


def _folders(place: str, made: set[str], mode: str = "0755") -> list[str]:
    """Options for the folders above `place` that nothing has made yet, readable by anybody."""
    above = [str(folder) for folder in PurePosixPath(f"{place}x").parents if str(folder) != "/"]
    missing = [folder for folder in reversed(above) if folder not in made]
    made.update(missing)
    return [word for folder in missing for word in ("--perms", mode, "--dir", folder)]
