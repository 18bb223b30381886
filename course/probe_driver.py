"""The program inside the sandbox: asks a submission the probes, reports what was observed.

Run as a script (`python -I -S -B probe_driver.py`) with its spec as JSON on standard input; needs
the standard library, imports nothing of ours, knows no expected value and judges nothing. Every
(probe, salt) runs in a fork of its own, so that a crash or a loop costs one answer. The code under
test shares these processes and may do anything to them: all that can come of it is a wrong answer.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import marshal
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import types
import warnings
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")
Key = tuple[str, int]  # a probe's name and the number of the salt
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
DEEPEST = 40  # levels of one observation
MOST_PARTS = 20_000  # values in one observation
MOST_LATE = 2  # probes of one lab that are waited for in vain
OBSERVED = b"="  # begins an answer; an empty one says that the probe raised
TASKS = "/proc/self/task"
SCRIPT = str(Path(__file__).absolute())
SCRATCH = Path(tempfile.gettempdir())
# What the code under test does to these names in json and tempfile later is its own business.
ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Salt:
    """Fresh names, contents and orders for one probe: the same for everybody in one batch."""

    def __init__(self, secret: str, folder: Path) -> None:
        self.folder = folder
        self._random = random.Random(secret)
        self._words: set[str] = set()

    def word(self) -> str:
        """A lower-case ascii word that this salt has not given before."""
        while True:
            parts = (self._random.choice(CONSONANTS) + self._random.choice(VOWELS)
                     for _ in range(self._random.randint(3, 4)))
            word = "".join(parts)
            if word not in self._words:
                self._words.add(word)
                return word

    def words(self, count: int) -> list[str]:
        """So many different words."""
        return [self.word() for _ in range(count)]

    def number(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return self._random.randint(low, high)

    def choice(self, values: Sequence[T]) -> T:
        """One of the values."""
        return self._random.choice(values)

    def shuffled(self, values: Iterable[T]) -> list[T]:
        """The values in another order."""
        mixed = list(values)
        self._random.shuffle(mixed)
        return mixed

    def run(self, coroutine: Coroutine[Any, Any, T], seconds: float = 2.0) -> T:
        """What the coroutine returns; TimeoutError if it takes longer, whatever it does then."""
        import asyncio

        async def limited() -> T:
            task = asyncio.ensure_future(coroutine)
            await asyncio.wait({task}, timeout=seconds)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for other in left:
                other.cancel()
            if not task.done():
                raise TimeoutError
            if left:
                await asyncio.wait(left, timeout=0.1)
            return task.result()

        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # nobody reads what it would print
        try:
            return loop.run_until_complete(limited())
        finally:
            with contextlib.suppress(Exception):
                loop.close()

    @staticmethod
    def raises(function: Callable[..., object], *args: Any, **kwargs: Any) -> bool:
        """Whether the call ends in an Exception of any type."""
        try:
            function(*args, **kwargs)
        except Exception:
            return True
        return False

    @staticmethod
    def plain(value: object) -> Any:
        """A copy of exactly JSON's own builtin types; other objects by the name of their type."""
        return plain(value)


def plain(value: object, budget: list[int] | None = None, depth: int = 0) -> Any:
    """See Salt.plain. Subclasses are other objects: what they say of themselves is not asked."""
    budget = [MOST_PARTS] if budget is None else budget
    budget[0] -= 1
    if budget[0] < 0 or depth > DEEPEST:
        return {"<object>": "too large"}
    kind = type(value)
    if kind in (list, tuple, dict) and len(value) > budget[0]:  # type: ignore[arg-type]
        return {"<object>": "too large"}
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list or kind is tuple:
        return [plain(item, budget, depth + 1) for item in value]  # type: ignore[attr-defined]
    if kind is dict:
        pairs = [(key, plain(item, budget, depth + 1)) for key, item in value.items()]  # type: ignore[attr-defined]
        if all(type(key) is str for key, _ in pairs):
            return dict(pairs)
        odd = [[plain(key, budget, depth + 1), item] for key, item in pairs]
        return {"<dict>": sorted(odd, key=canonical)}
    return {"<object>": kind.__name__}


def canonical(value: object) -> str:
    """One text for one plain value."""
    return ENCODE(value)


class Report:
    """Lines of JSON to whoever started us."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def send(self, **fields: Any) -> None:
        data = ENCODE(fields).encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]


class Child:
    """A running process: the keys that it has not answered yet, in order, and what it wrote."""

    def __init__(self, keys: Sequence[Key], pid: int, pipe: int) -> None:
        self.keys = deque(keys)
        self.pid, self.pipe = pid, pipe
        self.answer = bytearray()
        self.started = monotonic()

    def end(self) -> None:
        """Kill it and what it started in its own process group."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, 0)
        os.close(self.pipe)


class Examiner:
    """Asks every probe under every salt and reports each answer as it comes.

    A few processes run side by side, each with `group` keys, one after the other. Where a process
    ends too early or hangs, the key in hand has no answer and the others get a new process.
    """

    def __init__(
        self, spec: dict[str, Any], report: Report, ask: Callable[[str, Salt], object]
    ) -> None:
        self.spec, self.report, self.ask = spec, report, ask
        keys = [(name, salt) for salt in range(len(spec["salts"])) for name in spec["labs"]]
        groups = -(-len(keys) // spec["group"])
        self.waiting = deque(keys[number::groups] for number in range(groups))
        self.running: dict[int, Child] = {}
        self.late: Counter[str] = Counter()  # probes, and labs
        self.poll = select.poll()

    def examine(self) -> None:
        while self.waiting or self.running:
            while self.waiting and len(self.running) < self.spec["at_once"]:
                if not self._start_next():
                    break
            for pipe, _ in self.poll.poll(self._patience_ms()):
                self._read(self.running[pipe])
            now = monotonic()
            for child in list(self.running.values()):
                if now - child.started >= self.spec["probe_s"]:
                    name = child.keys[0][0]
                    self.late.update((name, self.spec["labs"][name]))
                    self._answered(child, problem="late")
                    self._end(child)

    def _start_next(self) -> bool:
        keys = [key for key in self.waiting[0] if not self._given_up(key)]
        if not keys:
            self.waiting.popleft()
            return True
        reading, writing = os.pipe()
        try:
            pid = os.fork()
        except OSError:  # so many processes were left behind that there is no room for ours
            os.close(reading)
            os.close(writing)
            self.waiting[0] = keys
            self._sweep()
            return False
        if pid == 0:
            self._answer(keys, writing)
        os.close(writing)
        self.waiting.popleft()
        self.running[reading] = Child(keys, pid, reading)
        self.poll.register(reading, select.POLLIN | select.POLLHUP)
        return True

    def _given_up(self, key: Key) -> bool:
        """No second wait for a probe that was late, nor more than two for one lab: it is lost."""
        name, salt = key
        late = name in self.late
        if late or self.late[self.spec["labs"][name]] >= MOST_LATE:
            self.report.send(probe=name, salt=salt, problem="late" if late else "unasked")
            return True
        return False

    def _answer(self, keys: Sequence[Key], pipe: int) -> None:
        """In the fork: run the probes, write each observation as a line, be gone."""
        try:
            os.setsid()
            for name, salt in keys:
                try:
                    folder = SCRATCH / f"{name}-{salt}-{os.getpid()}"
                    folder.mkdir(mode=0o700)
                    made = Salt(f"{self.spec['salts'][salt]}/{name}", folder)
                    data = OBSERVED + canonical(plain(self.ask(name, made))).encode()
                except Exception:
                    data = b""
                data += b"\n"
                while data:
                    data = data[os.write(pipe, data) :]
        finally:
            os._exit(0)

    def _read(self, child: Child) -> None:
        data = os.read(child.pipe, 65536)
        child.answer += data
        while child.keys and b"\n" in child.answer:
            line, _, child.answer = child.answer.partition(b"\n")
            text = line.decode("ascii", "replace")
            if len(text) > self.spec["answer_bytes"]:
                self._answered(child, problem="long")
            elif text:
                self._answered(child, observation=text[len(OBSERVED) :])
            else:
                self._answered(child, problem="raised")
        if child.keys and not data:
            self._answered(child, problem="silent")
        elif child.keys and len(child.answer) > self.spec["answer_bytes"]:
            self._answered(child, problem="long")
        elif child.keys:
            return
        self._end(child)

    def _answered(self, child: Child, **outcome: str) -> None:
        name, salt = child.keys.popleft()
        child.started = monotonic()
        self.report.send(probe=name, salt=salt, **outcome)

    def _end(self, child: Child) -> None:
        self.poll.unregister(child.pipe)
        del self.running[child.pipe]
        child.end()
        if child.keys:
            self.waiting.appendleft(list(child.keys))
        room = os.statvfs(SCRATCH)
        if room.f_bavail < room.f_blocks // 2 and not self.running and self.spec["alone"]:
            for folder in SCRATCH.iterdir():
                with contextlib.suppress(Exception):  # too deep, too many, not ours any more
                    shutil.rmtree(folder, ignore_errors=True)

    def _patience_ms(self) -> float:
        if not self.running:
            return 20.0
        limit: float = self.spec["probe_s"]
        first = min(child.started for child in self.running.values())
        return max(0.0, (first + limit - monotonic()) * 1000 + 1)

    def _sweep(self) -> None:
        """Where nothing of ours runs, kill what others left. Only in a sandbox are we alone."""
        if self.spec["alone"] and not self.running:
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
            with contextlib.suppress(OSError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def import_modules(modules: Sequence[str], seconds: float) -> None:
    """Import the code under test and undo what importing did to the interpreter.

    The alarm's default action ends the process: no handler and no loop can swallow it.
    """
    limit, filters, path = sys.getrecursionlimit(), list(warnings.filters), list(sys.path)
    mask = os.umask(0o022)
    os.umask(mask)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        for module in modules:
            importlib.import_module(module)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        sys.setrecursionlimit(limit)
        warnings.filters[:] = filters  # type: ignore[index]
        sys.path += [folder for folder in path if folder not in sys.path]
        os.umask(mask)


def inject(fault: dict[str, str]) -> None:
    """Put a fault on its seam, as plugin.inject does."""
    faults = types.ModuleType("course_faults")
    exec(compile(fault["source"], "faults.py", "exec"), vars(faults))
    module, _, name = fault["seam"].partition(":")
    owner: Any = importlib.import_module(module)
    *owners, last = name.split(".")
    for part in owners:
        owner = getattr(owner, part)
    raw = vars(owner)[last] if last in vars(owner) else getattr(owner, last)
    kind = type(raw) if isinstance(raw, staticmethod | classmethod) else None
    faulty = getattr(faults, fault["function"])(raw.__func__ if kind else raw)
    setattr(owner, last, kind(faulty) if kind else faulty)


class Loader(SourceFileLoader):
    """Takes the code of the course's own files from a table, and compiles the submission's."""

    known: ClassVar[dict[str, types.CodeType]] = {}

    def get_code(self, fullname: str) -> types.CodeType | None:
        try:
            return self.known.get(self.path) or self.source_to_code(
                self.get_data(self.path), self.path)
        except ValueError as error:  # what older interpreters say of a NUL
            raise SyntaxError(str(error)) from None


def see_sources(sources: Sequence[str], site: Sequence[str], compiled: str | None) -> None:
    """Put the source folders on the path: after the standard library, before other packages."""
    folders = [str(Path.cwd() / source) for source in sources]
    sys.path += [*folders, *site]
    if compiled:
        Loader.known.update(marshal.loads(Path(compiled).read_bytes()))

    def hook(path: str) -> FileFinder:
        if not path.startswith(tuple(folders)):
            raise ImportError(path)
        return FileFinder(path, (Loader, SOURCE_SUFFIXES))

    sys.path_hooks.insert(0, hook)


def load_probes(source: str) -> types.ModuleType:
    """The module of the probes."""
    module = types.ModuleType("course_probes")
    sys.modules[module.__name__] = module
    exec(Loader.known.get("probes.py") or compile(source, "probes.py", "exec"), vars(module))
    if "salt.run" in source:
        importlib.import_module("asyncio")  # once, not in every fork
    return module


class Subject:
    """The code under test, imported once, or in every fork where that would lose threads."""

    def __init__(self, spec: dict[str, Any], probes: types.ModuleType) -> None:
        self.spec, self.probes = spec, probes
        self.ready = False

    def prepare(self) -> None:
        if not self.ready:
            import_modules(self.spec["modules"], self.spec["import_s"])
            if self.spec["fault"]:
                inject(self.spec["fault"])
            self.ready = True

    def ask(self, name: str, salt: Salt) -> object:
        self.prepare()
        return getattr(self.probes, name)(salt)


def threads_are_left() -> bool:
    """Whether importing started threads, which a fork would lose."""
    return Path(TASKS).is_dir() and len(list(Path(TASKS).iterdir())) > 1


def read_all(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def start_again(spec: bytes, out: int) -> None:
    """The same program anew, importing in every fork."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        while spec:
            spec = spec[os.write(writing, spec) :]
        os._exit(0)
    os.dup2(reading, 0)
    os.dup2(out, 1)
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-B", SCRIPT, "each"])


def take_streams() -> int:
    """A descriptor of our own for what was standard output; the standard ones lead nowhere now."""
    out = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    sys.argv = ["probe"]
    return out


def main(each: bool) -> None:
    """Ask everything, then leave at once: what the code under test left behind cannot hold us."""
    gc.disable()  # nothing of what starting makes is garbage
    raw = read_all(0)
    spec = json.loads(raw)
    out = take_streams()
    report = Report(out)
    see_sources(spec["sources"], spec["site"], spec["compiled"])
    subject = Subject(spec, load_probes(spec["probes"]))
    report.send(event="ready")
    if not each:
        try:
            subject.prepare()
        except BaseException as error:
            report.send(event="import_error", type=type(error).__name__)
            os._exit(0)
        if threads_are_left():
            start_again(raw, out)
    report.send(event="imported")
    gc.freeze()
    gc.enable()
    Examiner(spec, report, subject.ask).examine()
    report.send(event="end")
    os._exit(0)


if __name__ == "__main__":
    main(each="each" in sys.argv)
