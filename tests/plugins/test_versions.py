"""Versions: the strings of semver.org, and the package semver as a second opinion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import semver
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# The two lists that semver.org links to where it suggests a regular expression.
HERE = Path(__file__).parent
VALID = (HERE / "semver-valid.txt").read_text("ascii").split()
INVALID = (HERE / "semver-invalid.txt").read_text("ascii").split()
NEITHER = ["v1.0.0", "1.0.0 ", " 1.0.0", "1.2.3\n", "1.2.3\r\n", "1.2.3-", "1.2.3+", "", "latest"]
NEITHER += ["*", "^1.2.3", ">=1.0.0", "1.x.0", "１.2.3", "1.2.1٣", "1.2.3-٣", "1.2.3-é", "1.2.3\0"]


@pytest.mark.parametrize("text", VALID)
def test_what_semver_org_accepts_is_accepted(pi: Any, text: str) -> None:
    """Every valid string is read, with the parts that the package semver finds."""
    version, other = pi.plugin_versions.parse_version(text), semver.Version.parse(text)
    assert (version.major, version.minor, version.patch) == other.to_tuple()[:3]
    assert ".".join(map(str, version.prerelease)) == (other.prerelease or "")
    assert ".".join(version.build) == (other.build or "")


@pytest.mark.parametrize("text", [*INVALID, *NEITHER])
def test_what_semver_org_refuses_is_refused(pi: Any, text: str) -> None:
    """Every invalid string is an error, for us and for the package semver."""
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_versions.parse_version(text)
    assert caught.value.code == "INVALID_VERSION"
    assert not semver.Version.is_valid(text)


@pytest.mark.parametrize("value", [None, 1, 1.2, True, b"1.2.3", ["1.2.3"], "1.2." + "3" * 300])
def test_what_is_no_short_text_is_refused(pi: Any, value: object) -> None:
    """A value of another type, or one too long to be meant, is an error and no crash."""
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_versions.parse_version(value)
    assert caught.value.code == "INVALID_VERSION"


NUMBERS = st.integers(0, 12)
WORDS = st.from_regex(r"[0-9]?[A-Za-z-][0-9A-Za-z-]?", fullmatch=True)
IDENTIFIERS = st.one_of(NUMBERS.map(str), WORDS)
VERSIONS = st.builds(
    lambda numbers, pre, build: ".".join(map(str, numbers))
    + ("-" + ".".join(pre) if pre else "")
    + ("+" + ".".join(build) if build else ""),
    st.tuples(NUMBERS, NUMBERS, NUMBERS),
    st.lists(IDENTIFIERS, max_size=3),
    st.lists(IDENTIFIERS, max_size=2),
)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=VERSIONS, right=VERSIONS)
def test_precedence_agrees_with_the_package_semver(pi: Any, left: str, right: str) -> None:
    """Any two versions stand in the order in which the package semver puts them."""
    expected = semver.Version.parse(left).compare(right)
    assert pi.plugin_versions.compare_versions(left, right) == expected
    assert pi.plugin_versions.compare_versions(right, left) == -expected


def test_plain_precedence_would_let_a_candidate_in(pi: Any) -> None:
    """Why check_host looks at the three numbers: package semver finds 2.0.0-rc.1 below 2.0.0."""
    api = pi.plugin_versions.ApiRange("1.0.0", "2.0.0")
    assert semver.Version.parse("2.0.0-rc.1").match("<2.0.0")
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_versions.check_host(api, "2.0.0-rc.1")
    assert caught.value.code == "INCOMPATIBLE_VERSION"


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(host=VERSIONS, minimum=VERSIONS, below=VERSIONS)
def test_a_range_accepts_what_lies_between_its_ends(
    pi: Any, host: str, minimum: str, below: str
) -> None:
    """Accepted hosts are at least the minimum, and their three numbers are before the other end."""
    api = pi.plugin_versions.ApiRange(minimum, below)
    numbers = str(semver.Version.parse(host).finalize_version())
    inside = (
        semver.Version.parse(host).compare(minimum) >= 0
        and semver.Version.parse(numbers).compare(below) < 0
    )
    try:
        pi.plugin_versions.check_host(api, host)
        accepted = True
    except pi.errors.CourseError:
        accepted = False
    assert accepted == inside
