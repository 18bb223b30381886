"""What learners' code does to a test run by accident, and what the run must say all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from course.children import Children
from course.compiled import compile_tree, packed
from course.desk import run_desk
from course.labs import run_labs
from course.practice import Practice
from course.results import Outcome, RunResult
from course.runner import Suite, run
from course.scratch import remove_tree
from tests.conftest import REPOSITORY, type_course

Solve = Callable[[Practice], Practice]
Edit = Callable[[Practice, str, str], None]
TOP = "        ranked = sorted("  # the first line of Report.top in the reference
AT_IMPORT = "Listener = "


@pytest.fixture
def solved(desk: Practice, solve: Solve) -> Practice:
    return solve(desk)


def outcomes(result: RunResult) -> list[str]:
    return [str(case.outcome) for lab in result.labs for case in lab.cases]


def test_the_reference_is_green(solved: Practice) -> None:
    """Right code: every case passed, nothing noted."""
    result = run_desk(solved, None)
    assert (result.green, result.passed, result.total) == (True, 4, 4)
    assert result.notes == () and result.first_red is None


def test_the_scaffold_is_red_for_its_one_reason(desk: Practice) -> None:
    """An untouched scaffold: 0 of all, each red says the declared text and where it stands."""
    result = run_desk(desk, "02.1")
    assert (result.passed, result.total) == (0, 2)
    errors = [case.error for case in result.labs[0].cases]
    assert all(e and e.message == "Lab 02.1 top words 尚未实现" for e in errors)
    assert {e.file for e in errors if e} == {"src/tally/report.py"}
    assert result.first_red and result.first_red.observes == "the order of three words"


@pytest.mark.parametrize("warm", [True, False])
def test_code_that_is_known_already_is_not_compiled_again(
    warm: bool, solved: Practice, tmp_path: Path
) -> None:
    """It stands in for the files of its own folder, and of no other."""
    labs, table = solved.chapter.labs, tmp_path / "table"
    other = {"src/tally/report.py": b"raise LookupError('the table')"}
    table.write_bytes(packed(compile_tree(other, str(solved.folder.resolve()))))
    for folder, said in ((tmp_path, "passed"), (solved.folder, "error")):
        with Children(warm=warm) as children:
            children.know(folder, table)
            result = run_labs(solved.folder, solved.manifest.chapters, labs, children=children)
        assert said in outcomes(result)
    assert "the table" in str(result.build.error)


IN_A_CALL = {
    "prints": ('print("x" * 10, flush=True)', ["passed"] * 4),
    "sys.exit": ("import sys; sys.exit(0)", ["failed", "passed", "failed", "failed"]),
    "os._exit": ("import os; os._exit(0)", ["crashed", "passed", "crashed", "crashed"]),
    "kill": ("import os; os.kill(os.getpid(), 9)", ["crashed", "passed", "crashed", "crashed"]),
    "input": ("input()", ["failed", "passed", "failed", "failed"]),
    "skip": ("import unittest; raise unittest.SkipTest", ["skipped", "passed"] + ["skipped"] * 2),
    "pytest.exit": ("import pytest; pytest.exit('bye', 0)", ["failed", "passed"] + ["failed"] * 2),
    "pytest.xfail": ("import pytest; pytest.xfail()", ["skipped", "passed"] + ["skipped"] * 2),
    "interrupt": ("raise KeyboardInterrupt", ["failed", "passed", "failed", "failed"]),
    "closes stdout": ("import sys; sys.stdout.close()", ["passed"] * 4),
    "closes fd 1": ("import os; os.close(1); os.close(2)", ["passed"] * 4),
    "replaces stdout": ("import sys; sys.stdout = None", ["passed"] * 4),
    "chdir": ("import os; os.chdir('/')", ["passed"] * 4),
    "fork": ("import os; os.fork()", ["passed"] * 4),
    "recursion": ("return self.top(most)", ["failed", "passed", "failed", "failed"]),
    "surrogate": ("raise ValueError('\\ud800\\x00\\x1b[31m')",
                  ["failed", "passed", "failed", "failed"]),
    "bad str": ("class E(Exception):\n            __str__ = None\n        raise E",
                ["failed", "passed", "failed", "failed"]),
    "closes all": ("import os; os.closerange(3, 100)", ["crashed", "passed", "crashed", "crashed"]),
}


@pytest.mark.parametrize("name", IN_A_CALL)
def test_an_accident_in_a_call_costs_only_its_own_tests(
    name: str, solved: Practice, edit: Edit
) -> None:
    """Whatever a called function does, the other tests keep their results and the counts hold."""
    code, expected = IN_A_CALL[name]
    edit(solved, TOP, f"        {code}\n{TOP}")
    result = run_desk(solved, None)
    assert (outcomes(result), result.total) == (expected, 4)


AT_THE_IMPORT = {
    "sys.exit": ("import sys; sys.exit(0)", "SystemExit", "__main__"),
    "os._exit": ("import os; os._exit(0)", "Crashed", "process"),
    "missing name": ("from tally.counter import nothing", "ImportError", "define `nothing`"),
    "missing module": ("import tally.contre", "ModuleNotFoundError", "renamed or moved"),
    "relative import": ("from .. import tally", "ImportError", "full name"),
    "input": ("input()", "EOFError", "parameter"),
    "syntax": ("def broken(:", "SyntaxError", ""),
    "raises": ("raise ValueError('at import')", "ValueError", ""),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt", "ordinary exception"),
}


@pytest.mark.parametrize("name", AT_THE_IMPORT)
def test_an_accident_at_import_fails_the_build_and_every_case(
    name: str, solved: Practice, edit: Edit
) -> None:
    """Nothing passes, the counts hold, the raw error is shown and advice stands beside it."""
    code, kind, advice = AT_THE_IMPORT[name]
    edit(solved, AT_IMPORT, f"{code}\n{AT_IMPORT}")
    result = run_desk(solved, None)
    assert (result.passed, result.total, result.build.ok, result.green) == (0, 4, False, False)
    error = result.build.error
    assert error and error.type == kind and advice in (error.advice or "")
    assert result.first_red and result.first_red.error.type in (kind, "SystemExit")


ODD_BUT_RIGHT = {
    "recursion limit": "import sys; sys.setrecursionlimit(60)",
    "warnings are errors": "import warnings; warnings.simplefilter('error')",
    "argparse": "import argparse; argparse.ArgumentParser().parse_args()",
    "excepthook": "import sys; sys.excepthook = None",
    "stdout": "import sys; sys.stdout = sys.stderr = None",
    "alarm": "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)",
    "daemon thread": "import threading, time; threading.Thread(target=time.sleep, args=(9,), "
                     "daemon=True).start()",
    "atexit": "import atexit, os; atexit.register(os._exit, 3)",
}


@pytest.mark.parametrize("name", ODD_BUT_RIGHT)
def test_right_code_that_is_odd_at_import_stays_green(
    name: str, solved: Practice, edit: Edit
) -> None:
    """What importing does to the interpreter does not reach the tests."""
    edit(solved, AT_IMPORT, f"{ODD_BUT_RIGHT[name]}\n{AT_IMPORT}")
    result = run_desk(solved, None)
    assert (outcomes(result), result.notes) == (["passed"] * 4, ())


def test_bom_and_crlf_are_fine(solved: Practice) -> None:
    """A file saved by another editor is the same code."""
    path = solved.folder / "src/tally/report.py"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert run_desk(solved, None).green


def test_a_thread_left_running_is_noted(solved: Practice, edit: Edit) -> None:
    """The results are complete, the run ends, and the thread is named."""
    edit(solved, TOP, "        import threading, time\n"
         "        threading.Thread(target=time.sleep, args=(60,), name='mine').start()\n" + TOP)
    started = time.monotonic()
    result = run_desk(solved, None)
    assert result.green and time.monotonic() - started < 30
    assert any("mine" in note for note in result.notes)


def test_a_file_named_like_a_standard_module_is_noted(solved: Practice) -> None:
    """src/random.py and token.py shadow nothing here, and the learner is told."""
    (solved.folder / "src/random.py").write_text("raise RuntimeError('mine')")
    (solved.folder / "token.py").write_text("raise RuntimeError('mine')")
    result = run_desk(solved, None)
    assert result.green
    assert [note.split()[0] for note in result.notes] == ["token.py", "src/random.py"]


def test_configuration_from_above_and_from_the_environment_has_no_say(
    solved: Practice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parent ini files, conftests and PYTEST_ADDOPTS change neither counts nor outcomes."""
    above = solved.folder.parent
    (above / "pytest.ini").write_text("[pytest]\naddopts = --collect-only -k nothing")
    (above / "conftest.py").write_text("raise RuntimeError('a stranger')")
    (solved.folder / "conftest.py").write_text("raise RuntimeError('a stranger')")
    (solved.folder / "tests/conftest.py").write_text("raise RuntimeError('a stranger')")
    (solved.folder / "pytest.ini").write_text("[pytest]\naddopts = -p nothing")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")
    monkeypatch.setenv("PYTEST_PLUGINS", "nothing")
    monkeypatch.setenv("PYTHONPATH", str(above))
    assert run_desk(solved, None).green


def test_a_stale_pyc_never_stands_in_for_the_source(solved: Practice, edit: Edit) -> None:
    """A cached file of the right size and time but of other code is not used."""
    path = solved.folder / "src/tally/report.py"
    code = "import py_compile, sys; py_compile.compile(sys.argv[1])"
    edit(solved, '"no words"', '"no WORDS"')
    edit(solved, "return ranked[:most]", "return ranked[:0000]")
    times = path.stat()
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    edit(solved, "return ranked[:0000]", "return ranked[:most]")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run_desk(solved, None).green


HANGS = {
    "loop": "while True: pass",
    "async loop": "import asyncio\n        async def f():\n            while True: "
                  "await asyncio.sleep(0)\n        asyncio.run(f())",
    "swallows": "while True:\n            try:\n                while True: pass\n"
                "            except BaseException: pass",
    "one C call": "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
}


@pytest.mark.parametrize("name", HANGS)
def test_a_test_that_does_not_end_costs_only_itself(
    name: str, solved: Practice, edit: Edit
) -> None:
    """The hanging tests are timeouts, named with their limit; the others keep their results."""
    edit(solved, TOP, f"        {HANGS[name]}\n{TOP}")
    chapter = solved.chapter
    nodes = tuple(node for lab in chapter.labs[:1] for node in lab.node_ids)
    seen = run(solved.folder, Suite(nodes, timeout_s=1.0), modules=chapter.api)
    assert [case.outcome for case in seen.cases] == [Outcome.TIMEOUT, Outcome.PASSED]
    assert seen.cases[0].error and "1" in seen.cases[0].error.message


def test_an_endless_print_is_cut_and_kept_in_a_log(solved: Practice, edit: Edit) -> None:
    """A red test shows the head and tail of what it printed; the log holds all of it."""
    edit(solved, TOP, f"        print('first'); print('y' * 100_000); print('last')\n"
         f"        raise ValueError\n{TOP}")
    result = run_desk(solved, "02.1")
    assert result.first_red
    output = result.first_red.output
    assert output.startswith("first") and output.rstrip().endswith("last")
    assert "bytes left out" in output and len(output) < 5_000
    assert len(Path(result.log).read_bytes()) > 100_000


def test_a_grandchild_is_killed_with_the_run(solved: Practice, edit: Edit) -> None:
    """A process that the code starts and leaves does not outlive the run."""
    edit(solved, TOP, "        import subprocess, sys\n"
         "        open('pid', 'w').write(str(subprocess.Popen([sys.executable, '-c', "
         f"'import time; time.sleep(99)']).pid))\n{TOP}")
    run_desk(solved, "02.1")
    pid = int((solved.folder / "pid").read_text())
    assert _is_gone(pid)


def test_ctrl_c_leaves_no_child_and_no_scratch(
    solved: Practice, edit: Edit, tmp_path: Path
) -> None:
    """Interrupted in mid-run, the command exits 130; its child and its scratch folder are gone."""
    edit(solved, TOP, f"        import os\n        open('pid', 'w').write(str(os.getpid()))\n"
         f"        while True: pass\n{TOP}")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "course", "test", "02.1"], cwd=solved.folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(scratch)})
    pid = _wait_for(solved.folder / "pid")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in errors
    assert _is_gone(pid) and list(scratch.iterdir()) == []


def test_kill_9_of_the_command_takes_the_child_along(solved: Practice, edit: Edit) -> None:
    """Nothing keeps computing for a parent that is gone."""
    edit(solved, TOP, f"        import os\n        open('pid', 'w').write(str(os.getpid()))\n"
         f"        while True: pass\n{TOP}")
    process = subprocess.Popen(
        [sys.executable, "-m", "course", "test", "02.1"], cwd=solved.folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    pid = _wait_for(solved.folder / "pid")
    process.kill()
    process.wait()
    assert _is_gone(pid)


def test_a_read_only_folder_can_be_tested(solved: Practice) -> None:
    """Testing writes nothing into the folder that it needs."""
    before = sorted(str(path) for path in solved.folder.rglob("*"))
    for path in [solved.folder, *solved.folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert run_desk(solved, None).green
        assert before == sorted(str(path) for path in solved.folder.rglob("*"))
    finally:
        for path in [solved.folder, *solved.folder.rglob("*")]:
            path.chmod(0o755)


def test_a_symlinked_temp_folder_is_fine(solved: Practice, tmp_path: Path) -> None:
    """Scratch and practice may both be reached through links."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "way").symlink_to(solved.folder)
    typed = type_course("test", "--json", cwd=tmp_path / "way", TMPDIR=str(tmp_path / "link"))
    assert (typed.status, typed.json["passed"]) == (0, 4)


def test_remove_tree_takes_away_read_only_folders(tmp_path: Path) -> None:
    """A read-only folder with a read-only file inside is removed."""
    made = tmp_path / "made"
    (made / "inner").mkdir(parents=True)
    (made / "inner" / "file").write_text("x")
    (made / "inner" / "file").chmod(0o400)
    (made / "inner").chmod(0o500)
    remove_tree(made)
    assert not made.exists()


def _wait_for(path: Path) -> int:
    for _ in range(300):
        if path.is_file() and path.read_text():
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{path} never came")


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if status == "Z":
            return True
        time.sleep(0.05)
    return False
