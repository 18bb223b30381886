"""Faults of chapter 32: each takes the right function and returns a plausibly wrong one."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pi_course.errors import CourseError

# 32.1 the manifest and its paths


def import_before_verify(load_plugin):
    """Import the tools first, to see what they export, and judge the manifest afterwards."""
    def faulty(root, name, **rest):
        folder = Path(root) / name
        with suppress(Exception):
            for tool in json.loads((folder / "plugin.json").read_bytes())["tools"]:
                exec(compile((folder / tool["entry"]).read_bytes(), "tool", "exec"), {})
        return load_plugin(root, name, **rest)
    return faulty


def tidy_version(parse_manifest):
    """Be friendly: trim blanks, take off a v, read full-width digits as digits."""
    def faulty(data):
        document = json.loads(data)
        if isinstance(document.get("version"), str):
            tidy = unicodedata.normalize("NFKC", document["version"]).strip()
            document["version"] = tidy.removeprefix("v")
        return parse_manifest(json.dumps(document).encode())
    return faulty


def any_version(parse_manifest):
    """Take whatever stands there for a version: it is only shown."""
    def faulty(data):
        document = json.loads(data)
        manifest = parse_manifest(json.dumps(document | {"version": "0.0.0"}).encode())
        return dataclasses.replace(manifest, version=document["version"])
    return faulty


def last_tool_wins(parse_manifest):
    """Keep tools in a dict by name, so that a later one replaces an earlier one."""
    def faulty(data):
        document = json.loads(data)
        with suppress(TypeError, KeyError):
            document["tools"] = list({tool["name"]: tool for tool in document["tools"]}.values())
        return parse_manifest(json.dumps(document).encode())
    return faulty


def last_key_wins(parse_manifest):
    """Read JSON as json.loads does: of a repeated key the last value counts."""
    def faulty(data):
        return parse_manifest(json.dumps(json.loads(data)).encode())
    return faulty


def permissions_add_up(parse_manifest):
    """Let the plugin have what its tools ask for: widen the declaration to their union."""
    def faulty(data):
        document = json.loads(data)
        with suppress(TypeError, KeyError, AttributeError):
            asked = [one for tool in document["tools"] for one in tool["permissions"]]
            document["permissions"] += [one for one in asked if one not in document["permissions"]]
        return parse_manifest(json.dumps(document).encode())
    return faulty


def unknown_permissions_are_ignored(parse_manifest):
    """Drop permissions that mean nothing here instead of refusing the manifest."""
    known = ("read", "write", "execute", "network")
    def faulty(data):
        document = json.loads(data)
        with suppress(TypeError, KeyError):
            kept = [one for one in document["permissions"] if one in known]
            document["permissions"] = kept or ["read"]
        return parse_manifest(json.dumps(document).encode())
    return faulty


def lexical_check_only(load_plugin):
    """Believe the text of an entry; never ask where the file really is."""
    def faulty(root, name, **rest):
        try:
            return load_plugin(root, name, **rest)
        except CourseError as error:
            if error.code != "ENTRY_ESCAPE":
                raise
        from pi_course.plugin_folder import Plugin
        from pi_course.plugin_manifest import parse_manifest
        folder = Path(root) / name
        data = (folder / "plugin.json").read_bytes()
        return Plugin(parse_manifest(data), hashlib.sha256(data).hexdigest(), folder)
    return faulty


def bad_tools_are_skipped(parse_manifest):
    """Leave out a tool whose entry is refused: the others may be fine."""
    def faulty(data):
        try:
            return parse_manifest(data)
        except CourseError as error:
            if error.code != "ENTRY_ESCAPE":
                raise
            document = json.loads(data)
            first = document["tools"][0] | {"entry": "tool.py"}
            return parse_manifest(json.dumps(document | {"tools": [first]}).encode())
    return faulty


def shared_lists(parse_manifest):
    """Hand out the lists of the parsed document themselves."""
    def faulty(data):
        manifest = parse_manifest(data)
        return dataclasses.replace(
            manifest, permissions=list(manifest.permissions), tools=list(manifest.tools)
        )
    return faulty


# 32.2 the versions


def compare_as_text(compare_versions):
    """Compare the texts: 1.10.0 is then older than 1.9.0."""
    def faulty(left, right):
        compare_versions(left, right)
        return (left > right) - (left < right)
    return faulty


def prereleases_are_releases(compare_versions):
    """Look at the three numbers only."""
    def faulty(left, right):
        compare_versions(left, right)
        return compare_versions(left.split("-")[0], right.split("-")[0])
    return faulty


def build_decides(compare_versions):
    """Let the build metadata decide between equal versions."""
    def faulty(left, right):
        builds = (left.partition("+")[2], right.partition("+")[2])
        return compare_versions(left, right) or (builds[0] > builds[1]) - (builds[0] < builds[1])
    return faulty


def versions_are_tidied(compare_versions):
    """Strip blanks and fold digits before a version is read."""
    def tidy(text):
        return unicodedata.normalize("NFKC", text.strip())
    return lambda left, right: compare_versions(tidy(left), tidy(right))


def upper_end_is_inside(check_host):
    """Read `below` as the last version that still works."""
    def faulty(api, runtime_api):
        if api is None or runtime_api != api.below:
            check_host(api, runtime_api)
    return faulty


def no_range_fits_all(check_host):
    """Take a plugin that names no host for one that runs on every host."""
    def faulty(api, runtime_api):
        if api is not None:
            check_host(api, runtime_api)
    return faulty


def candidate_is_below_its_release(check_host):
    """Use plain precedence for the upper end: 2.0.0-rc.1 is older than 2.0.0."""
    def faulty(api, runtime_api):
        numbers, dash, _ = runtime_api.partition("-")
        if api is None or not dash or numbers != api.below:
            check_host(api, runtime_api)
    return faulty


def newer_schema_is_tried(read_manifest):
    """Read a document of an unknown schema with the newest parser there is."""
    def faulty(data, parsers):
        try:
            return read_manifest(data, parsers)
        except CourseError as error:
            if error.code != "UNSUPPORTED_SCHEMA_VERSION":
                raise
            return parsers[max(parsers)](data)
    return faulty


def schema_number_by_equality(read_manifest):
    """Look the number up by ==, to which true and 1.0 are 1."""
    def faulty(data, parsers):
        with suppress(ValueError, AttributeError, TypeError):
            number = json.loads(data).get("schemaVersion")
            if number in parsers:
                return parsers[number](data)
        return read_manifest(data, parsers)
    return faulty


# 32.3 the content


def digest_without_lengths(tree_digest):
    """Hash paths and contents one after another, without saying where each ends."""
    def faulty(files):
        joined = b"".join(path.encode() + data for path, data in sorted(files.items()))
        return f"sha256:{hashlib.sha256(joined).hexdigest()}"
    return faulty


def digest_of_the_manifest(tree_digest):
    """Hash plugin.json, which names everything."""
    def faulty(files):
        manifest = files.get("plugin.json")
        return tree_digest(files if manifest is None else {"plugin.json": manifest})
    return faulty


def digest_in_given_order(tree_digest):
    """Hash the files in the order in which the disk lists them."""
    def faulty(files):
        names = "\0".join(files)
        return f"sha256:{hashlib.sha256((names + tree_digest(files)).encode()).hexdigest()}"
    return faulty


def signature_is_content(read_content):
    """Let plugin.sig count as a file like any other."""
    def faulty(folder, *limits):
        from pi_course.plugin_content import Content, tree_digest
        content = read_content(folder, *limits)
        if content.signature is None:
            return content
        files = {**content.files, "plugin.sig": content.signature}
        return Content(files, tree_digest(files), content.signature)
    return faulty


def files_are_read_when_needed(read_content):
    """Keep the paths and read each file when somebody asks for it."""
    class OnDisk(Mapping):
        def __init__(self, folder, names):
            self._folder, self._names = folder, names
        def __getitem__(self, name):
            if name not in self._names:
                raise KeyError(name)
            return (self._folder / name).read_bytes()
        def __iter__(self):
            return iter(self._names)
        def __len__(self):
            return len(self._names)
    def faulty(folder, *limits):
        content = read_content(folder, *limits)
        return dataclasses.replace(content, files=OnDisk(folder, tuple(content.files)))
    return faulty


def _through_a_copy(read_content, copy):
    """read_content of what `copy` makes of the folder in a temporary place."""
    def faulty(folder, *limits):
        with tempfile.TemporaryDirectory() as place:
            copied = Path(place) / "copy"
            copy(folder, copied)
            return read_content(copied, *limits)
    return faulty


def links_are_followed(read_content):
    """Follow links as any program does."""
    def copy(folder, copied):
        shutil.copytree(folder, copied, ignore_dangling_symlinks=True,
                        ignore=lambda place, names: [n for n in names if n.startswith("pipe")])
    return _through_a_copy(read_content, copy)


def bytecode_is_skipped(read_content):
    """Leave out __pycache__ and compiled files: they can be made again."""
    def copy(folder, copied):
        shutil.copytree(folder, copied, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__", "*.pyc", "*.PYC"))
    return _through_a_copy(read_content, copy)


def hidden_files_are_skipped(read_content):
    """Leave out what a file manager would not show."""
    def copy(folder, copied):
        shutil.copytree(folder, copied, ignore=shutil.ignore_patterns(".*"))
    return _through_a_copy(read_content, copy)


def entry_hash_is_for_show(check_entries):
    """Look only whether the entry is there."""
    def faulty(tools, content):
        check_entries([dataclasses.replace(tool, sha256=None) for tool in tools], content)
    return faulty


def lock_by_version(check_lock):
    """Take the same version number for the same content."""
    def faulty(lock, name, found):
        if name in lock and lock[name].version == found.version:
            found = dataclasses.replace(found, digest=lock[name].digest)
        check_lock(lock, name, found)
    return faulty


def unlocked_is_admitted(check_lock):
    """Ask the lock only about plugins that stand in it."""
    def faulty(lock, name, found):
        if name in lock:
            check_lock(lock, name, found)
    return faulty


def newer_than_locked_is_fine(check_lock):
    """Follow updates by itself: a version above the locked one is an improvement."""
    def faulty(lock, name, found):
        if name not in lock or found.version <= lock[name].version:
            check_lock(lock, name, found)
    return faulty


# 32.4 the signature


def signature_is_not_checked(verify):
    """Look the key up, and leave it at that."""
    def faulty(statement, envelope, policy, **rest):
        from pi_course.plugin_signature import Trust
        try:
            return verify(statement, envelope, policy, **rest)
        except CourseError as error:
            with suppress(ValueError, TypeError, KeyError):
                key_id = json.loads(envelope)["keyId"]
                if error.code == "SIGNATURE_INVALID" and key_id in policy.keys:
                    return Trust("signed", policy.keys[key_id].publisher, key_id)
            raise
    return faulty


def broken_is_unsigned(verify):
    """Treat a signature that does not hold as no signature."""
    def faulty(statement, envelope, policy, **rest):
        try:
            return verify(statement, envelope, policy, **rest)
        except CourseError as error:
            if error.code != "SIGNATURE_INVALID":
                raise
            return verify(statement, None, policy, **rest)
    return faulty


def unsigned_is_fine(verify):
    """Let everything pass that comes without signature: it lies on this disk already."""
    def faulty(statement, envelope, policy, **rest):
        if envelope is None:
            local = policy.unsigned_local | {statement.name}
            policy = dataclasses.replace(policy, unsigned_local=local)
        return verify(statement, envelope, policy, **rest)
    return faulty


def publisher_names_itself(verify):
    """Take the publisher's name from what the release says of itself."""
    def faulty(statement, envelope, policy, **rest):
        trust = verify(statement, envelope, policy, **rest)
        return dataclasses.replace(trust, publisher=trust.key_id)
    return faulty


def key_for_every_plugin(verify):
    """Trust a publisher's key for whatever it has signed."""
    def faulty(statement, envelope, policy, **rest):
        keys = {
            key_id: dataclasses.replace(key, plugins=key.plugins | {statement.name})
            for key_id, key in policy.keys.items()
        }
        return verify(statement, envelope, dataclasses.replace(policy, keys=keys), **rest)
    return faulty


def no_domain(signed_message):
    """Sign the words without saying what they are about."""
    def faulty(statement, key_id):
        message = signed_message(statement, key_id)
        return message[message.index(b"{"):]
    return faulty


def tree_is_not_signed(signed_message):
    """Sign the manifest: it names the files."""
    def faulty(statement, key_id):
        return signed_message(dataclasses.replace(statement, tree=""), key_id)
    return faulty


def key_id_is_not_signed(signed_message):
    """Leave the key id out of what is signed."""
    def faulty(statement, key_id):
        return signed_message(statement, "")
    return faulty


def revocation_is_forgotten(verify):
    """Never look at what was revoked."""
    def faulty(statement, envelope, policy, **rest):
        policy = dataclasses.replace(policy, revoked=frozenset())
        return verify(statement, envelope, policy, **rest)
    return faulty


def keys_last_for_ever(verify):
    """Never look at the clock."""
    def faulty(statement, envelope, policy, *, now_ms, **rest):
        return verify(statement, envelope, policy, now_ms=0, **rest)
    return faulty


def rollback_is_an_update(verify):
    """Take every signed release, whichever was admitted before."""
    def faulty(statement, envelope, policy, *, now_ms, installed=None):
        return verify(statement, envelope, policy, now_ms=now_ms)
    return faulty


# 32.5 the gate, the process, its end


def import_before_admission(admit_plugin):
    """Import the tools in the host, and prove the plugin afterwards."""
    def faulty(root, name, **rest):
        folder = Path(root) / name
        with suppress(Exception):
            for tool in json.loads((folder / "plugin.json").read_bytes())["tools"]:
                exec(compile((folder / tool["entry"]).read_bytes(), "tool", "exec"), {})
        return admit_plugin(root, name, **rest)
    return faulty


def lock_is_optional(admit_plugin):
    """Leave the lock to the installer."""
    def faulty(root, name, *, lock, **rest):
        return admit_plugin(root, name, lock=None, **rest)
    return faulty


def content_is_read_again(admit_plugin):
    """Keep where the files lie, and read them when the worker is started."""
    class OnDisk(Mapping):
        def __init__(self, folder, names):
            self._folder, self._names = folder, names
        def __getitem__(self, name):
            return (self._folder / name).read_bytes()
        def __iter__(self):
            return iter(self._names)
        def __len__(self):
            return len(self._names)
    def faulty(root, name, **rest):
        plugin = admit_plugin(root, name, **rest)
        files = OnDisk(Path(root) / name, tuple(plugin.content.files))
        content = dataclasses.replace(plugin.content, files=files)
        return dataclasses.replace(plugin, content=content)
    return faulty


def definition_wins(check_ready):
    """Believe the module: it knows best what it is called and what it needs."""
    def faulty(message, digest, tools):
        try:
            said = [dict(one) for one in message["tools"]]
            meant = [
                dataclasses.replace(tool, name=one["name"], permissions=tuple(one["permissions"]))
                for tool, one in zip(tools, said, strict=True)
            ]
            return check_ready(message, digest, meant)
        except (CourseError, KeyError, TypeError, ValueError):
            return check_ready(message, digest, tools)
    return faulty


def weakest_permission(check_ready):
    """Ask for the least that a tool declares: it is the most polite."""
    def faulty(message, digest, tools):
        specs = check_ready(message, digest, tools)
        return tuple(
            dataclasses.replace(spec, permission=tool.permissions[0])
            for spec, tool in zip(specs, tools, strict=True)
        )
    return faulty


def handshake_without_digest(check_ready):
    """Compare the tools; whoever answers is the worker."""
    def faulty(message, digest, tools):
        if isinstance(message, Mapping) and "digest" in message:
            message = {**message, "digest": digest}
        return check_ready(message, digest, tools)
    return faulty


def any_answer_will_do(read_answer):
    """Take the next result for the answer, whatever call it belongs to."""
    def faulty(message, request):
        if isinstance(message, Mapping) and "id" in message:
            message = {**message, "id": request}
        return read_answer(message, request)
    return faulty


def failure_is_shown(read_answer):
    """Show the model what the failed tool said."""
    def faulty(message, request):
        output = read_answer(message, request)
        if output.is_error:
            return dataclasses.replace(output, content=str(message["value"]))
        return output
    return faulty


def host_environment(spawn_worker):
    """Give the worker the environment of the host, so that it finds its programs."""
    def faulty(plugin, grant, *, launch=None, **rest):
        def surrounded(argv, **where):
            inherited = [f"{key}={value}" for key, value in os.environ.items()]
            return ["/usr/bin/env", *inherited, *(launch(argv, **where) if launch else argv)]
        return spawn_worker(plugin, grant, launch=surrounded, **rest)
    return faulty


def grant_by_name(spawn_worker):
    """Remember that the plugin was approved, and forget for which content and for what."""
    def faulty(plugin, grant, **rest):
        wide = dataclasses.replace(
            grant, digest=plugin.content.digest, permissions=frozenset(plugin.manifest.permissions)
        )
        return spawn_worker(plugin, wide, **rest)
    return faulty


def patience_without_end(exchange):
    """Wait for the answer as long as it takes."""
    def faulty(self, message, seconds):
        return exchange(self, message, seconds + 5)
    return faulty


def leader_only(end):
    """Kill the process and forget what it has started."""
    async def faulty(self):
        whole_group, os.killpg = os.killpg, os.kill
        try:
            await end(self)
        finally:
            os.killpg = whole_group
    return faulty


def late_worker_lives_on(call):
    """Let a call that was given up go on in the worker, and use the worker again."""
    async def faulty(self, tool, arguments, *, signal=None):
        work = asyncio.ensure_future(call(self, tool, arguments))
        stop = asyncio.ensure_future(signal.wait() if signal else asyncio.sleep(5))
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if signal and signal.aborted and not work.done():
            work.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise CourseError("ABORTED", "the call was aborted")
        return await work
    return faulty


def restart_at_once(check):
    """Start a broken worker again without waiting; only the quarantine holds."""
    def faulty(self, digest):
        try:
            check(self, digest)
        except CourseError as error:
            if error.code != "WORKER_BACKOFF":
                raise
    return faulty


def quarantine_ends_by_itself(succeeded):
    """Open a closed content again as soon as anything about it succeeds."""
    def faulty(self, digest):
        self.enable(digest)
    return faulty


def failures_are_forgotten(failed):
    """Count a failure only when there was none yet."""
    def faulty(self, digest):
        self.succeeded(digest)
        failed(self, digest)
    return faulty


def crash_reaches_the_agent(call):
    """Let the error of a worker out of the supervisor."""
    async def faulty(self, tool, arguments, ctx):
        output = await call(self, tool, arguments, ctx)
        code = (output.details or {}).get("code", "")
        if code.startswith("WORKER"):
            raise CourseError(code, "the worker is broken")
        return output
    return faulty
