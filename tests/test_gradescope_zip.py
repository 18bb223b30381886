"""The autograder zip: complete, the same each time, and never without a result."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from course.gradescope_zip import autograder, packed
from course.manifest import Course, load_course
from course.snapshot import check_lock, checkpoint
from tests.conftest import REPOSITORY, TINY, type_course
from tests.strict_json import loads
from tests.test_render_gradescope import read

GRADER = """\
#!/bin/sh
test -s "$AUTOGRADER_BASE/results/results.json" || exit 99
for last; do previous="$word"; word="$last"; test "$previous" = --out && out="$word"; done
echo "$@" > "$AUTOGRADER_BASE/asked"
"""


def unpack(data: bytes, base: Path) -> Path:
    """As Gradescope does: the contents in source, run_autograder beside it, a submission."""
    for name in ("source", "submission", "venv/bin"):
        (base / name).mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            path = Path(archive.extract(info, base / "source"))
            path.chmod(info.external_attr >> 16)
    shutil.copy(base / "source" / "run_autograder", base)
    return base


def run(base: Path, grader: str) -> Any:
    """Run the autograder with this in place of the interpreter; what results.json then says."""
    python = base / "venv/bin/python"
    python.write_text(GRADER + grader)
    python.chmod(0o755)
    done = subprocess.run([base / "run_autograder"], capture_output=True, check=False, timeout=60,
                          env={**os.environ, "AUTOGRADER_BASE": str(base)}, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (base / "results").iterdir()) == ["results.json"]
    return loads((base / "results/results.json").read_bytes())


@pytest.fixture
def base(tiny: Course, tmp_path: Path) -> Path:
    return unpack(packed(autograder(tiny, "02")), tmp_path / "autograder")


def test_the_command_writes_the_zip(tmp_path: Path) -> None:
    """Two scripts at the top that may be executed; the same bytes each time."""
    for name in ("one.zip", "two.zip"):
        typed = type_course("--root", TINY, "export", "gradescope", "02", "-o", name, cwd=tmp_path)
        assert typed.status == 0, typed.err
    data = (tmp_path / "one.zip").read_bytes()
    assert data == (tmp_path / "two.zip").read_bytes()
    infos = {info.filename: info for info in zipfile.ZipFile(io.BytesIO(data)).infolist()}
    for name in ("setup.sh", "run_autograder"):
        assert infos[name].external_attr >> 16 & stat.S_IXUSR
    assert {name.partition("/")[0] for name in infos} == {
        "setup.sh", "run_autograder", "crashed.json", "requirements.txt", "kit", "root"}


def test_what_cannot_be_written_is_usage(tmp_path: Path) -> None:
    """An unknown chapter, a folder that is not there."""
    for words in (("99", "-o", "a.zip"), ("02", "-o", "none/a.zip"), ("02",)):
        typed = type_course("--root", TINY, "export", "gradescope", *words, cwd=tmp_path)
        assert typed.status == 2 and "Traceback" not in typed.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("root", "chapter"), [(TINY, "02"), (REPOSITORY, "12")])
def test_the_course_in_it_is_whole(root: Path, chapter: str, tmp_path: Path) -> None:
    """The chapter loads and folds as the lock says, also without the rest of the course."""
    base = unpack(packed(autograder(load_course(root), chapter)), tmp_path / "autograder")
    course = load_course(base / "source/root")
    assert course.chapter(chapter) == load_course(root).chapter(chapter)
    check_lock(course, chapter, checkpoint(course, chapter))
    names = {path.name for path in (base / "source/root/solutions").iterdir()}
    assert names == set(course.line_to(chapter))


def test_the_kit_in_it_runs(base: Path, tmp_path: Path) -> None:
    """From its own copy, on its own course."""
    typed = type_course("--root", base / "source/root", "list", "--json", cwd=tmp_path,
                        PYTHONPATH=str(base / "source/kit"))
    assert typed.status == 0, typed.err
    needs = (base / "source/requirements.txt").read_text().split("\n")
    assert any(need.startswith("pytest>=") for need in needs) and "extra" not in "".join(needs)


def test_results_replace_the_crashed_one(base: Path) -> None:
    """The grader is asked for this chapter and finds a result there already."""
    document = run(base, 'echo \'{"score": 3, "tests": []}\' > "$out/gradescope.json"; exit 1')
    assert document == {"score": 3, "tests": []}
    asked = (base / "asked").read_text().split()
    assert asked[:5] == ["-m", "course", "--root", f"{base}/source/root", "grade"]
    assert "--chapter 02" in " ".join(asked) and asked[-2:] == ["--format", "gradescope"]


@pytest.mark.parametrize("end", ["exit 4", "exit 1", "kill -9 $$", ': > "$out/gradescope.json"'])
def test_without_results_the_crashed_one_stands(base: Path, end: str) -> None:
    """No points, no blame, and a document that Gradescope takes."""
    run(base, end)
    document = read((base / "results/results.json").read_bytes())
    assert document["score"] == 0 and "instructor" in document["output"]


@pytest.mark.parametrize("name", ["setup.sh", "run_autograder"])
def test_the_scripts_are_shell(base: Path, name: str) -> None:
    """bash can read them, and nothing of a template is left in them."""
    path = base / "source" / name
    subprocess.run(["bash", "-n", path], check=True)
    assert "@CHAPTER@" not in path.read_text()
