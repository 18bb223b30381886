"""docs/ci: workflows that keep secrets from submissions, and scripts that survive any report."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from course.grades import Batch
from course.render.formats import write_formats
from tests.arbitrary import everything_hostile, ordinary
from tests.conftest import REPOSITORY
from tests.strict_json import loads

CI = REPOSITORY / "docs" / "ci"
GITHUB = yaml.safe_load((CI / "github.yml").read_text("utf-8"))
GITLAB = yaml.safe_load((CI / "gitlab.yml").read_text("utf-8"))
needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="NOT RUN: jq is missing")
KEEP = '#!/bin/sh\ncat > "$KEPT"\n'
KEEP_DATA = '#!/bin/sh\ncp issue.json "$KEPT"\n'


def text_of(job: Any) -> str:
    return yaml.safe_dump(job, allow_unicode=True, width=10_000)


def run_script(script: str, folder: Path, program: str, stand_in: str, **more: str) -> Any:
    """The script in a folder, with a stand-in for the program that would send something away."""
    (folder / "bin").mkdir()
    (folder / "bin" / program).write_text(stand_in)
    (folder / "bin" / program).chmod(0o755)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, capture_output=True, check=False,
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "KEPT": str(folder / "kept.json"),
             "HOME": str(folder), **more})
    assert done.returncode == 0, done.stderr
    return loads((folder / "kept.json").read_bytes())


def test_on_github_no_job_has_both_a_secret_and_a_submission() -> None:
    """Grading may read; reporting may write and checks nothing out."""
    grade, report = GITHUB["jobs"]["grade"], GITHUB["jobs"]["report"]
    assert GITHUB["permissions"] == {}
    assert grade["permissions"] == {"contents": "read"}
    assert not re.search(r"secrets\.|github\.token|GH_TOKEN|GITHUB_TOKEN", text_of(grade))
    assert grade["steps"][0]["with"]["persist-credentials"] is False
    assert "checkout" not in text_of(report) and "course " not in scripts(report)
    assert set(report["permissions"].values()) == {"write"} and report["needs"] == "grade"


def test_on_github_nothing_is_pasted_into_a_script() -> None:
    """Inputs and names reach the shell as variables, so they are never read as commands."""
    for job in GITHUB["jobs"].values():
        assert "${{" not in scripts(job)
    assert set(GITHUB[True]) == {"workflow_dispatch"}  # YAML reads the key `on` as true


def scripts(job: Any) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_on_gitlab_no_job_has_both_the_token_and_a_submission() -> None:
    """The token has the environment of the job that reports; that job checks nothing out."""
    grade, report = GITLAB["grade"], GITLAB["report"]
    assert "TOKEN" not in text_of(grade) and "environment" not in grade
    assert report["environment"] == {"name": "grades"}
    assert report["variables"] == {"GIT_STRATEGY": "none"} and "course " not in "".join(
        [*report["before_script"], *report["script"]])
    assert grade["artifacts"]["reports"]["junit"] == "results/junit.xml"


def test_jobs_read_only_files_that_the_formats_write(tmp_path: Path) -> None:
    """Names in the workflows are those of the files."""
    for name, text in (("github", text_of(GITHUB)), ("gitlab", text_of(GITLAB))):
        formats = re.findall(r"--format (\w+)", text)
        write_formats(ordinary(), ["results", *formats], tmp_path / name)
        for path in set(re.findall(r"results/([\w.-]+)", text)):
            assert (tmp_path / name / path).is_file(), path


@needs_jq
@pytest.mark.parametrize("batch", [ordinary(), everything_hostile()], ids=["class", "hostile"])
def test_the_check_on_github_is_one_document(batch: Batch, tmp_path: Path) -> None:
    """Whatever the reports hold."""
    write_formats(batch, ["results", "github"], tmp_path / "results")
    script = GITHUB["jobs"]["report"]["steps"][-1]["run"]
    check = run_script(script, tmp_path, "gh", KEEP, COMMIT="abc", REPOSITORY="o/r")
    assert (check["name"], check["head_sha"], check["conclusion"]) == ("grades", "abc", "neutral")
    assert len(check["output"]["summary"]) <= 60_000
    assert check["output"]["title"].endswith(f"of {len(batch.grades)} passed")


@needs_jq
@pytest.mark.parametrize("batch", [ordinary(), everything_hostile()], ids=["class", "hostile"])
def test_the_issue_on_gitlab_is_one_document(batch: Batch, tmp_path: Path) -> None:
    """Whatever the reports hold; only the project's members see it."""
    write_formats(batch, ["markdown"], tmp_path / "results")
    issue = run_script("\n".join(GITLAB["report"]["script"]), tmp_path, "curl", KEEP_DATA,
                       CHAPTER="12", GRADES_TOKEN="t", CI_API_V4_URL="u", CI_PROJECT_ID="1")
    assert issue["title"] == "Grades of chapter 12" and issue["confidential"] is True
    assert issue["description"].startswith("# Grades of chapter")
