"""The program inside the child process: runs pytest and reports one JSON event a line.

Run as a script (`python -P plugin.py SPEC`); needs the standard library and pytest, imports
nothing of ours and judges nothing. The code under test is not trusted to behave: it may print,
read, exit, fork, close descriptors or change the interpreter, and the events must stay right.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import marshal
import os
import random
import signal
import socket
import sys
import sysconfig
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import wraps
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from typing import Any, ClassVar

import pytest
from _pytest.assertion import rewrite
from _pytest.config import default_plugins

ENCODE = json.JSONEncoder().encode  # whatever the code under test makes of json.dumps
MESSAGE_LIMIT = 10_000  # characters of one error message
FRAME_LIMIT = 60  # frames of one traceback, the innermost ones
FILE_LIMIT = 256 * 2**20  # bytes that any one file may grow to
MEMORY_LIMIT = 4 * 2**30  # bytes of address space


class Events:
    """The private descriptor to the parent. Only the process that opened it may write."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.pid = os.getpid()

    def send(self, event: str, **fields: Any) -> None:
        if os.getpid() != self.pid:
            return  # a fork of the code under test came back into pytest
        data = ENCODE({"event": event, **fields}).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self.fd, data) :]
        except OSError:
            os._exit(97)  # the parent is gone or the descriptor was closed: nobody listens


class FreshLoader(SourceFileLoader):
    """Compiles the source every time, so that a stale .pyc can never stand in for it.

    `known` is code that whoever started us has compiled already, by file.
    """

    known: ClassVar[dict[str, types.CodeType]] = {}
    read: ClassVar[set[str]] = set()

    @classmethod
    def know(cls, table: str | None) -> None:
        """Read the table at this path, once."""
        if table and table not in cls.read:
            cls.known.update(marshal.loads(Path(table).read_bytes()))
            cls.read.add(table)

    def get_code(self, fullname: str) -> types.CodeType | None:
        if self.path in self.known:
            return self.known[self.path]
        try:
            return self.source_to_code(self.get_data(self.path), self.path)
        except ValueError as error:  # what older interpreters say of a NUL
            raise SyntaxError(str(error), (self.path, 1, 1, "")) from None


class Reporter:
    """The pytest plugin: collection, each test's start, reports and end, and what went wrong."""

    def __init__(self, events: Events, streams: Streams, spec: dict[str, Any]) -> None:
        self.events = events
        self.streams = streams
        self.spec = spec

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        try:
            return (yield)
        except (SystemExit, KeyboardInterrupt, pytest.exit.Exception) as error:
            self.events.send("collect_error", node=collector.nodeid, error=describe(error))
            return pytest.CollectReport(collector.nodeid, "failed", type(error).__name__, [])

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        self.events.send("collecting", node=collector.nodeid)

    def pytest_exception_interact(
        self, node: Any, call: pytest.CallInfo[Any], report: Any
    ) -> None:
        if isinstance(report, pytest.CollectReport) and call.excinfo:
            error = call.excinfo.value
            self.events.send("collect_error", node=node.nodeid,
                             error=describe(error.__cause__ or error))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        only = set(self.spec["only"])
        items[:] = [item for item in items if item.nodeid.partition("[")[0] in only]
        if self.spec.get("shuffle") is not None:
            random.Random(self.spec["shuffle"]).shuffle(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.events.send("collected", nodes=[item.nodeid for item in session.items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.streams.restore()
        self.events.send("start", node=nodeid, offset=self.streams.offset())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        error = None
        if call.excinfo and report.outcome != "passed":
            error = describe(call.excinfo.value)
            error["message"] = error["message"].replace(self.spec["basetemp"], "<tmp>")
        self.events.send("report", node=report.nodeid, when=report.when, outcome=report.outcome,
                         duration=report.duration, error=error)
        return report

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.events.send("end", node=nodeid, offset=self.streams.offset())

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.events.send("stopped", error=describe(excinfo.value))

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.events.send("stopped", error=describe(excinfo.value))


class Streams:
    """Where the code under test prints (descriptor 1), kept usable whatever it does to it.

    pytest's own report goes to another file, so neither can break the other.
    """

    def __init__(self, report: str) -> None:
        self.out = os.dup(1)
        self.report = Path(report).open(  # noqa: SIM115 - open as long as the process lives
            "w", encoding="utf-8", errors="backslashreplace"
        )

    def pytest_writes_to_report(self) -> None:
        sys.stdout = sys.stderr = self.report

    def restore(self) -> None:
        """Point stdin, stdout and stderr where they belong again, if anything moved them."""
        ours = getattr(sys.stdout, "course_fd", None) == 1 and not sys.stdout.closed
        if not ours or not same(1, self.out):
            os.dup2(self.out, 1)
            os.dup2(self.out, 2)
            sys.stdout = sys.stderr = _text_stream(1)

    def offset(self) -> int:
        """Bytes printed so far."""
        with suppress(Exception):  # closed, replaced by None, by an object without flush …
            sys.stdout.flush()
        return os.fstat(self.out).st_size


def same(a: int, b: int) -> bool:
    try:
        return os.path.sameopenfile(a, b)
    except OSError:
        return False


def _text_stream(fd: int) -> Any:
    stream = open(fd, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    stream.course_fd = fd  # type: ignore[attr-defined]
    return stream


def describe(error: BaseException) -> dict[str, Any]:
    """The exception as plain values: type, message and (file, line) of each frame."""
    try:
        message = str(error)
    except BaseException as broken:
        message = f"<the message of this {type(error).__name__} raised {type(broken).__name__}>"
    frames: list[tuple[str, int | None]] = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        message = error.msg
        frames.append((error.filename, error.lineno))
    return {
        "type": type(error).__name__,
        "message": middle_out(message, MESSAGE_LIMIT),
        "frames": frames[-FRAME_LIMIT:],
    }


def middle_out(text: str, limit: int) -> str:
    """The text, or its head and tail with the count of characters left out between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n… {len(text) - head - tail} characters left out …\n{text[-tail:]}"


def see_sources(folder: Path, names: list[str]) -> None:
    """Put the source folders on the path: after the standard library, before other packages."""
    site = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    first = next((i for i, entry in enumerate(sys.path)
                  if entry in site or "site-packages" in entry or "dist-packages" in entry),
                 len(sys.path))
    sys.path[first:first] = [str(folder / name) for name in names]

    def hook(path: str) -> FileFinder:
        if not Path(path).is_relative_to(folder):
            raise ImportError(path)
        return FileFinder(path, (FreshLoader, SOURCE_SUFFIXES))

    sys.path_hooks.insert(0, hook)
    rewrite._read_pyc = lambda source, *_, **__: FreshLoader.known.get(str(source))


def import_modules(events: Events, modules: list[str], seconds: float = 0.0) -> None:
    """Import the code under test once, from here, and undo what importing did to the interpreter.

    With `seconds`, an alarm whose default action is our end is set: no loop can swallow it.
    A recursion limit of 60, filters that make warnings errors, a replaced stdout, another working
    folder or a handler for SIGALRM set at import would otherwise break pytest and not the test
    that is to blame.
    """
    folder, path, environment, mask = Path.cwd(), list(sys.path), dict(os.environ), os.umask(0o022)
    os.umask(mask)
    limit, filters, argv = sys.getrecursionlimit(), warnings.filters[:], sys.argv
    alarm, hook = signal.getsignal(signal.SIGALRM), sys.excepthook
    sys.argv = ["pytest"]
    if seconds:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    for module in modules:
        events.send("importing", module=module)
        try:
            names = sorted(vars(importlib.import_module(module)))
            events.send("imported", module=module, names=names)
        except BaseException as error:
            events.send("import_error", module=module, error=describe(error))
    if seconds:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.setrecursionlimit(limit)
    warnings.filters = filters
    sys.argv, sys.excepthook = argv, hook
    signal.signal(signal.SIGALRM, alarm)
    os.umask(mask)
    with suppress(OSError):
        os.chdir(folder)
    sys.path += [entry for entry in path if entry not in sys.path]
    os.environ.update(environment | dict(os.environ))


def inject(events: Events, fault: dict[str, str]) -> None:
    """Replace the fault's seam before any test module is imported, and report its first call."""
    spec = importlib.util.spec_from_file_location("course_faults", fault["file"])
    assert spec and spec.loader
    faults = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(faults)
    module, _, name = fault["seam"].partition(":")
    owner: Any = importlib.import_module(module)
    *owners, last = name.split(".")
    for part in owners:
        owner = getattr(owner, part)
    raw = vars(owner)[last] if last in vars(owner) else getattr(owner, last)
    kind = type(raw) if isinstance(raw, staticmethod | classmethod) else None
    faulty = getattr(faults, fault["function"])(raw.__func__ if kind else raw)

    @wraps(faulty)
    def seen(*args: Any, **kwargs: Any) -> Any:
        if not seen.reached:  # type: ignore[attr-defined]
            seen.reached = True  # type: ignore[attr-defined]
            events.send("reached")
        return faulty(*args, **kwargs)

    seen.reached = False  # type: ignore[attr-defined]
    setattr(owner, last, kind(seen) if kind else seen)
    events.send("injected")


def inject_or_leave(events: Events, fault: dict[str, str]) -> None:
    try:
        inject(events, fault)
    except BaseException as error:
        events.send("inject_error", error=describe(error))
        os._exit(0)


def limit_resources() -> None:
    """No core files, no file above FILE_LIMIT, no more memory than MEMORY_LIMIT."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_LIMIT),
                       (resource.RLIMIT_AS, MEMORY_LIMIT)):
        soft, hard = resource.getrlimit(what)
        if soft == resource.RLIM_INFINITY or soft > most:
            with suppress(ValueError, OSError):
                resource.setrlimit(what, (most, hard))


def pytest_arguments(spec: dict[str, Any]) -> list[str]:
    """Arguments under which nothing in the folder, above it or in the environment has a say."""
    return [  # "." is the folder: pytest expands $NAME in an absolute --rootdir
        *spec["select"], "-c", spec["ini"], "--rootdir=.", "--confcutdir=.",
        "--noconftest", "--import-mode=importlib", "-p", "no:cacheprovider", "--capture=no",
        "-p", "pytest_timeout", f"--timeout={spec['timeout_s']}", "--timeout-method=signal",
        f"--basetemp={spec['basetemp']}", "--color=no", "-p", "no:faulthandler",
        "-o", "verbosity_assertions=1",
        "--tb=line",  # other styles build syntax trees, which a finaliser can break on CPython 3.11
    ]


def main(spec: dict[str, Any]) -> None:
    """Run the spec and leave at once: what the code under test left behind cannot hold us."""
    events = Events(spec["events"])
    _die_with(spec.get("life"))
    limit_resources()
    streams = Streams(spec["report"])
    streams.restore()
    os.chdir(spec["folder"])
    see_sources(Path(spec["folder"]), spec["sources"])
    FreshLoader.know(spec.get("compiled"))
    if spec.get("fault"):
        inject_or_leave(events, spec["fault"])
    import_modules(events, spec["modules"], spec.get("import_s", 0.0))
    streams.restore()
    status = 0
    if spec["select"]:
        streams.pytest_writes_to_report()
        reporter = Reporter(events, streams, spec)
        status = int(pytest.main(pytest_arguments(spec), plugins=[reporter]))
    left = [thread.name for thread in threading.enumerate()
            if thread is not threading.main_thread() and not thread.daemon]
    events.send("finish", status=status, threads=left, offset=streams.offset())
    os._exit(0)


def _die_with(life: int | None) -> None:
    """Kill our whole process group as soon as the parent is gone (the pipe reads end of file)."""
    if life is None:
        return
    import _thread

    def watch(kill: Callable[[int, int], None] = os.killpg) -> None:
        os.read(life, 1)
        kill(os.getpid(), signal.SIGKILL)

    _thread.start_new_thread(watch, ())


def serve(control: socket.socket) -> None:
    """Fork a child for each spec that comes with its three descriptors; tell pid and exit status.

    The modules that every run needs are loaded once, here; nothing of the code under test is.
    """
    for name in ("asyncio", "hashlib", "tempfile", *(f"_pytest.{p}" for p in default_plugins)):
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    while True:
        data, fds, _, _ = socket.recv_fds(control, 65536, 3)
        while data and not data.endswith(b"\n"):
            data += control.recv(65536)
        if not data:
            os._exit(0)
        spec = json.loads(data)
        FreshLoader.know(spec.get("compiled"))
        ready, started = os.pipe()
        pid = os.fork()
        if pid == 0:
            control.close()
            os.setsid()
            os.close(started)
            _become_child(spec, *fds)
        for fd in (*fds, started):
            os.close(fd)
        os.read(ready, 1)  # end of file: the child has its own session now
        os.close(ready)
        control.sendall(b"%d\n" % pid)
        control.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _become_child(spec: dict[str, Any], events: int, life: int, output: int) -> None:
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        random.seed()
        main({**spec, "events": events, "life": life})
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(socket.socket(fileno=int(sys.argv[2])))
    main(json.loads(sys.argv.pop()))
