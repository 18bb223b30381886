"""Lab 32.2: which document, which release, which host; three numbers that are not mixed up."""

import itertools
import json

import pi_course.plugin_versions as plugin_versions
import pytest
from pi_course.errors import CourseError


def _code(call, *arguments):
    with pytest.raises(CourseError) as caught:
        call(*arguments)
    return caught.value.code


def test_precedence_is_that_of_semver_org():
    """Of any two versions the older one is found, prereleases before their release."""
    ordered = ["0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta"]
    ordered += ["1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.9.0", "1.10.0"]
    for (i, left), (j, right) in itertools.product(enumerate(ordered), repeat=2):
        expected = (i > j) - (i < j)
        assert plugin_versions.compare_versions(left, right) == expected, (left, right)


def test_build_metadata_decides_nothing():
    """Two builds of one version have equal rank, with and without a prerelease."""
    assert plugin_versions.compare_versions("1.2.3+a", "1.2.3+b") == 0
    assert plugin_versions.compare_versions("1.2.3-rc.1+9", "1.2.3-rc.1") == 0
    assert plugin_versions.compare_versions("1.2.3-rc.1+z", "1.2.3+a") == -1


def test_only_exact_versions_are_compared():
    """What semver.org lists as valid has a rank; what only looks like a version is an error."""
    valid = ["1.0.0-0A.is.legal", "1.0.0+0.build.1-rc.10000aaa-kk-0.1", "1.0.0-alpha0.valid"]
    valid += ["1.2.3----RC-SNAPSHOT.12.9.1--.12+788", "99999999999999999999999.999999999999.1"]
    for text in valid:
        assert plugin_versions.compare_versions(text, text) == 0, text
    invalid = ["1", "1.2", "1.2.3-0123", "1.1.2+.123", "alpha", "1.0.0-alpha_beta", "1.2.3.DEV"]
    invalid += ["01.1.1", "1.2-SNAPSHOT", "-1.0.3-gamma+b7718", "9.8.7+meta+meta", "1.2.3-", "v1.2"]
    for text in [*invalid, "1.2.3\n", "１.2.3", "1.2.3-٣", "latest", "", "1" * 9_000 + ".0.0"]:
        assert _code(plugin_versions.compare_versions, text, "1.0.0") == "INVALID_VERSION", text
        assert _code(plugin_versions.compare_versions, "1.0.0", text) == "INVALID_VERSION", text


def test_host_must_lie_inside_the_declared_range():
    """The lower end belongs to the range, the upper end does not; without a range nothing does."""
    api = plugin_versions.ApiRange(minimum="1.4.0", below="2.0.0")
    for host in ("1.4.0", "1.4.0+build.7", "1.10.2", "1.99.99"):
        assert plugin_versions.check_host(api, host) is None, host
    for host in ("1.3.99", "0.9.0", "2.0.0", "2.1.0", "10.0.0"):
        assert _code(plugin_versions.check_host, api, host) == "INCOMPATIBLE_VERSION", host
    assert _code(plugin_versions.check_host, None, "1.4.0") == "INCOMPATIBLE_VERSION"


def test_candidate_of_the_next_major_is_not_below_it():
    """A prerelease of the upper end already breaks what the release breaks; one inside is fine."""
    api = plugin_versions.ApiRange(minimum="1.4.0", below="2.0.0")
    assert plugin_versions.check_host(api, "1.5.0-rc.1") is None
    for host in ("1.4.0-rc.1", "2.0.0-0", "2.0.0-rc.1"):
        assert _code(plugin_versions.check_host, api, host) == "INCOMPATIBLE_VERSION", host
    early = plugin_versions.ApiRange(minimum="2.0.0-rc.1", below="3.0.0")
    assert plugin_versions.check_host(early, "2.0.0-rc.2") is None


def test_schema_version_is_judged_before_anything_else():
    """A document of an unknown schema reaches no parser, whatever else stands in it."""
    seen = []
    parsers = {1: lambda data: seen.append(data) or "one", 3: lambda data: "three"}
    known = json.dumps({"schemaVersion": 1, "name": "demo"}).encode()
    assert plugin_versions.read_manifest(known, parsers) == "one"
    assert seen == [known]
    assert plugin_versions.read_manifest(b'{"schemaVersion": 3}', parsers) == "three"
    for number in ("2", "4", "true", "1.0", '"1"', "null", "[1]", "-1"):
        data = f'{{"mustSandbox": true, "schemaVersion": {number}}}'.encode()
        code = _code(plugin_versions.read_manifest, data, parsers)
        assert code == "UNSUPPORTED_SCHEMA_VERSION", number
    assert _code(plugin_versions.read_manifest, b"{}", parsers) == "UNSUPPORTED_SCHEMA_VERSION"
    for data in (b"[]", b"1", b'{"schemaVersion": 1, "schemaVersion": 1}', b"{", b"\xff"):
        assert _code(plugin_versions.read_manifest, data, parsers) == "INVALID_SCHEMA", data
    assert seen == [known]
