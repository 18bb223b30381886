"""Salted scenarios of chapter 32: manifests, versions, trees, releases and workers, all new.

They return what could be observed and judge nothing. Workers are small programs that do what a
line tells them; whether one has gone is told by a pipe that only it and its children hold open.
Clocks are only in what a wrong program has to be stopped by.
"""

import asyncio
import base64
import contextlib
import hashlib
import itertools
import json
import os
import stat
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from operator import setitem
from pathlib import Path
from types import SimpleNamespace

FOUR = ("read", "write", "execute", "network")
LATE_S, HOLD_S = 1.5, 6.0  # when a late worker answers, and how long a silent one lives
SOON_S, LONG_S = 0.1, 30.0  # what a hopeless question gets, and what no right program waits for
GONE_S = 1.0  # how long a wrong program's processes are waited for
BESIDE = f"sleep {HOLD_S} </dev/null >/dev/null 2>&1"  # what a shell leaves running beside itself


# What all labs need


def mark(salt):
    """A word that no other word or frame can contain: there is no q in the words of a salt."""
    return f"q{salt.word()}q"


def code(action, *given, **terms):
    """The code that the action is refused with, "done", or what else it raised."""
    from pi_course.errors import CourseError

    try:
        action(*given, **terms)
    except CourseError as error:
        return error.code
    except (Exception, SystemExit) as error:
        return {"raised": type(error).__name__}
    return "done"


def refusal(action, *given, **terms):
    """The code and the message of the refusal; two empty texts where nothing is refused."""
    from pi_course.errors import CourseError

    try:
        action(*given, **terms)
    except CourseError as error:
        return error.code, str(error)
    return "", ""


def codes(salt, action, cases):
    """The code of each case, in an order of the salt's."""
    return [code(action, case) for case in salt.shuffled(cases)]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def written(folder, files):
    """The folder with these files in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def declared(name, entry="tool.py", permissions=("read",), **more):
    return {"name": name, "entry": entry, "permissions": list(permissions), **more}


def claim(name, *tools, **changes):
    """What a plugin.json of schema 1 says."""
    return {"name": name, "version": "1.2.3", "permissions": ["read"],
            "tools": list(tools) or [declared("inspect")]} | changes


def as_bytes(document):
    return document if isinstance(document, bytes) else json.dumps(document).encode()


def parse(document):
    from pi_course import plugin_manifest

    return plugin_manifest.parse_manifest(as_bytes(document))


def shown(manifest):
    """All that a manifest holds, as plain values."""
    return {
        "is": [manifest.name, manifest.version, manifest.display_name],
        "permissions": list(manifest.permissions),
        "tools": [[tool.name, tool.entry, list(tool.permissions), tool.sha256]
                  for tool in manifest.tools],
        "api": manifest.api and [manifest.api.minimum, manifest.api.below],
    }


class Shelf:
    """A root with one plugin, whose modules leave a file behind as soon as one of them is run."""

    def __init__(self, salt):
        self.salt = salt
        self.name = f"{salt.word()}-{salt.number(2, 99)}"
        self.root = salt.folder / salt.word()
        self.folder = self.root / self.name
        self.ran = salt.folder / "ran"
        self.module = f"open({str(self.ran)!r}, 'w').close()\n"
        written(self.folder, {"tool.py": self.module})
        written(self.root, {"outside.py": self.module})
        written(salt.folder, {"outside.py": self.module})

    def say(self, *tools, **changes):
        self.put(claim(self.name, *tools) | changes)

    def put(self, document):
        written(self.folder, {"plugin.json": as_bytes(document)})

    def load(self, name=None, root=None):
        from pi_course import plugin_folder, plugin_manifest

        return plugin_folder.load_plugin(
            root or self.root, self.name if name is None else name,
            parse=plugin_manifest.parse_manifest)

    def refused(self, **where):
        """The code, whether anything ran, and whether a folder of this machine is shown."""
        found, message = refusal(self.load, **where)
        hosts = (str(self.salt.folder), os.path.realpath(self.salt.folder))
        return [found, self.ran.exists(), any(host in message for host in hosts)]


class Freed:
    """Pipes that a wrong program waits for: it is seen to wait, and let go."""

    def __init__(self, *pipes):
        self.pipes, self.waited = pipes, False
        self._since, self._over = None, threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._watching.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._watching.join(5)

    def asked(self, action, *given):
        """What the action returns, which may need to be let go."""
        self._since = time.monotonic()
        try:
            return action(*given)
        finally:
            self._since = None

    def _watch(self):
        """A pipe has a reader, and that long after the question: the reader waits for us."""
        while not self._over.wait(0.05):
            since = self._since
            if since is not None and time.monotonic() - since > 0.3:
                for pipe in self.pipes:
                    self._let_go(pipe)

    def _let_go(self, pipe):
        with contextlib.suppress(OSError):
            writing = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # fails where nobody reads
            self.waited = self.waited or stat.S_ISFIFO(os.fstat(writing).st_mode)
            os.close(writing)


# Lab 32.1


VERSIONS = ("0.0.0", "{a}.{b}.{c}", "{a}.0.{b}-{w}.{c}", "{a}.{b}.0-0.{w}-1+0{c}.{w}", "1.0.0--",
            "{a}.{b}.{c}-{c}{w}", "0.{a}.0+{w}", "1.2.3----{w}.12.9.1--.12+788")
NO_VERSIONS = ("{w}", "latest", "v{a}.{b}.{c}", "{a}.{b}", "{a}", "^{a}.{b}.{c}", "0{a}.{b}.{c}",
               "{a}.{b}.{c}.{a}", "{a}.{b}.{c}-0{c}", "{a}.{b}.{c}\n", " {a}.{b}.{c}", "*",
               "{a}.{b}.{c}-", "{a}.{b}.{c}+", "{a}.{b}.{c}-{w}..1", "{a}.{b}.{c}-{w}_1",
               "{a}.{b}.{c}+{w}+{w}", "{a}.{b}.x", "-{a}.{b}.{c}", "{a}.{b}.{c} - {a}.{b}.9",
               "１.{b}.{c}", "{a}.{b}.٣", "{a}.{b}.{c}-٣", "{a}.{b}.{c}-é", "{a},{b},{c}", "",
               ">={a}.{b}.{c}", "{a}.{b}.{c}-{w}+", "{a}.-{b}.{c}", "{a}.{b}.{c}\r", "V{a}.{b}.{c}")


def spelled(salt, patterns):
    """The patterns with the numbers and a word of this salt."""
    parts = {name: salt.number(1, 99) for name in "abc"} | {"w": salt.word()}
    return [pattern.format(**parts) for pattern in patterns]


def probe_32_1_manifest(salt):
    """A valid manifest is read whole, with its permissions in one order."""
    plain, full, many = (f"{word}-{salt.number(0, 9)}" for word in salt.words(3))
    versions = spelled(salt, VERSIONS)
    tools = [declared(f"{word}_{number}", f"{word}/_{word}{number}.py", [permission])
             for number, (word, permission) in enumerate(
                 zip(salt.words(32), itertools.cycle(salt.shuffled(FOUR)), strict=False))]
    digest = sha256(salt.word().encode())
    api = {"below": versions[1], "minimum": versions[3]}
    return [shown(parse(document)) for document in (
        claim(plain),
        claim(full, declared("x", permissions=salt.shuffled(FOUR), sha256=digest),
              permissions=salt.shuffled(FOUR), schemaVersion=1, version=versions[2],
              displayName=f"審 {salt.word()} é😀", runtimeApiRange=api),
        claim(many, *tools, permissions=salt.shuffled(FOUR), version=versions[5]),
        claim("a" * 64, declared("b" * 64, "c" * 197 + ".py"), displayName="d" * 80),
    )]


def probe_32_1_versions(salt):
    """A version is what semver.org allows, as it stands or not at all."""
    from pi_course import plugin_versions

    good, bad = spelled(salt, VERSIONS), spelled(salt, NO_VERSIONS)
    good += [f"1.0.{'9' * 200}", f"1.0.0-{'z' * 250}", "9" * 100 + ".0.0"]
    bad += [f"1.0.0-{'z' * 251}", "1" * 300 + ".0.0", salt.number(1, 9), 1.2, None, True,
            ["1.2.3"], {"1": 2}]
    seen = []
    for text in salt.shuffled(good):
        found = plugin_versions.parse_version(text)
        seen.append([text, parse(claim("a", version=text)).version, found.major, found.minor,
                     found.patch, list(found.prerelease), list(found.build)])
    bad = salt.shuffled(bad)
    return [seen, [code(plugin_versions.parse_version, text) for text in [*bad, b"1.2.3"]],
            [code(parse, claim("a", version=text)) for text in bad]]


def probe_32_1_permissions(salt):
    """A tool asks for what the plugin declares, in whole words out of four."""
    declarations = [list(some) for size in (1, 2, 3, 4) for some in itertools.combinations(FOUR,
        size)]
    pairs = salt.shuffled(itertools.product(declarations, repeat=2))[:60]
    pairs += [(["read"], ["read", "write"]), (["write"], ["read"]), (list(FOUR), list(FOUR))]
    tools = [declared("first"), declared("second", permissions=["network"])]
    both = [code(parse, claim("a", *order, permissions=["write", "read"]))
            for order in (tools, tools[::-1])]
    odd = [["excute"], ["READ"], ["read", "read"], [], "read", [["read"]], None, {"read": True},
           ["read-metadata"], ["rea"], [""], [salt.word()], ["read", salt.word()], [True],
           ["read "],
           ["ｒead"], [*FOUR, "read"]]
    unknown = [code(parse, claim("a", declared("x", permissions=[word], entry="x.py")))
               for word in (salt.word(), "excute", "Read")]
    twice = code(parse, claim("a", declared("x", permissions=["read", "read"])))
    names = {"tool": f"{salt.word()}-9", "asked": salt.choice(FOUR[1:])}
    found, message = refusal(parse, claim("a",
                                          declared(names["tool"], permissions=[names["asked"]])))
    return {
        "subsets": [[whole, part, code(parse, claim("a", declared("x", permissions=part),
                                                    permissions=whole))]
                    for whole, part in salt.shuffled(pairs)],
        "in any place": both,
        "declared": codes(salt, lambda one: parse(claim("a", permissions=one)), odd),
        "unknown to both": [one in ("INVALID_SCHEMA", "PERMISSION_ESCALATION") for one in unknown],
        "twice": twice,
        "named": [found, names, [name in message for name in names.values()]],
    }


def probe_32_1_tools(salt):
    """One name is one tool, and there are one to thirty-two."""
    first, second, third = salt.words(3)
    alike = [declared(first), declared(first, f"{second}.py", ["write"])]
    other = [declared(second), declared(third)]
    orders = [alike, alike[::-1], [alike[0], *other, alike[1]], [*other, *alike], [alike[0]] * 2]
    many = [declared(f"{word}-{number}") for number, word in enumerate(salt.words(33))]
    right = [f"{first}-{second}", f"{first}_{second}9", f"{first}_1-2", first[0], first * 6]
    wrong = [first.title(), f"{first} {second}", f"{first}__{second}", f"-{first}", f"{first}-",
             f"9{first}", f"{first}.{second}", "", "é", f"{first}\n", "x" * 65, f"{first}/{second}"]
    return {
        "twice": [code(parse, claim("a", *order, permissions=["read", "write"]))
                  for order in salt.shuffled(orders)],
        "count": [code(parse, claim("a", *many[:count]) | {"tools": many[:count]})
                  for count in salt.shuffled((0, 1, 2, 31, 32, 33))],
        "right names": [parse(claim("a", declared(name))).tools[0].name for name in right],
        "wrong names": codes(salt, lambda name: parse(claim("a", declared(name))), wrong),
        "order": [tool.name for tool in parse(claim("a", *salt.shuffled(many[:9]))).tools],
    }


def probe_32_1_fields(salt):
    """A missing, unknown or mistyped field refuses the manifest."""
    name, word = salt.words(2)
    document = claim(name, declared(word, sha256="0" * 64), declared(f"{word}-2"), schemaVersion=1,
                     displayName=word, runtimeApiRange={"minimum": "1.0.0", "below": "2.0.0"})
    changes = [("tools", {}), ("tools", word), ("tools", None), ("permissions", word),
               ("displayName", ""), ("displayName", 7), ("displayName", f"{word}\n{word}"),
               ("displayName", f"\u202e{word}"), ("displayName", f"{word}\u200b"),
               ("displayName", f"\x1b[1m{word}"), ("displayName", "x" * 81), ("displayName", None),
               ("schemaVersion", 2), ("schemaVersion", True), ("schemaVersion", 1.0),
               ("schemaVersion", "1"), ("schemaVersion", None), ("runtimeApiRange", {}),
               ("runtimeApiRange", {"minimum": "1.0.0"}), ("runtimeApiRange", {"below": "1.0.0"}),
               ("runtimeApiRange", {"minimum": "1", "below": "2.0.0"}), ("runtimeApiRange", word),
               ("runtimeApiRange", {"minimum": "1.0.0", "below": "*"}), ("runtimeApiRange", None),
               ("runtimeApiRange", {"minimum": "1.0.0", "below": "2.0.0", word: "3.0.0"}),
               ("name", 7), ("name", None), ("name", [name]), ("version", {}), (word, word),
               ("Name", name), ("permission", ["read"]), ("", "")]
    names = ["", name.title(), f"../{name}", f"{name}/{word}", f"{name}.{word}", f"{name} {word}",
             f"{name}_{word}", f"{name}--{word}", f"-{name}", f"{name}-", f"9{name}", f"{name}é",
             f"{name}\n", "x" * 65, f"%2e%2e%2f{name}", f"{name}\0", "."]
    in_tool = [("name", 7), ("name", None), ("entry", 7), ("entry", ["tool.py"]), ("sha256", 7),
               ("sha256", None), ("sha256", "0" * 63), ("sha256", "0" * 65), ("sha256", "A" * 64),
               ("sha256", "g" * 64), ("sha256", "٠" * 64), ("sha256", "0" * 64 + "\n"),
               ("permissions", None), ("permissions", []), (word, word), ("Entry", "tool.py")]
    gone = [{key: value for key, value in document.items() if key != left}
            for left in ("name", "version", "permissions", "tools")]
    tools = [{key: value for key, value in document["tools"][1].items() if key != left}
             for left in ("name", "entry", "permissions")]
    tools += [document["tools"][1] | {key: value} for key, value in in_tool] + [word, None, 7, []]
    return {
        "whole": shown(parse(document)),
        "changed": codes(salt, parse, [document | {key: value} for key, value in changes]),
        "names": codes(salt, lambda one: parse(document | {"name": one}), names),
        "gone": codes(salt, parse, gone),
        "tools": codes(salt, lambda one: parse(document | {"tools": [document["tools"][0], one]}),
                       tools),
        "no object": codes(salt, parse, [b"[]", b"1", b"null", b'""', b"", b"{", word.encode(),
                                         json.dumps([document]).encode()]),
    }


def probe_32_1_errors(salt):
    """An error points at the field and shows no value."""
    value = mark(salt)
    number = salt.number(1, 3)
    tools = [declared(word) for word in salt.words(4)]
    where = f"tools[{number}]"

    def inside(**changes):
        return {"tools": [*tools[:number], tools[number] | changes, *tools[number + 1:]]}

    cases = {
        "name": {"name": value.title()}, "version": {"version": value},
        "permissions": {"permissions": ["read", value]}, "displayName": {"displayName": value * 20},
        "schemaVersion": {"schemaVersion": value}, "tools": {"tools": value},
        "runtimeApiRange": {"runtimeApiRange": value},
        "runtimeApiRange.below": {"runtimeApiRange": {"minimum": "1.0.0", "below": value}},
        "runtimeApiRange.minimum": {"runtimeApiRange": {"minimum": value, "below": "1.0.0"}},
        f"{where}.name": inside(name=value.upper()), f"{where}.entry": inside(entry=f"../{value}"),
        f"{where}.sha256": inside(sha256=value), f"{where}.permissions": inside(permissions=value),
        where: inside(**{"also": value}),
        "": {"also": value},
    }
    documents = {path: claim("a", *tools) | change for path, change in cases.items()}
    seen = []
    for path, document in salt.shuffled(documents.items()):
        found, message = refusal(parse, document)
        seen.append([path, found, path in message, value in message.lower()])
    broken = [f'{{"name": "{value}", "name": "{value}"}}', f'{{"{value}": NaN}}', f'{{"{value}"',
              f'{{"a": "{value}\\ud800"}}', f'["{value}", 1e999]', f"{value}"]
    return [seen, [value in refusal(parse, text.encode())[1].lower() for text in broken]]


def probe_32_1_json(salt):
    """What json.loads lets pass or stumbles over is an error with the code that was asked for."""
    from pi_course import plugin_json
    from pi_course.values import thaw

    word, other = salt.words(2)
    deep = salt.number(3, 9)
    size = salt.number(40, 90)

    def nested(levels, inner="1"):
        return ("[" * levels + inner + "]" * levels).encode()

    good = [b"1", b' {"a": [1, 2.5, null, true]} ', f'{{"{word}": {{"{word}": "é審😀"}}}}'.encode(),
            f'"{"[{" * 99}"'.encode(), f'["\\"{"[" * 99}", "\\\\", [1]]'.encode(), nested(16),
            f'{{"{word}": 1, "{word.title()}": 2}}'.encode(), f'["\\ud83d\\ude00{other}"]'.encode(),
            f'["NaN", "{word}"]'.encode(), b'"' + b"x" * 65_534 + b'"',
            b'[[],{},[[]],{"a":{}}]' * 1]
    twice = f'{{"{word}": 1, "{other}": 2, "{word}": 1}}'
    bad = [twice, f"[[{twice}]]", '{"a": 1, "\\u0061": 2}', "NaN", "[Infinity]", '{"a": -Infinity}',
           "1e999", "[-1e999]", '"\\ud800"', '{"\\udc00": 1}', "", " ", "[1,]", "{'a': 1}", "[1] 2",
           f"{word}", "// 1", '"a\nb"', "[1", "\ufeff[1]", "01", nested(17), nested(5_000),
           nested(200_000)[:60_000], b'"\xff"', b'"\xc3"', b"[1]\xff", "[1]".encode("utf-16"),
           b'"' + b"x" * 65_535 + b'"', b'{"a":' * 17 + b"1" + b"}" * 17]
    bad = [text.encode() if isinstance(text, str) else text for text in bad]
    value = plugin_json.strict_json(good[2])
    raised = [salt.raises(setitem, held, word, 1) for held in (value, value[word])]
    return {
        "good": [thaw(plugin_json.strict_json(data)) if len(data) < 999 else
                 code(plugin_json.strict_json, data) for data in salt.shuffled(good)],
        "bad": codes(salt, plugin_json.strict_json, bad),
        "code": codes(salt, partial(plugin_json.strict_json, code=word.upper()), bad),
        "depth": [code(plugin_json.strict_json, nested(levels, '"[["'), max_depth=deep)
                  for levels in (0, 1, deep - 1, deep, deep + 1)] + [deep],
        "size": [code(plugin_json.strict_json, f'"{"x" * (length - 2)}"'.encode(), max_bytes=size)
                 for length in (2, size - 1, size, size + 1)] + [size],
        "bytes, not characters": code(plugin_json.strict_json, f'"{"審" * 10}"'.encode(),
                                      max_bytes=31),
        "frozen": [raised, thaw(value)],
    }


def probe_32_1_entries(salt):
    """An entry whose text leads elsewhere is refused before a line of the plugin has run."""
    shelf = Shelf(salt)
    folder, module = salt.words(2)
    written(shelf.folder, {f"{folder}/{module}.py": shelf.module, f"{module}.txt": shelf.module,
                           f"{folder}.d/{module}.py": shelf.module, f"{module}": shelf.module})
    (shelf.folder / "folder.py").mkdir()
    texts = ["../outside.py", f"{folder}/../../outside.py", f"{folder}/../tool.py", "./tool.py",
             f"{folder}//{module}.py", "..\\outside.py", f"{folder}\\{module}.py", "C:\\outside.py",
             "C:tool.py", "c:/outside.py", str(salt.folder / "outside.py"), "/tool.py", "tool",
             str(shelf.folder / "tool.py"), "//host/share/tool.py", "\\\\host\\share\\tool.py",
             f"https://{module}.org/tool.py", "file:tool.py", "data:,1.py", "node:fs", module,
             "tool.py\0", "tool.py\n", " tool.py", "tool.py ", "", ".py", ".", "..", "folder.py",
             f"{module}.py", f"{folder}/tool.py", "Tool.py", "TOOL.PY", "tool.PY", "tool.pyc",
             f"{module}.txt", "~/tool.py", "tool.py/", "%74ool.py", "tооl.py",
             f"{folder}.d/{module}.py",
             "tool-1.py", "1tool.py", "tool.so", "tool.py::x", "$HOME/tool.py", "x" * 198 + ".py"]
    seen = []
    for text in salt.shuffled(texts):
        shelf.say(declared("inspect", text))
        seen.append(shelf.refused())
    second = []
    for order in (1, -1):
        shelf.say(*[declared(module), declared(folder, "../outside.py")][::order])
        second.append(shelf.refused())
    shelf.say(declared(module, f"{folder}/{module}.py"))
    return [seen, second, shown(shelf.load().manifest), shelf.ran.exists()]


def probe_32_1_links(salt):
    """An entry is a plain file of the plugin in truth, over no link at any level."""
    shelf = Shelf(salt)
    folder, module = salt.words(2)
    written(shelf.folder, {f"{folder}/deep/{module}.py": shelf.module, f"{module}2.py": ""})
    for link, target in (
        ("out.py", shelf.root / "outside.py"), ("absolute.py", salt.folder / "outside.py"),
        ("inside.py", shelf.folder / "tool.py"), ("up", shelf.root), ("self", "."),
        ("loop.py", "loop.py"), ("nothing.py", salt.word()), ("sideways", folder),
        (f"{folder}/link.py", "../tool.py"), (f"{folder}/back", "deep"), ("relative.py", "tool.py"),
    ):
        (shelf.folder / link).symlink_to(target)
    os.link(shelf.folder / f"{module}2.py", shelf.folder / "second.py")
    (shelf.folder / f"{folder}/folder.py").mkdir()
    seen = []
    for entry in salt.shuffled((
        "out.py", "absolute.py", "inside.py", "up/outside.py", f"up/{shelf.name}/tool.py",
        "self/tool.py", "loop.py", "nothing.py", f"sideways/deep/{module}.py", f"{folder}/link.py",
        f"{folder}/back/{module}.py", "relative.py", "second.py", f"{module}2.py",
        f"{folder}/folder.py", f"tool.py/{module}.py",
    )):
        shelf.say(declared("inspect", entry))
        seen.append(shelf.refused())
    shelf.say(declared(module, f"{folder}/deep/{module}.py"), declared(folder, "tool.py"))
    return [seen, shown(shelf.load().manifest), shelf.ran.exists()]


def probe_32_1_places(salt):
    """A plugin is a real folder below the root under its own name, with a plain plugin.json."""
    shelf = Shelf(salt)
    shelf.say()
    data = (shelf.folder / "plugin.json").read_bytes()
    others = [f"{word}-x" for word in salt.words(7)]
    linked, outside, empty, file, sent, hard, wrong = others
    (shelf.root / linked).symlink_to(shelf.name)
    written(salt.folder / "away", {"plugin.json": claim_bytes(outside), "tool.py": shelf.module})
    (shelf.root / outside).symlink_to(salt.folder / "away")
    (shelf.root / empty).mkdir()
    written(shelf.root, {file: data, f"{hard}/plugin.json": claim_bytes(hard), "spare.json": data,
                         f"{hard}/tool.py": "", f"{wrong}/plugin.json": data,
                         f"{wrong}/tool.py": ""})
    os.link(shelf.root / hard / "plugin.json", salt.folder / "twin.json")
    (shelf.root / sent).mkdir()
    (shelf.root / sent / "plugin.json").symlink_to("../spare.json")
    alias = salt.folder / salt.word()
    alias.symlink_to(shelf.root, target_is_directory=True)
    names = ["", ".", "..", f"../{shelf.root.name}/{shelf.name}", str(shelf.folder), "/",
             f"{shelf.name}/", f"./{shelf.name}", shelf.name.title(), f"{shelf.name}\0",
             f"{empty}/../{shelf.name}", f"{shelf.name}\n", "x" * 65, "a_b", "a--b", "a\\b", "é"]
    found = [shelf.load(root=root) for root in (shelf.root, alias)]
    no_names = [shelf.folder, 7, [shelf.name], shelf.name.encode(), True]
    sizes = []
    for size in (65_536, 65_537, 200_000):
        shelf.put(data + b" " * (size - len(data)))
        sizes.append(code(shelf.load))
    return {
        "loaded": [[shown(one.manifest), one.manifest_sha256 == sha256(data),
                    os.path.realpath(one.folder) == os.path.realpath(shelf.folder)]
                   for one in found],
        "names": [shelf.refused(name=name) for name in salt.shuffled(names)],
        "no text": codes(salt, partial(shelf.load, root=shelf.root), no_names),
        "places": [shelf.refused(name=name) for name in salt.shuffled([*others, salt.word()])],
        "no root": shelf.refused(root=salt.folder / salt.word()),
        "sizes": sizes,
    }


def claim_bytes(name):
    return json.dumps(claim(name)).encode()


def probe_32_1_parser(salt):
    """The bytes of plugin.json go to the parser that was given, and what it says counts."""
    from pi_course import plugin_folder
    from pi_course.errors import CourseError

    shelf = Shelf(salt)
    text = f"{salt.word()} is no JSON"
    shelf.put(text.encode())
    seen = []

    def reading(manifest, data):
        seen.append(data.decode())
        if isinstance(manifest, str):
            raise CourseError(manifest, "said the parser")
        return manifest

    good = parse(claim(shelf.name, version=spelled(salt, VERSIONS)[1]))
    made = (good, replace(good, name=salt.word()), salt.word().upper(),
            parse(claim(shelf.name, declared("x", f"{salt.word()}.py"))))
    results = [code(plugin_folder.load_plugin, shelf.root, shelf.name, parse=partial(reading, one))
               for one in made]
    loaded = plugin_folder.load_plugin(shelf.root, shelf.name, parse=partial(reading, good))
    before = len(seen)
    refused = code(plugin_folder.load_plugin, shelf.root, f"../{shelf.name}",
                   parse=partial(reading, good))
    return [results, sorted(set(seen)) == [text], shown(loaded.manifest), text,
            loaded.manifest_sha256 == sha256(text.encode()), refused, len(seen) == before]


def probe_32_1_files(salt):
    """A file that is read is regular, has one name, is behind no link, and is not too large."""
    from pi_course import plugin_folder

    text = salt.word().encode() + b"\r\n\0\xff"
    place = written(salt.folder / "place", {"plain": text, "first": text, "empty": b""})
    os.link(place / "first", place / "second")
    (place / "link").symlink_to("plain")
    (place / "nothing").symlink_to("missing")
    (place / "folder").mkdir()
    read = plugin_folder.read_plain_file
    cases = [place / name for name in ("first", "second", "link", "nothing", "folder",
                                       "missing", "plain/below")]
    size = len(text)
    return {
        "read": [read(place / "plain", most).decode("latin-1") for most in (size, size + 1, 99)],
        "empty": read(place / "empty", 0).decode(),
        "refused": codes(salt, lambda path: read(path, 99), [*cases, Path("/dev/zero")]),
        "too large": [code(read, place / "plain", most) for most in (size - 1, 1, 0)],
        "whole": size,
    }


def probe_32_1_pipes(salt):
    """What never ends is not waited for: a pipe is no manifest, no entry and no plain file."""
    from pi_course import plugin_folder

    shelf = Shelf(salt)
    folder = salt.word()
    names = [f"{word}.py" for word in salt.words(3)]
    (shelf.folder / folder).mkdir()
    pipes = [shelf.folder / names[0], shelf.folder / folder / names[1]]
    for pipe in pipes:
        os.mkfifo(pipe)
    with Freed(*pipes, shelf.folder / "plugin.json") as freed:
        seen = [freed.asked(code, plugin_folder.read_plain_file, pipes[0], 99)]
        for entry in salt.shuffled(("tool.py", names[0], f"{folder}/{names[1]}", names[2])):
            shelf.say(declared(salt.word(), entry))
            seen.append(freed.asked(shelf.refused))
        shelf.say(declared(salt.word()))
        seen.append(shown(shelf.load().manifest))
        (shelf.folder / "plugin.json").unlink()
        os.mkfifo(shelf.folder / "plugin.json")
        seen.append(freed.asked(shelf.refused))
    return [seen, freed.waited]


def probe_32_1_copy(salt):
    """What was verified cannot be changed, by no caller and by no later file."""
    shelf = Shelf(salt)
    shelf.say(declared("one", permissions=["read"]), permissions=["write", "read"])
    plugin = shelf.load()
    before = shown(plugin.manifest)
    for meddle in (
        lambda held: held.append("network"), lambda held: held.clear(), lambda held: held.reverse(),
        lambda held: held.__setitem__(0, "network"),
    ):
        for held in (plugin.manifest.permissions, plugin.manifest.tools,
                     plugin.manifest.tools[0].permissions if plugin.manifest.tools else ()):
            with contextlib.suppress(Exception):
                meddle(held)
    for owner, name in ((plugin.manifest, "permissions"), (plugin.manifest, "version"),
                        (plugin.manifest, "tools"), (plugin, "manifest"),
                        *((tool, "permissions") for tool in plugin.manifest.tools)):
        with contextlib.suppress(Exception):
            setattr(owner, name, ("network",))
    shelf.say(declared("two"), version="9.9.9")
    return [before, shown(plugin.manifest) == before, shown(shelf.load().manifest),
            shelf.ran.exists()]


# Lab 32.2


def ladder(salt):
    """Versions from the oldest to the newest, by the rules and not by any key."""
    major, minor = salt.number(2, 9), salt.number(2, 9)
    first, second = sorted(salt.words(2))
    small, large = salt.number(2, 9), salt.number(10, 99)
    base = f"{major}.{minor}.0"
    ends = ["0", small, f"{small}.0", large, f"{large}.{first}", "-", first.upper(), first,
            f"{first}.{small}", f"{first}.{small}.0", f"{first}.{large}", f"{first}.{first}",
            f"{first}.{first}.0", f"{first}{small}", second, f"{second}.{2 ** 70}",
            f"{second}.{2 ** 70 + 1}"]
    return [f"{major - 1}.99.99", f"{major}.{minor - 1}.{large}",
            *(f"{base}-{end}" for end in ends), base,
            f"{major}.{minor}.{small}", f"{major}.{minor}.{large}",
            f"{major}.{minor + 1}.0-{first}", f"{major}.{minor + 9}.0", f"{major + 9}.0.0-0",
            f"{major + 9}.0.0"]


def probe_32_2_order(salt):
    """Of any two versions the older one is found."""
    from pi_course import plugin_versions

    pairs = salt.shuffled(itertools.product(ladder(salt), repeat=2))
    return [[left, right, salt.plain(plugin_versions.compare_versions(left, right))]
            for left, right in pairs]


def probe_32_2_builds(salt):
    """Build metadata decides nothing."""
    from pi_course import plugin_versions

    builds = ["", *(f"+{word}" for word in salt.words(2)), f"+{salt.number(1, 9)}", "+001.-", "+zz"]
    older, newer = f"{salt.number(1, 9)}.2.3-{salt.word()}", f"{salt.number(10, 99)}.0.0"
    return [[left, right, salt.plain(plugin_versions.compare_versions(left, right))]
            for one, other in itertools.product((older, newer), repeat=2)
            for left, right in salt.shuffled(
                (one + a, other + b) for a, b in itertools.product(builds, repeat=2))]


def probe_32_2_exact(salt):
    """What is no version has no rank, on either side."""
    from pi_course import plugin_versions

    good, bad = spelled(salt, VERSIONS), spelled(salt, NO_VERSIONS)
    bad += ["1" * 9_000 + ".0.0", f"1.0.0-{'z' * 251}"]
    compare = plugin_versions.compare_versions
    return {
        "good": [salt.plain(compare(text, text)) for text in [*good, "9" * 90 + ".0.0"]],
        "left": [[text[:40], code(compare, text, good[1])] for text in salt.shuffled(bad)],
        "right": codes(salt, lambda text: compare(good[1], text), bad),
        "both": codes(salt, lambda text: compare(text, text), bad),
    }


def hosts_in(salt, ranges, hosts):
    """Which host each range accepts."""
    from pi_course import plugin_versions

    return [[minimum, below, host, code(plugin_versions.check_host,
                                        plugin_versions.ApiRange(minimum, below), host)]
            for minimum, below in ranges for host in salt.shuffled(hosts)]


def probe_32_2_hosts(salt):
    """The lower end belongs to the range, the upper end does not; without a range nothing does."""
    from pi_course import plugin_versions

    major, minor, patch = salt.number(2, 8), salt.number(9, 11), salt.number(2, 9)
    minimum, below = f"{major}.{minor}.{patch}", f"{major + 1}.{minor}.0"
    hosts = [minimum, f"{minimum}+{salt.word()}", f"{major}.{minor}.{patch + 10}", below,
             f"{major}.{minor + 90}.0", f"{major}.{minor}.{patch - 1}", f"{major - 1}.99.99",
             f"{major + 1}.{minor - 1}.99", f"{below}+{salt.word()}", f"{major + 1}.{minor}.1",
             f"{major + 10}.0.0", f"0.{minor}.{patch}", f"{major}.{minor - 1}.{patch + 20}"]
    ranges = [(minimum, below), (minimum, minimum), (below, minimum),
              (minimum, f"{minimum}+{salt.word()}"), (minimum, f"{major}.{minor}.{patch + 1}"),
              (f"{minimum}+{salt.word()}", f"{below}+{salt.word()}"), ("0.0.0", minimum)]
    return [hosts_in(salt, ranges, hosts),
            [code(plugin_versions.check_host, None, host) for host in salt.shuffled(hosts)]]


def probe_32_2_candidates(salt):
    """A prerelease of the upper end is not below it; one of the lower end is older than it."""
    major, word = salt.number(2, 99), salt.word()
    minimum, below = f"{major}.4.0", f"{major + 1}.0.0"
    ranges = [(minimum, below), (f"{minimum}-{word}", below),
              (f"{below}-{word}.3", f"{major + 2}.0.0"),
              (minimum, f"{below}-{word}"), (f"{minimum}-{word}.3", f"{minimum}-{word}.9")]
    hosts = [f"{text}{end}" for text in (minimum, below, f"{major}.5.0", f"{major + 1}.0.1")
             for end in ("", "-0", f"-{word}", f"-{word}.2", f"-{word}.10", f"-{word}+{word}")]
    return hosts_in(salt, ranges, hosts)


def probe_32_2_schema(salt):
    """The schemaVersion chooses the parser before anything else is judged."""
    from pi_course import plugin_versions
    from pi_course.errors import CourseError

    known = sorted({1, salt.number(2, 5), salt.number(6, 9)})
    unknown = [number for number in range(-2, 12) if number not in known]
    word, seen = salt.word(), []

    def parser(number):
        def made(data):
            seen.append([number, data.decode()])
            if word in data.decode():
                raise CourseError(word.upper(), "said the parser")
            return f"read by {number}"
        return made

    parsers = {number: parser(number) for number in salt.shuffled(known)}
    right = [f'{{"schemaVersion": {number}, "more": {more}}}' for number in known
             for more in (salt.number(10, 99), f'{{"schemaVersion": {unknown[0]}}}')]
    read = [plugin_versions.read_manifest(text.encode(), parsers) for text in salt.shuffled(right)]
    said = code(plugin_versions.read_manifest, f'{{"schemaVersion": 1, "a": "{word}"}}'.encode(),
                parsers)
    handed = len(seen)
    wrong = [*map(str, unknown), "true", "false", "1.0", "1e0", '"1"', "null", "[1]", '{"1": 1}',
             f"{known[-1]}.0", str(2 ** 70), f'"{word}"', "-1", "1.5"]
    documents = [f'{{"mustSandbox": true, "schemaVersion": {number}}}' for number in wrong]
    documents += ["{}", f'{{"version": 1, "{word}": 1}}', '{"schemaversion": 1}']
    broken = ["[]", "1", "null", '"1"', "{", "", '{"schemaVersion": 1, "schemaVersion": 1}',
              '{"schemaVersion": 1, "a": NaN}', f'{{"schemaVersion": 1, "{word}": 1, "{word}": 2}}',
              f'[{{"schemaVersion": 1, "a": "{word}"}}]', "[" * 3_000]
    broken = [*(text.encode() for text in broken), b"\xff", b'{"schemaVersion": 1, "a": "\xff"}']
    return {
        "read": read, "handed over": seen[:handed], "parser's word": said,
        "unknown": codes(salt, lambda text: plugin_versions.read_manifest(text.encode(), parsers),
                         documents),
        "none": code(plugin_versions.read_manifest, b'{"schemaVersion": 1}', {}),
        "broken": codes(salt, lambda data: plugin_versions.read_manifest(data, parsers), broken),
        "handed over in the end": len(seen) == handed,
    }


# Lab 32.3


def digest_by_the_text(files):
    """The digest of a tree, made here from what the chapter says about it."""
    parts = [part for path in sorted(files, key=lambda path: path.encode())
             for part in (path.encode(), files[path])]
    lengths = [len(part).to_bytes(8, "big") + part for part in parts]
    return f"sha256:{sha256(b'pi-course plugin tree 1' + bytes(1) + b''.join(lengths))}"


def tree_of(salt, count=6):
    """Files in folders; the first is a manifest."""
    files = {"plugin.json": json.dumps({salt.word(): salt.number(0, 99)}).encode()}
    for word in salt.words(count):
        folder = salt.choice(["", "", "tools/", "docs/deep/"])
        suffix = salt.choice([".py", ".txt", ".md", "", ".json"])
        files[f"{folder}{word}{suffix}"] = f"# {salt.word()} é審\r\n".encode()
    return files


def probe_32_3_digest(salt):
    """The digest is that of the text: domain, paths and bytes in order, each with its length."""
    from pi_course import plugin_content

    word, other = salt.words(2)
    data = [salt.word().encode() * size for size in (0, 1, 50, 70_000)] + [bytes(range(256))]
    names = [f"{word}{end}" for end in ("", "/a", ".a", "-a", "0", "_a", "/a/b", "Z", "é")]
    names += [word.upper(), f"\uffff{other}", f"😀{other}", "plugin.json", "plugin.sig"]
    trees = [{}, {word: b""}, {name: salt.choice(data) for name in names}, tree_of(salt),
             {"plugin.json": data[2]}, {f"{number}/{word}": data[1] for number in range(120)}]
    seen = []
    for tree in trees:
        digests = [plugin_content.tree_digest(dict(salt.shuffled(tree.items()))) for _ in range(3)]
        seen.append([digests[0], len(set(digests)), digests[0] == digest_by_the_text(tree)])
    return seen


def probe_32_3_changes(salt):
    """Any change of a path, of a byte or of where one ends is another digest."""
    from pi_course import plugin_content

    tree = tree_of(salt)
    manifest, path, *_ = tree
    word, rest = salt.word(), {name: data for name, data in tree.items() if name != path}
    data = tree[path]
    other = next(name for name in tree if name not in (manifest, path))
    changed = [
        tree, rest, rest | {word: data}, rest | {f"{path}x": data}, rest | {f"x/{path}": data},
        tree | {path: data + b"\0"}, tree | {path: data[:-1]}, tree | {path: b""},
        tree | {path: data.replace(b"\r\n", b"\n")}, tree | {word: b""},
               tree | {f"{path}/{word}": b""},
        tree | {path: tree[other], other: data + b"!"}, rest | {path.upper(): data},
        tree | {manifest: tree[manifest] + b" "}, {manifest: tree[manifest]}, {},
        rest | {path + data.decode(): b""}, rest | {path[:-1]: path[-1:].encode() + data},
        {"".join(tree): b"".join(tree.values())},
    ]
    digests = [plugin_content.tree_digest(one) for one in salt.shuffled(changed)]
    return [digests, len(set(digests)) == len(changed)]


def probe_32_3_content(salt):
    """A content is every file as it was read, and stays so; its signature is beside it."""
    from pi_course import plugin_content

    tree = tree_of(salt) | {f"tools/{salt.word()}.py": b"\xef\xbb\xbf# mark",
                            "docs/plugin.sig": b"!",
                            f"{salt.word()}.sig": b"", "_x/Makefile": b"all:\r\n\tx\n"}
    folder = written(salt.folder / salt.word(), tree)
    first = plugin_content.read_content(folder)
    envelope = salt.word().encode()
    written(folder, {"plugin.sig": envelope})
    signed = plugin_content.read_content(folder)
    moved = written(salt.folder / salt.word(), dict(salt.shuffled(tree.items())))
    (moved / "plugin.json").chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IXUSR)
    os.utime(moved / "plugin.json", (1, 1))
    copied = plugin_content.read_content(moved)
    path = salt.choice(sorted(tree))
    written(folder, {path: b"import payload\n", f"{salt.word()}.py": b""})
    later = plugin_content.read_content(folder)
    meddled = [salt.raises(setitem, held.files, path, b"") for held in (first, signed)]

    def plain(content):
        return {name: base64.b64encode(data).decode() for name,
                data in sorted(content.files.items())}

    return {
        "files": plain(first), "as written": dict(first.files) == tree,
        "after changes": [plain(one) == plain(first) for one in (signed, copied)],
        "signatures": [one.signature and one.signature.decode() for one in (first, signed, later)],
        "digests": [first.digest == digest_by_the_text(tree), signed.digest == first.digest,
                    copied.digest == first.digest, later.digest == first.digest],
        "digest": first.digest, "refuses changes": meddled,
    }


class Tree:
    """A sound folder, to which one doubtful thing after the other is added."""

    def __init__(self, salt):
        self.salt = salt
        self.folder = written(salt.folder / salt.word(), tree_of(salt) | {
            "tools/inspect.py": b"x = 1\n", "docs/deep/note.txt": b""})

    def refused(self, add, path, named=True):
        """The code while `add` has made something at `path`, and whether only that is shown."""
        from pi_course import plugin_content

        extra = self.folder / path
        add(extra)
        try:
            found, message = refusal(plugin_content.read_content, self.folder)
        finally:
            extra.unlink() if not extra.is_dir() or extra.is_symlink() else extra.rmdir()
        return [found, *([path in message] if named else []), str(self.salt.folder) in message]

    def sound(self):
        from pi_course import plugin_content

        return code(plugin_content.read_content, self.folder)


def probe_32_3_links(salt):
    """Links of both kinds and special files are refused at every level."""
    tree = Tree(salt)
    outside = written(salt.folder / "outside", {"a.txt": b""})
    inner = tree.folder / "tools"
    targets = [tree.folder / "tools/inspect.py", inner, outside, outside / "a.txt",
               Path("inspect.py"),
               salt.folder / "missing", Path(), None]
    seen = []
    for place, target in salt.shuffled(itertools.product(("", "tools/", "docs/deep/"), targets)):
        name = f"{place}{salt.word()}{salt.choice(['', '.py', '.txt'])}"
        seen.append(tree.refused(
            lambda path, to=target: path.symlink_to(to) if to else path.write_bytes(b""), name))
    for place in salt.shuffled(("", "tools/", "docs/deep/")):
        name = f"{place}{salt.word()}.txt"
        for first in (outside / "a.txt", inner / "inspect.py"):
            seen.append(tree.refused(lambda path, of=first: os.link(of, path), name, named=False))
    return [seen, tree.sound()]


def probe_32_3_pipes(salt):
    """A pipe among the files is refused at every level, and nobody waits for it."""
    tree = Tree(salt)
    files = [(f"{place}{salt.word()}{end}", make) for place in ("", "tools/", "docs/deep/")
             for end, make in ((".txt", os.mkfifo), (".py", os.mkfifo), (".md", Path.touch))]
    with Freed(*(tree.folder / path for path, make in files if make is os.mkfifo)) as freed:
        seen = [freed.asked(tree.refused, make, path) for path, make in salt.shuffled(files)]
    return [seen, freed.waited, tree.sound()]


def probe_32_3_kinds(salt):
    """Bytecode, native code and whatever is no text is refused and not skipped."""
    tree = Tree(salt)
    a, b, c = salt.words(3)
    text = [f"{a}.pyc", f"tools/{a}.pyo", f"{a}.PYC", f"{b}.so",
            f"{b}.cpython-311-x86_64-linux-gnu.so",
            f"docs/deep/{b}.dylib", f"{b}.pyd", f"tools/{c}.dll", f"{c}.pth", f"{c}.zip",
            f"{a}.whl",
            f"{a}.egg", f"{a}.tar.gz", f"{b}.sh", f"{b}.js", f"{c}.py.bak", f"{c}.toml", f"{a}.pyx"]
    binary = [b"\x7fELF\x02\x01\x01\0", b"text\0", b"\0", b"\xff\xfe", b"\xcb\x0d\x0d\x0a", b"\xc3",
              b"PK\x03\x04\x80", "é".encode("latin-1"), b"\xed\xa0\x80"]
    files = [(path, salt.word().encode()) for path in text]
    files += [(f"{salt.choice(['', 'tools/', 'docs/deep/'])}{salt.word()}{end}", data)
              for data in binary for end in (salt.choice([".txt", ".md", ".json"]), ".py", "")]
    files += [("plugin.sig", b"\xff\0"), ("docs/plugin.sig", b"\0")]
    files += [(f"{word}{end}", b"text\r\n") for word, end in zip(
        salt.words(7), ("", ".py", ".md", ".txt", ".json", ".sig", ".more.txt"), strict=True)]
    seen = [tree.refused(lambda path, of=data: path.write_bytes(of), path)
            for path, data in salt.shuffled(files)]
    for place in ("", "tools/", "docs/deep/"):
        cache = tree.folder / f"{place}__pycache__"
        cache.mkdir()
        for name in (f"{a}.cpython-311.pyc", f"{b}.txt"):
            seen.append(tree.refused(lambda path: path.write_bytes(b""),
                                     f"{place}__pycache__/{name}", named=False))
        cache.rmdir()
    return [seen, tree.sound()]


def probe_32_3_names(salt):
    """A name that two systems read differently is refused."""
    tree = Tree(salt)
    word = salt.word()
    names = [".env", f".{word}", f"{word} {word}.txt", f"{word}é.txt", "con.txt", "NUL", "aux.py",
             "com1.txt", "lpt9", f"{word}\\a.txt", f"{word}:a.txt", f"{word}.", f"-{word}",
             f"{word}~",
             f"{word}*.txt", f"{word}?.txt", f"{word}\n.txt", "prn.json", f"..{word}.txt",
             f"审{word}.txt",
             f"{word}\u202e.txt", f"{word}%.txt", f"{word},txt", ".gitignore", f"{word} .txt",
             f"{word}.txt", f"_{word}-.txt", f"9{word}.a.txt", f"{word}".upper(), "console.txt"]
    seen = [tree.refused(lambda path: path.write_bytes(b"text"), f"{place}{name}", named=False)
            for place, name in salt.shuffled(
                (salt.choice(["", "tools/", "docs/deep/"]), name) for name in names)]
    twins = []
    for path in salt.shuffled(("PLUGIN.JSON", "Plugin.json", "tools/INSPECT.py",
                               "docs/deep/Note.txt",
                               "Tools/a.txt")):
        (tree.folder / path).parent.mkdir(exist_ok=True)
        twins.append(tree.refused(lambda one: one.write_bytes(b"text"), path, named=False))
        with contextlib.suppress(OSError):
            (tree.folder / path).parent.rmdir()
    hidden = []
    for folder in salt.shuffled((f".{word}", "__pycache__", f"{word}.", "nul", f"{word}+{word}")):
        (tree.folder / folder).mkdir()
        hidden.append(tree.refused(lambda path: path.write_bytes(b"text"), f"{folder}/a.txt",
                                   named=False))
        (tree.folder / folder).rmdir()
    return [seen, twins, hidden, tree.sound()]


def probe_32_3_limits(salt):
    """A plugin beyond its limits is refused: files, bytes of one, bytes of all, depth."""
    from pi_course import plugin_content

    count, size, deep = salt.number(3, 9), salt.number(20, 60), salt.number(3, 5)
    names = salt.words(count)
    tree = {f"{salt.choice(['', 'a/', 'b/'])}{name}.txt": b"x" * salt.number(0, size - 1)
            for name in names[1:]} | {f"{names[0]}.txt": ("é" * size).encode()[:size * 2]}
    folder = written(salt.folder / "plugin", tree)
    largest, total = max(map(len, tree.values())), sum(map(len, tree.values()))

    def limited(where=folder, **limits):
        return code(plugin_content.read_content, where, plugin_content.ContentLimits(**limits))

    nested = written(salt.folder / "nested", {"/".join([*"abcdefghi"[:deep], "x.txt"]): b""})
    many = written(salt.folder / "many", {f"f{number}": b"" for number in range(200)})
    whole = code(plugin_content.read_content, many)
    written(many, {"one_more": b""})
    return {
        "files": [limited(files=limit) for limit in (count + 1, count, count - 1, 1)],
        "one": [limited(file_bytes=limit) for limit in (largest + 1, largest, largest - 1, 0)],
        "all": [limited(total_bytes=limit) for limit in (total + 1, total, total - 1, largest)],
        "depth": [limited(nested, depth=limit) for limit in (deep + 1, deep - 1, 0)],
        "usual": [whole, code(plugin_content.read_content, many)],
        "sizes": [count, largest, total, deep],
    }


def probe_32_3_entries(salt):
    """Every entry is a file of the content, with the hash that its tool declares."""
    from pi_course import plugin_content
    from pi_course.plugin_manifest import ToolDeclaration

    files = {f"{salt.choice(['', 'tools/'])}{word}.py": word.encode() for word in salt.words(4)}
    content = plugin_content.Content(dict(files), digest_by_the_text(files))
    paths = list(files)

    def check(*tools):
        made = [ToolDeclaration(f"t{number}", entry, ("read",), digest)
                for number, (entry, digest) in enumerate(tools)]
        return code(plugin_content.check_entries, salt.choice([made, tuple(made)]), content)

    right = [(path, sha256(data)) for path, data in files.items()]
    swapped = (paths[0], right[1][1])
    missing = (f"{salt.word()}.py", None)
    cases = [[], right, right[::-1], [(path, None) for path in paths], [swapped], [*right, swapped],
             [swapped, *right[1:]], [missing], [*right, missing], [missing, *right],
             [(missing[0], right[0][1])], [(paths[0], "0" * 64)], [(paths[0].upper(), None)],
             [(f"./{paths[0]}", None)], [("", None)], [(paths[0], sha256(b""))],
             [(paths[0], None), (paths[1], right[0][1])], [(paths[0], None)] * 3]
    return [check(*case) for case in salt.shuffled(cases)]


def probe_32_3_lock(salt):
    """The lock names one version, one content and one host, and anything else is a decision."""
    from pi_course import plugin_lock

    names, digests = salt.words(3), [digest_by_the_text({word: b""}) for word in salt.words(3)]
    minor = salt.number(9, 98)
    lock = {name: plugin_lock.LockEntry(f"1.{minor}.0", digest, f"2.{minor}.0")
            for name, digest in zip(names, digests, strict=True)}
    entry = lock[names[0]]
    changes = [{}, {"digest": digests[1]}, {"digest": entry.digest.upper()}, {"digest": ""},
               {"version": f"1.{minor + 1}.0"}, {"version": f"1.{minor - 1}.0"},
               {"version": f"1.{minor}.0+{names[0]}"}, {"version": f"1.{minor}.0-{names[0]}"},
               {"version": "1.100.0"}, {"version": "*"}, {"runtime_api": f"2.{minor + 1}.0"},
               {"runtime_api": f"2.{minor}.0-{names[1]}"}, {"runtime_api": ""},
               {"version": "0.0.1", "digest": digests[1]},
               {"runtime_api": "3.0.0", "digest": digests[1]},
               {"version": "9.0.0", "digest": digests[1], "runtime_api": "3.0.0"}]
    asked = [(name, replace(entry, **change)) for name in (names[0], names[1], salt.word())
             for change in changes]
    return [[code(plugin_lock.check_lock, lock, name, found) for name,
             found in salt.shuffled(asked)],
            code(plugin_lock.check_lock, {}, names[0], entry)]


def probe_32_3_lock_file(salt):
    """A lock file is the same for the same lock, and nothing else is taken for one."""
    from pi_course import plugin_lock

    def plain(lock):
        return {name: [one.version, one.digest, one.runtime_api] for name, one in lock.items()}

    lock = {f"{word}-x": plugin_lock.LockEntry(
        f"1.{salt.number(0, 99)}.0", digest_by_the_text({word: b""}), f"2.{salt.number(0, 99)}.1")
        for word in salt.words(4)}
    orders = [plugin_lock.format_lock(dict(order))
              for order in (lock.items(), sorted(lock.items()), salt.shuffled(lock.items()))]
    written_once = json.dumps(json.loads(orders[0]), sort_keys=True, ensure_ascii=False,
                              separators=(",", ":")).encode()
    one = next(iter(lock.values()))
    document = json.loads(plugin_lock.format_lock({"a": one}))
    broken = [b"[]", b"1", b"null", b"", b"{", b"\xff", b'{"demo": {}}', b'{"demo": 1}',
              b'{"demo": []}', b'{"demo": null}', b'{"demo": {}, "demo": {}}', orders[0] + b"}",
              orders[0][:-1], json.dumps([document]).encode(), orders[0].replace(b'"', b"'"),
              orders[0] * 2]

    def altered(text, change):
        """The lock file after a change of the field that holds this text."""
        copy = json.loads(json.dumps(document))
        pending = [copy]
        while pending:
            found = pending.pop()
            for key in [key for key, value in found.items() if value == text]:
                change(found, key)
            pending += [inner for inner in found.values() if isinstance(inner, dict)]
        return json.dumps(copy).encode()

    for text in (one.version, one.digest, one.runtime_api):
        broken += [altered(text, lambda found, key, value=value: found.update({key: value}))
                   for value in (None, 7, [], {}, True)]
        broken.append(altered(text, lambda found, key: found.pop(key)))
        broken.append(altered(text, lambda found, key: found.update({salt.word(): "1"})))
    return {
        "back": plain(plugin_lock.parse_lock(orders[0])), "whole": plain(lock),
        "one way": [len(set(orders)), orders[0] == written_once],
        "empty": plain(plugin_lock.parse_lock(plugin_lock.format_lock({}))),
        "broken": codes(salt, plugin_lock.parse_lock, broken),
    }


# Lab 32.4


class Owner:
    """A host's owner with a publisher's key, and a stranger with another one."""

    def __init__(self, salt):
        from pi_course import plugin_signature

        self.made = plugin_signature
        self.salt = salt
        self.key, self.strange = (hashlib.sha256(salt.word().encode()).digest() for _ in range(2))
        self.name, self.publisher, self.key_id = f"{salt.word()}-x", salt.word(), f"{salt.word()}-1"
        self.version = f"1.{salt.number(2, 9)}.{salt.number(2, 9)}"
        self.release = plugin_signature.Statement(
            self.name, self.version, sha256(salt.word().encode()),
                                                  digest_by_the_text({salt.word(): b""}))

    def trusted(self, *names, key=None, **more):
        public = self.made.public_key_of(key or self.key)
        return self.made.TrustedKey(self.publisher, public, frozenset(names or (self.name,)),
                                    **more)

    def policy(self, keys=None, revoked=(), local=()):
        keys = {self.key_id: self.trusted()} if keys is None else keys
        return self.made.TrustPolicy(keys, frozenset(revoked), frozenset(local))

    def signed(self, release=None, key_id=None, key=None):
        return self.made.sign(release or self.release, self.key_id if key_id is None else key_id,
                              key or self.key)

    def verdict(self, envelope, policy=None, release=None, now_ms=0, **more):
        """Why the release is accepted, or the code with which it is not."""
        try:
            trust = self.made.verify(release or self.release, envelope, policy or self.policy(),
                                     now_ms=now_ms, **more)
        except Exception as error:
            return salt_code(error)
        return [trust.kind, trust.publisher, trust.key_id]


def salt_code(error):
    """The code of a CourseError, the type of another one."""
    return getattr(error, "code", None) or {"raised": type(error).__name__}


def enveloped(raw, key_id, **more):
    """An envelope made by hand around the raw bytes of a signature."""
    text = base64.b64encode(raw).decode()
    return json.dumps({"keyId": key_id, "signature": text} | more, sort_keys=True,
                      separators=(",", ":")).encode()


def probe_32_4_message(salt):
    """What is signed is the domain and one object of five texts, in one way of writing."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    owner = Owner(salt)
    odd = replace(owner.release, name=f'"{salt.word()}"\\ é審', version="\u2028")
    seen = []
    for release, key_id in ((owner.release, owner.key_id), (odd, f"é/{salt.word()}"), (odd, "")):
        message = owner.made.signed_message(release, key_id)
        envelope = owner.made.sign(release, key_id, owner.key)
        raw = Ed25519PrivateKey.from_private_bytes(owner.key).sign(message)
        seen.append([message.decode("latin-1"), envelope.decode(),
                     json.loads(envelope) == json.loads(enveloped(raw, key_id))])
    return seen


def probe_32_4_trust(salt):
    """A signature by a key of the policy is accepted, and the policy says whose it is."""
    owner = Owner(salt)
    ids, names = [f"{word}-2" for word in salt.words(3)], [f"{word}-x" for word in salt.words(2)]
    keys = {ids[0]: owner.trusted(owner.name, *names), ids[1]: owner.trusted(names[0]),
            owner.key_id: owner.made.TrustedKey(
                salt.word(), owner.made.public_key_of(owner.strange), frozenset({owner.name}))}
    policy = owner.policy(keys)
    seen = []
    for name, key_id, key in salt.shuffled(itertools.product(
            (owner.name, *names), (*ids, owner.key_id), (owner.key, owner.strange))):
        release = replace(owner.release, name=name)
        seen.append(owner.verdict(owner.signed(release, key_id, key), policy, release))
    return seen


def probe_32_4_parts(salt):
    """Name, version, manifest, tree and key id are all under the signature."""
    owner = Owner(salt)
    other = Owner(salt)
    wide = owner.trusted(owner.name, other.name)
    policy = owner.policy({owner.key_id: wide, other.key_id: wide, "": wide})
    envelope = owner.signed()
    fields = ("name", "version", "manifest", "tree")
    seen = [owner.verdict(envelope, policy, replace(owner.release, **{field: value}))
            for field in salt.shuffled(fields)
            for value in salt.shuffled((getattr(owner.release, field),
                                        getattr(other.release, field), ""))]
    renamed = [json.dumps(json.loads(envelope) | {"keyId": key_id}).encode()
               for key_id in salt.shuffled((owner.key_id.upper(), other.key_id, ""))]
    raw = base64.b64decode(json.loads(envelope)["signature"])
    bit = salt.number(0, 511)
    flipped = bytearray(raw)
    flipped[bit // 8] ^= 1 << bit % 8
    return [seen, [owner.verdict(one, policy) for one in renamed], bit,
            owner.verdict(enveloped(bytes(flipped), owner.key_id), policy),
            owner.verdict(other.signed(), policy),
            owner.verdict(other.signed(key=owner.key), policy)]


def probe_32_4_purpose(salt):
    """A signature that was made for something else does not fit."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    owner = Owner(salt)
    private = Ed25519PrivateKey.from_private_bytes(owner.key)
    release = owner.release
    fields = {"keyId": owner.key_id, "manifest": release.manifest, "name": release.name,
              "tree": release.tree, "version": release.version}
    words = json.dumps(fields, separators=(",", ":")).encode()
    domain = b"pi-course plugin release 1" + bytes(1)
    messages = [domain + words, words, domain[:-1] + words, domain + json.dumps(fields).encode(),
                b"pi-course plugin release 2" + bytes(1) + words,
                salt.word().encode() + b"\0" + words,
                domain + words + b"\n", release.tree.encode(), domain + release.tree.encode(),
                bytes.fromhex(release.manifest), domain, b"",
                hashlib.sha256(domain + words).digest(),
                domain.upper() + words, words + domain]
    return [owner.verdict(enveloped(private.sign(message), owner.key_id))
            for message in salt.shuffled(messages)]


def probe_32_4_keys(salt):
    """Keys come from the policy; nobody vouches for himself."""
    owner = Owner(salt)
    stranger = base64.b64encode(owner.made.public_key_of(owner.strange)).decode()
    forged = json.loads(owner.signed(key=owner.strange))
    envelopes = [owner.signed(key_id=one, key=owner.strange)
                 for one in (owner.key_id, salt.word(), "", owner.publisher, owner.name)]
    envelopes += [json.dumps(forged | {more: stranger}).encode()
                  for more in ("publicKey", "key", "public_key", "publisher")]
    envelopes += [owner.signed(key_id=salt.word()), owner.signed(key_id=owner.key_id.upper()),
                  enveloped(base64.b64decode(forged["signature"]), stranger), owner.signed()]
    foreign = replace(owner.release, name=salt.word())
    prefix = replace(owner.release, name=owner.name[:-1])
    return {
        "own words": [owner.verdict(envelope) for envelope in salt.shuffled(envelopes)],
        "other plugins": [owner.verdict(owner.signed(release), None, release)
                          for release in (foreign, prefix)],
        "nobody trusted": [owner.verdict(owner.signed(), owner.policy({})),
                           owner.verdict(owner.signed(), owner.made.TrustPolicy())],
        "another's key": owner.verdict(owner.signed(), owner.policy(
            {owner.key_id: owner.trusted(key=owner.strange)})),
        "for nothing": owner.verdict(owner.signed(), owner.policy({owner.key_id: replace(
            owner.trusted(), plugins=frozenset())})),
        "right": owner.verdict(owner.signed()),
    }


def probe_32_4_unsigned(salt):
    """Without a signature only a named plugin passes; a broken one is never none."""
    owner = Owner(salt)
    other = replace(owner.release, name=salt.word())
    policies = [owner.policy(), owner.policy(local=[owner.name]),
                owner.policy({}, local=[owner.name]),
                owner.policy(local=[salt.word(), owner.name]),
                owner.policy(local=[owner.name[:-1]]),
                owner.policy(local=[""]), owner.policy(local=["*"]), owner.made.TrustPolicy()]
    right = json.loads(owner.signed())
    text = right["signature"]
    raw = base64.b64decode(text)
    broken = [b"", b"{}", b"null", b"[]", b"\xff", b" ", owner.signed()[:-1], owner.signed() + b"}",
              owner.signed(key=owner.strange), b" " * 2_000, owner.signed() + b" " * 2_000,
              owner.signed()[:-1] + b',"keyId":"' + owner.key_id.encode() + b'"}',
              json.dumps([right]).encode(), json.dumps(right | {"more": 1}).encode(),
              json.dumps({"keyId": owner.key_id}).encode(),
              json.dumps({"signature": text}).encode(),
              json.dumps({"keyid": owner.key_id, "signature": text}).encode(),
              enveloped(raw[:-1], owner.key_id), enveloped(raw + b"\0", owner.key_id),
              enveloped(b"", owner.key_id), enveloped(bytes(64), owner.key_id)]
    broken += [json.dumps(right | {"keyId": value}).encode() for value in (None, 1, [], True,
        "\u20ac")]
    broken += [json.dumps(right | {"signature": value}).encode() for value in (
        "", "A" * 88, text[:-4], text + "\n", f" {text}", f"{text[:9]}!{text[9:]}", 1, None, [text],
        raw.hex(), "審" * 88, f"{text}AAAA", text.lower(), text.rstrip("="),
            f"{text[:44]}\n{text[44:]}")]
    return {
        "none": [[owner.verdict(None, policy), owner.verdict(None, policy, other),
                  owner.verdict(owner.signed(), policy)] for policy in salt.shuffled(policies)],
        "broken": [owner.verdict(envelope, owner.policy(local=[owner.name]))
                   for envelope in salt.shuffled(broken)],
    }


def probe_32_4_ends(salt):
    """A key ends at its time; a key or a content ends at once when it is revoked."""
    owner = Owner(salt)
    end = salt.number(1_000, 10**12)
    keys = {owner.key_id: owner.trusted(not_after_ms=end), f"{owner.key_id}0": owner.trusted()}
    seen = [owner.verdict(owner.signed(key_id=key_id), owner.policy(keys), now_ms=now)
            for now in salt.shuffled((0, end - 1, end, end + 1, end * 2)) for key_id in keys]
    never = [owner.verdict(owner.signed(), owner.policy(
        {owner.key_id: owner.trusted(not_after_ms=0)}), now_ms=now) for now in (0, 1)]
    revoked = [[], [owner.key_id], [owner.release.tree], [owner.key_id, owner.release.tree],
               [salt.word(), owner.key_id], [owner.publisher], [owner.name], [owner.version],
               [owner.release.tree.removeprefix("sha256:")], [owner.key_id.upper()],
               [f"{owner.key_id}0"]]
    local = {"keys": {}, "local": [owner.name]}
    return [seen, never, end] + [
        [owner.verdict(owner.signed(), owner.policy(revoked=some)),
         owner.verdict(None, owner.policy(revoked=some,
                                          **local))] for some in salt.shuffled(revoked)]


def probe_32_4_rollback(salt):
    """A release that is older than the admitted one is refused, however it is signed."""
    owner = Owner(salt)
    steps = ladder(salt)
    number = salt.number(8, len(steps) - 8)
    release = replace(owner.release, version=steps[number])
    policy = owner.policy(local=[owner.name])
    installed = [None, *steps, f"{steps[number]}+{salt.word()}"]
    seen = [[one, owner.verdict(envelope, policy, release, installed=one)]
            for one in salt.shuffled(installed) for envelope in (owner.signed(release), None)]
    built = replace(release, version=f"{steps[number]}+1")
    return [steps[number], seen,
            owner.verdict(owner.signed(built), policy, built, installed=f"{steps[number]}+2")]


def probe_32_4_precedence(salt):
    """The signature is judged first, then the key's time, then revocation, then rollback."""
    owner = Owner(salt)
    end = salt.number(1, 10**9)
    keys = {owner.key_id: owner.trusted(not_after_ms=end)}
    seen = []
    for bad, late, gone, old in salt.shuffled(itertools.product((False, True), repeat=4)):
        policy = owner.policy(keys, revoked=[salt.choice([owner.key_id,
        owner.release.tree])] * gone)
        seen.append([bad, late, gone, old, owner.verdict(
            owner.signed(key=owner.strange if bad else None), policy, now_ms=end + late,
            installed="99.0.0" if old else "0.0.1")])
    return seen


# Lab 32.5

STUB = r"""
import json, os, sys, time
script = json.loads(sys.argv[1])
alive = os.open(script["alive"], os.O_WRONLY)
os.write(alive, b"x")
pending = b""
def more():
    global pending
    part = os.read(0, 65536)
    pending += part
    return part
def line():
    global pending
    while b"\n" not in pending:
        if not more():
            os._exit(0)
    first, _, pending = pending.partition(b"\n")
    return json.loads(first)
def note(**fields):
    with open(script["log"], "a") as log:
        log.write(json.dumps(fields) + "\n")
def say(message):
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(1, data):]
def wait():
    while not os.path.exists(script["go"]):
        time.sleep(0.002)
line()
say(script["ready"])
while True:
    call = line()
    if call["type"] != "call":
        note(type=call["type"])
        if script.get("deaf"):
            time.sleep(script["late_s"])
        say({"type": "disposed"})
        os._exit(0)
    head = {"type": "result", "id": call["id"], "ok": True}
    given = call["arguments"]
    do = given["do"]
    if do == "turns":
        time.sleep(0.01)
        os.set_blocking(0, False)
        try:
            while more():
                pass
        except BlockingIOError:
            pass
        os.set_blocking(0, True)
    note(type="call", id=call["id"], tool=call["tool"], given=given, alone=pending == b"")
    if do == "child" and os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(script["hold_s"])
        os._exit(0)
    if do == "late":
        time.sleep(script["late_s"])
    if do == "wait":
        wait()
    if do == "hang":
        time.sleep(script["hold_s"])
    if do == "exit":
        os._exit(given["status"])
    if do == "flood":
        os.write(1, b"x" * given["size"])
        time.sleep(script["hold_s"])
    if do == "junk":
        say(given["line"])
    elif do == "broken":
        os.write(1, given["text"].encode() + b"\n")
    elif do == "other":
        say({**head, "id": given["id"], "value": "other"})
    else:
        say({**head, "value": given["value"]})
"""


class Watch:
    """A pipe that a process and its children hold open, and what a stub wrote down."""

    def __init__(self, salt):
        self.salt = salt
        self.place = salt.folder / salt.word()
        self.place.mkdir()
        self.alive, self.log, self.go = (self.place / name for name in ("alive", "log", "go"))
        os.mkfifo(self.alive)
        self.pipe = os.open(self.alive, os.O_RDONLY | os.O_NONBLOCK)
        self.began = False

    async def there(self):
        """Return when a process has opened the pipe."""
        while not self.began:
            with contextlib.suppress(BlockingIOError):
                self.began = bool(os.read(self.pipe, 4_096))
            await asyncio.sleep(0.002)

    async def gone(self):
        """Whether a process was there and nobody holds the pipe any more."""
        in_vain = getattr(self.salt, "waited_in_vain", False)
        for _ in range(9 if in_vain else int(GONE_S / 0.005)):
            try:
                while os.read(self.pipe, 4_096):
                    self.began = True
                return self.began
            except BlockingIOError:
                self.began = True
                await asyncio.sleep(0.005)
        self.salt.waited_in_vain = True
        return False

    def lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if \
            self.log.exists() else []

    async def until(self, count, task):
        """Return when the stub has written so many lines, or the task will not ask for more."""
        while len(self.lines()) < count and not task.done():
            await asyncio.sleep(0.003)


def scripted(ready, watch, **more):
    """The command of a stub that shakes hands and then does as it is told."""
    script = {"ready": ready, "alive": str(watch.alive), "log": str(watch.log), "go": str(watch.go),
              "hold_s": HOLD_S, "late_s": LATE_S} | more
    return [sys.executable, "-I", "-S", "-c", STUB, json.dumps(script)]


def shell(text, watch):
    """The command of a shell that holds the pipe of the watch and runs the text."""
    return ["/bin/sh", "-c", f"exec 9>'{watch.alive}'; echo x >&9; {text}"]


def saying(message):
    """Shell: print this as a line of JSON."""
    return "printf '%s\\n' '" + json.dumps(message).replace("'", "") + "'"


def described(tool, **changes):
    """What a worker says of a tool."""
    return {"name": tool.name, "description": f"About {tool.name}.",
            "permissions": list(tool.permissions), "inputSchema": {"type": "object"}} | changes


class Verified:
    """A plugin of which everything is proved, as a host holds it; its files are on no disk."""

    def __init__(self, salt, *permissions):
        from pi_course import plugin_content, plugin_loader, plugin_signature

        sets = permissions or (("read",),)
        self.declared = [one for one in FOUR if any(one in some for some in sets)]
        names = salt.words(len(sets))
        document = claim(f"{salt.word()}-x", *(
            declared(name, f"{name}.py", some) for name, some in zip(names, sets, strict=True)),
            permissions=self.declared)
        files = {"plugin.json": as_bytes(document)} | {f"{name}.py": b"" for name in names}
        self.digest = digest_by_the_text(files)
        self.tools = parse(document).tools
        self.plugin = plugin_loader.VerifiedPlugin(
            parse(document), plugin_content.Content(files, self.digest),
            plugin_signature.Trust("unsigned-local"), f"1.{salt.number(0, 9)}.0")

    def ready(self, *tools, **changes):
        return {"type": "ready", "protocol": 1, "digest": self.digest,
                "tools": [described(tool) for tool in tools or self.tools]} | changes

    def grant(self, *permissions, digest=None):
        from pi_course import plugin_loader

        return plugin_loader.Grant(digest or self.digest, frozenset(permissions or self.declared))

    async def spawn(self, command, seen=None, grant=None, workspace=None, **limits):
        """A worker that `command` is started for; `seen` gets what the launch was told."""
        from pi_course import plugin_worker

        def launch(argv, **where):
            if seen is not None:
                seen.append({"argv": list(argv), **where})
            return command

        return await plugin_worker.spawn_worker(
            self.plugin, grant or self.grant(), workspace=workspace, launch=launch,
            limits=plugin_worker.WorkerLimits(**{"handshake_s": LONG_S, "call_s": LONG_S} | limits))


async def outcome(work):
    """What a call returns: content and details; the code, or what else it raised."""
    from pi_course.errors import CourseError
    from pi_course.values import thaw

    try:
        output = await work
    except CourseError as error:
        return error.code
    except (Exception, asyncio.CancelledError) as error:
        return {"raised": type(error).__name__}
    return output and [output.content, output.is_error, thaw(output.details)]


async def at_once(work):
    """The outcome of what a right program never waits for, and the wrong one not for long."""
    try:
        return await asyncio.wait_for(outcome(work), 0.4)
    except TimeoutError:
        return "late"


async def spawned(work):
    """The code with which no worker comes to be; one that does is disposed."""
    from pi_course.errors import CourseError

    try:
        worker = await work
    except CourseError as error:
        return error.code
    except Exception as error:
        return {"raised": type(error).__name__}
    await worker.dispose()
    return "started"


MODULE = """
import os, sys
from .{sibling} import PRAISE
from .lib.deep import WORD

definition = {{
    "name": {name!r},
    "description": {description!r},
    "permissions": {permissions!r},
    "inputSchema": {{"type": "object", "properties": {{"word": {{"type": "string"}}}}}},
}}


def limits():
    import resource

    names = ("AS", "NOFILE", "FSIZE", "CPU")
    return {{name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))[0] for name in names}}


def execute(arguments, context):
    word = arguments["word"]
    print("noise on stdout")
    if word == "raise":
        raise ValueError("/secret/path")
    if word == "system":
        return {{"content": word, "details": {{
            "environment": sorted(os.environ), "limits": limits(), "isolated": sys.flags.isolated,
            "here": os.path.realpath(".") == context.scratch,
            "session": os.getsid(0) == os.getpid(),
            "permissions": sorted(context.permissions), "workspace": context.workspace,
            "on a path": any(os.path.exists(os.path.join(place, "tool.py")) for place in sys.path),
        }}}}
    return PRAISE + WORD + word
"""


class Desk:
    """A plugin on a disk, with everything that a host needs to admit and to start it."""

    def __init__(self, salt, **changes):
        self.shelf = Shelf(salt)
        self.salt = salt
        self.tool, self.sibling, self.praise, self.deep = salt.words(4)
        self.ways = {"version": f"1.{salt.number(2, 9)}.{salt.number(2, 9)}", "schemaVersion": 1,
                     "runtimeApiRange": {"minimum": "1.4.0", "below": "2.0.0"}} | changes
        self.write()

    def write(self, praise=None, **changes):
        """The folder with these modules and this manifest."""
        module = MODULE.format(name=self.tool, sibling=self.sibling, description=self.praise,
                               permissions=["read"])
        written(self.shelf.folder, {
            "tool.py": self.shelf.module * ("quiet" not in changes) + module,
            f"{self.sibling}.py": f"PRAISE = {(praise or self.praise) + ' '!r}\n",
            "lib/deep.py": f"WORD = {self.deep + ' '!r}\n"})
        changes.pop("quiet", None)
        self.shelf.say(declared(self.tool), **self.ways | changes)

    def admit(self, **terms):
        from pi_course import plugin_loader, plugin_signature

        local = plugin_signature.TrustPolicy(unsigned_local=frozenset({self.shelf.name}))
        usual = {"runtime_api": "1.5.0", "policy": local, "lock": None, "now_ms": 0}
        return plugin_loader.admit_plugin(self.shelf.root, self.shelf.name, **usual | terms)

    def refused(self, **terms):
        found, message = refusal(self.admit, **terms)
        return [found, self.shelf.ran.exists(), str(self.salt.folder) in message]


def probe_32_5_admission(salt):
    """Host, content, publisher and lock are proved before a line of the plugin runs."""
    from pi_course import plugin_signature

    desk = Desk(salt)
    name = desk.shelf.name
    plugin = desk.admit()
    lock = {name: plugin.lock_entry}

    def locked(**changes):
        return {"lock": {name: replace(plugin.lock_entry, **changes)}}

    terms = [{}, {"lock": lock}, {"lock": {}}, {"lock": {salt.word(): plugin.lock_entry}},
             locked(digest=digest_by_the_text({})), locked(version="0.9.0"),
             locked(version="1.99.0"),
             locked(version=f"{plugin.manifest.version}+1"), locked(runtime_api="1.4.0"),
             {"runtime_api": "2.0.0-rc.1"}, {"runtime_api": "1.3.9"}, {"runtime_api": "2.0.0"},
             {"policy": plugin_signature.TrustPolicy()}, {"runtime_api": "1.4.0", "lock": lock},
             {"policy": plugin_signature.TrustPolicy(unsigned_local=frozenset({salt.word()}))},
             {"policy": plugin_signature.TrustPolicy(
                 revoked=frozenset({plugin.content.digest}), unsigned_local=frozenset({name}))}]
    seen = [desk.refused(**one) for one in salt.shuffled(terms)]
    changed = []
    for document in salt.shuffled((
        {"schemaVersion": 2, "sandbox": "required"}, {"permissions": ["write"]}, {"more": 1},
        {"runtimeApiRange": {"minimum": "2.0.0", "below": "3.0.0"}}, {"name": salt.word()},
        {"tools": [declared("a", sha256="0" * 64)]}, {"tools": [declared("a"), declared("a")]},
        {"tools": [declared("a", "../outside.py")]}, {"version": "latest"}, {},
    )):
        desk.write(**document)
        changed.append(desk.refused())
    for left in ("schemaVersion", "runtimeApiRange"):
        desk.write()
        desk.shelf.put({key: value for key, value in json.loads(
            (desk.shelf.folder / "plugin.json").read_bytes()).items() if key != left})
        changed.append(desk.refused())
    desk.write()
    for path in (f"{salt.word()}.pyc", "lib/.env", f"{salt.word()}.so"):
        written(desk.shelf.folder, {path: b""})
        changed.append(desk.refused(lock=lock))
        (desk.shelf.folder / path).unlink()
    entry = plugin.lock_entry
    return {"terms": seen, "folder": changed, "lock": [
        entry.version, entry.digest == digest_by_the_text(plugin.content.files), entry.runtime_api],
        "same": desk.admit(lock=lock) == plugin, "trust": plugin.trust.kind,
            "after": desk.refused()}


def probe_32_5_release(salt):
    """A signed release is admitted as it was signed, and by nobody's key but the policy's."""
    owner = Owner(salt)
    owner.version = f"1.{salt.number(2, 9)}.0"
    desk = Desk(salt, version=owner.version)
    owner.name = desk.shelf.name
    policy = owner.policy({owner.key_id: owner.trusted(not_after_ms=salt.number(10, 99))})
    folder = desk.shelf.folder

    def release():
        data = (folder / "plugin.json").read_bytes()
        files = {path.relative_to(folder).as_posix(): path.read_bytes()
                 for path in folder.rglob("*") if path.is_file() and path.name != "plugin.sig"}
        return owner.made.Statement(owner.name, owner.version, sha256(data),
                                    digest_by_the_text(files))

    def verdict(envelope=None, **terms):
        written(folder, {"plugin.sig": envelope or owner.signed(release())})
        found, ran, shows = desk.refused(policy=policy, **terms)
        return [found, ran, shows]

    seen = [verdict(), verdict(now_ms=5), verdict(now_ms=1_000)]
    right = owner.signed(release())
    trust = desk.admit(policy=policy).trust
    public = base64.b64encode(owner.made.public_key_of(owner.strange))
    for files in salt.shuffled(({f"{desk.sibling}.py": b"PRAISE = ''\n"},
                                {f"{salt.word()}.txt": b""},
                                {"key.txt": public}, {"tool.py": b"#"})):
        written(folder, files)
        seen.append(verdict(right))
        seen.append(verdict(owner.signed(release(), key=owner.strange)))
        seen.append(verdict())
    other = replace(release(), name=salt.word())
    seen += [verdict(owner.signed(other)), verdict(owner.signed(key_id=salt.word())),
             verdict(b"{}"),
             verdict(owner.signed(replace(release(), version="9.9.9")))]
    seen.append(verdict())
    entry = replace(desk.admit(policy=policy).lock_entry, version=f"1.{salt.number(20, 99)}.0")
    return [seen, [trust.kind, trust.publisher, trust.key_id], verdict(lock={owner.name: entry})]


def probe_32_5_swap(salt):
    """Verified bytes stay what they were; a manifest that changes in between is refused."""
    from pi_course import plugin_loader, plugin_protocol
    from pi_course.values import thaw

    desk = Desk(salt)
    desk.write(quiet=True)
    plugin = desk.admit()
    before = {path: base64.b64encode(data).decode() for path, data in plugin.content.files.items()}
    desk.write(praise="swapped", version="9.9.9")
    (desk.shelf.folder / "lib/deep.py").unlink()
    workspace = salt.folder / salt.word()
    hello = thaw(plugin_protocol.hello_message(plugin, plugin.manifest.tools, ["read"], workspace))
    after = {path: base64.b64encode(data).decode() for path, data in plugin.content.files.items()}
    desk.write()
    read_it = plugin_loader.PARSERS[1]
    manifest = desk.shelf.folder / "plugin.json"

    def swapping(data):
        found = read_it(data)
        manifest.write_bytes(data + salt.choice([b" ", b"\n"]))
        return found

    held = plugin_loader.PARSERS
    if type(held) is dict:
        held[1] = swapping
    else:
        plugin_loader.PARSERS = {1: swapping}
    try:
        swapped = desk.refused()
    finally:
        plugin_loader.PARSERS = held
        if type(held) is dict:
            held[1] = read_it
    return [before, after == before, hello["files"] == before, hello["entries"],
            shown(plugin.manifest), swapped, desk.refused()]


def probe_32_5_handshake(salt):
    """What a worker says first is compared word for word with the manifest."""
    from pi_course import plugin_protocol
    from pi_course.values import deep_freeze, thaw

    sets = [salt.shuffled(some) for some in (("read",), ("network", "read"), ("execute", "write"),
                                             FOUR)]
    made = Verified(salt, *salt.shuffled(sets))
    ready, first = made.ready(), made.tools[0]
    schema = {"type": "object", "properties": {salt.word(): {"type": "string", "maxLength": 9}}}

    def check(message, tools=made.tools):
        return plugin_protocol.check_ready(deep_freeze(message), made.digest, tools)

    def with_first(**changes):
        return made.ready() | {"tools": [described(first, **changes), *ready["tools"][1:]]}

    def without(key):
        return {"tools": [{name: value for name, value in ready["tools"][0].items() if name != key},
                          *ready["tools"][1:]]}

    def specs(found):
        return [[spec.name, spec.description, spec.permission,
                 thaw(spec.input_schema)] for spec in found]

    turned = with_first(permissions=list(first.permissions)[::-1], inputSchema=schema,
                        description="é" * 1_000)
    secret = mark(salt)
    wrong = [ready | {"digest": digest_by_the_text({})}, ready | {"digest": made.digest[7:]},
             ready | {"digest": None}, ready | {"protocol": 2}, ready | {"protocol": True},
             ready | {"protocol": "1"}, ready | {"type": "result"},
             ready | {"type": "refused", "error": secret}, ready | {secret: 1}, None, [], 7,
             "ready",
             {"type": "refused", "error": secret}, [ready], {}, ready | {"tools": []},
             ready | {"tools": ready["tools"][::-1]}, ready | {"tools": ready["tools"][:-1]},
             ready | {"tools": ready["tools"] * 2},
             ready | {"tools": {first.name: ready["tools"][0]}},
             ready | {"tools": None}, ready | {"tools": [first.name] * len(made.tools)},
             ready | {"tools": [None] * len(made.tools)}]
    wrong += [{key: value for key, value in ready.items() if key != left} for left in ready]
    wrong += [ready | without(key) for key in ready["tools"][0]]
    wrong += [with_first(**{key: value}) for key, value in (
        ("name", secret), ("name", None), ("name", first.name.upper()),
        ("name", made.tools[1].name),
        ("permissions", []), ("permissions", "read"), ("permissions", None),
        ("permissions", [secret]), ("description", ""),
        ("description", None), ("description", "x" * 1_001), ("description", ["x"]),
        ("entry", "tool.py"),
        ("inputSchema", {"type": "array"}), ("inputSchema", None),
        ("inputSchema", {"type": secret}),
        ("inputSchema", schema | {"$ref": f"https://{secret}.org"}), ("inputSchema", []),
        ("more", 1))]
    wrong += [with_first(permissions=[one for one in FOUR if one in some]) for some in
              itertools.combinations(FOUR, 2) if sorted(some) != sorted(first.permissions)]
    refused = [refusal(check, message) for message in salt.shuffled([*wrong, ready])]
    return {
        "right": [specs(check(ready)), specs(check(turned)),
                  specs(check(made.ready(*made.tools[1:]), made.tools[1:]))],
        "wrong": [[found, secret in message] for found, message in refused],
    }


def probe_32_5_answers(salt):
    """Only a result with the id of the call and a value of the agreed shape is its answer."""
    from pi_course import plugin_protocol
    from pi_course.values import deep_freeze, thaw

    request, word, secret = f"call-{salt.number(2, 99)}", salt.word(), mark(salt)
    right = {"type": "result", "id": request, "ok": True, "value": word}

    def read(message):
        return plugin_protocol.read_answer(deep_freeze(message), request)

    def told(message):
        output = read(message)
        return [output.content, output.is_error, thaw(output.details)]

    def both(content, details):
        return right | {"value": {"content": content, "details": details}}

    good = [right, right | {"value": ""}, right | {"value": f"é審\n{word}"}, both(word, None),
            both(word, [1, {"a": word}]), both("", {}), both(word, word)]
    failed = [read(right | {"ok": False, "value": value})
              for value in (secret, f"/home/{secret}", None, {"content": secret, "details": secret},
                            7)]
    wrong = [right | {"id": f"call-{salt.number(100, 999)}"}, right | {"id": request.upper()},
             right | {"id": None}, right | {"id": 7}, right | {"id": ""}, right | {"type": "call"},
             right | {"type": "ready"}, right | {"ok": 1}, right | {"ok": None},
             right | {"ok": "true"},
             right | {"more": 1}, right | {"value": 7}, right | {"value": None},
             right | {"value": True},
             right | {"value": [word]}, right | {"value": {}}, right | {"value": {"content": word}},
             right | {"value": {"details": 1}}, both(7, 1), both(None, 1), both([word], 1),
             right | {"value": {"content": word, "details": 1, "more": 1}}, [], None, 7, "",
             [right], {},
             right | {"ok": False, "id": "call-1"}, right | {"ok": False, "more": 1},
             {"type": "refused", "error": word}]
    wrong += [{key: value for key, value in right.items() if key != left}
              for left in ("type", "id", "ok", "value")]
    return {
        "good": [told(message) for message in salt.shuffled(good)],
        "failed": [[one.is_error, thaw(one.details), secret in str(one.content)] for one in failed],
        "wrong": codes(salt, read, [*wrong, right, right]),
    }


def probe_32_5_lines(salt):
    """A line goes out, the next line comes back as strict JSON, within its size."""
    from pi_course import plugin_process
    from pi_course.errors import CourseError
    from pi_course.values import thaw

    most = salt.number(900, 2_000)
    word = salt.word()
    messages = [{word: 1}, {"é審": [None, True, word]}, {word: "x\n\r\u2028"},
                {word: "y" * (most // 2)}]
    deep = [("[" * levels + "]" * levels) for levels in (10, 64, 65, 300)]
    lines = [f'{{"{word}": 1, "{word}": 2}}', "NaN", "[1e999]", "junk", "", "[1] 2", '"\\ud800"',
             *deep,
             f'"{word}"', "1", "null"]
    wrong = [f"head -c {most * 3} /dev/zero | tr '\\0' x; sleep {HOLD_S}",
             f"head -c {most * 90} /dev/zero | tr '\\0' x; echo",
             "printf '[1'", ":", "exit 3", "kill -9 $$", "printf '\\377\\n'",
             "printf '\\357\\273\\277[1]\\n'"]

    async def asked(text, message, seconds=LONG_S):
        process = await plugin_process.WorkerProcess.start(
            lambda _: ["/bin/sh", "-c", text], line_bytes=most, stderr_bytes=10)
        try:
            answer = thaw(await process.exchange(message, seconds))
            return answer if not isinstance(answer, list) else "a list"
        except CourseError as error:
            return error.code
        finally:
            await process.end()

    async def all_of_them():
        process = await plugin_process.WorkerProcess.start(
            lambda _: ["/bin/cat"], line_bytes=most, stderr_bytes=10)
        back = [thaw(await process.exchange(message, LONG_S)) for message in messages]
        await process.end()
        bad = []
        for text in salt.shuffled(lines):
            bad.append(await asked(f"read -r x; printf '%s\\n' '{text}'; sleep {HOLD_S}", {}))
        for text in salt.shuffled(wrong):
            bad.append(await asked(f"read -r x; {text}", {}))
        hold = "exec sleep" if salt.number(0, 1) else "sleep"
        silent = await asked(f"read -r x; sleep {LATE_S}; echo 1; {hold} {HOLD_S}", {}, SOON_S)
        unread = await asked(f"sleep {LATE_S}; exec cat", ["z" * 3_000_000], SOON_S)
        return [back == messages, back[:2], bad, silent, unread]

    return salt.run(all_of_them(), 60.0)


def probe_32_5_end(salt):
    """The end is the end: the process, its children, its folder; as often as one asks."""
    from pi_course import plugin_process
    from pi_course.errors import CourseError

    status = salt.number(1, 99)

    async def ended(text, ask=True, twice=False, cancel=False):
        watch = Watch(salt)
        told = []

        def command(scratch):
            told.append(scratch)
            return shell(text, watch)

        process = await plugin_process.WorkerProcess.start(command, line_bytes=999, stderr_bytes=9)
        was = [process.scratch.is_dir(), process.scratch == told[0], process.exit_code]
        (process.scratch / salt.word()).write_text("left behind")
        await watch.there()
        answer = None
        if ask:
            try:
                task = asyncio.ensure_future(process.exchange({}, LONG_S))
                if cancel:
                    while not (process.scratch / "on").exists():
                        await asyncio.sleep(0.002)
                    task.cancel()
                answer = await task
            except CourseError as error:
                answer = error.code
            except asyncio.CancelledError:
                answer = "cancelled"
        if answer == "WORKER_FAILED":
            with contextlib.suppress(ChildProcessError, AttributeError):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        await asyncio.gather(*[process.end() for _ in range(1 + twice)])
        await process.end()
        return [was, answer, process.exit_code, await watch.gone(), process.scratch.exists(),
                code(os.kill, process.pid, 0)]

    async def all_of_them():
        child = f"{BESIDE} & "
        return [
            await ended(f"sleep {HOLD_S}", ask=False),
            await ended(f"{child} read -r x; echo 7; wait", twice=True),
            await ended(f"trap '' TERM INT HUP; {child} (trap '' TERM HUP; {child} wait) & wait",
                        ask=False),
            await ended(f"{child} read -r x; exit {status}"),
            await ended(f"read -r x; exit {status}"),
            await ended(f"{child} read -r x; touch on; sleep {HOLD_S}", cancel=True),
        ]

    return [salt.run(all_of_them(), 60.0), status]


def probe_32_5_first_words(salt):
    """Who fails the handshake is ended, in time, and leaves nothing behind."""
    made = Verified(salt)
    ready = made.ready()
    secret = mark(salt)
    read = "IFS= read -r hello; "
    late = f"{read}sleep {LATE_S}; {saying(ready)}; exec cat"
    cases = [
        (f"{read}{saying(ready)}; exec cat >/dev/null", {}),
             (f"{read}echo {secret}; sleep {HOLD_S}", {}),
        (f"{read}{saying(ready | {'digest': secret})}; sleep {HOLD_S}", {}),
        (f"{read}{saying(ready | {'tools': []})}; sleep {HOLD_S} & wait", {}),
        (f"{read}{saying({'type': 'refused', 'error': secret})}; exit 1", {}),
        (f"{read}head -c 9999 /dev/zero | tr '\\0' x; sleep {HOLD_S}", {"line_bytes": 2_000}),
        (f"{read}exit 0", {}), ("exit 3", {}), (f"{read}printf '[1'", {}),
        (f"{read}{BESIDE} & exit 0", {}), (late, {"handshake_s": SOON_S}),
        (f"{BESIDE} & {late}", {"handshake_s": SOON_S}),
    ]

    async def all_of_them():
        seen = []
        for text, limits in salt.shuffled(cases):
            watch, told = Watch(salt), []
            found = await spawned(made.spawn(shell(text, watch), told, dispose_s=SOON_S, **limits))
            seen.append([found, await watch.gone(), told[0]["scratch"].exists()])
        told = []
        missing = await spawned(made.spawn([str(salt.folder / salt.word())], told))
        return [seen, missing, told[0]["scratch"].exists()]

    return salt.run(all_of_them(), 60.0)


def probe_32_5_grants(salt):
    """A grant is for one content and whole tools; nothing else is started or offered."""
    made = Verified(salt, ("read",), ("write", "read"), ("execute",), ("network", "read"))
    workspace = salt.folder / salt.word()
    workspace.mkdir()

    def log_hello(watch):
        return shell(f"IFS= read -r hello; printf '%s' \"$hello\" > '{watch.log}'; exit 0", watch)

    async def asked(grant):
        watch, told = Watch(salt), []
        found = await spawned(made.spawn(log_hello(watch), told, grant, workspace))
        hello = json.loads(watch.log.read_text()) if watch.log.exists() else {}
        offered = hello.get("entries", {})
        needed = {one for tool in made.tools if tool.name in offered for one in tool.permissions}
        where = [[fits(needed, one["permissions"], grant), one["workspace"] == workspace,
                  one["argv"][0] == sys.executable, {"-I", "-S", "-B"} <= set(one["argv"]),
                  any(word.endswith("plugin_worker_main.py") for word in one["argv"])]
                 for one in told]
        return [found, where, sorted(offered.items()),
                fits(needed, hello.get("permissions", []), grant),
                hello.get("runtimeApi"), hello.get("digest") == made.digest,
                sorted(hello.get("files", [])), hello.get("workspace") == str(workspace)]

    def fits(needed, given, grant):
        """What the offered tools need, and nothing that was not declared and approved."""
        return needed <= set(given) <= grant.permissions & set(made.declared)

    async def all_of_them():
        grants = [made.grant(*some) for some in (
            ("read",), ("read", "write"), ("write",), ("execute",), ("network", "execute"), FOUR,
            (salt.word(),), ("read", "network", salt.word()))]
        grants += [replace(made.grant(*FOUR), digest=digest) for digest in (
            digest_by_the_text({}), "", made.digest[:-1], made.digest[7:])]
        grants += [replace(made.grant(), permissions=frozenset())]
        return [await asked(grant) for grant in salt.shuffled(grants)]

    return salt.run(all_of_them(), 60.0)


def probe_32_5_worker(salt):
    """A real worker runs the verified bytes, with what was granted and nothing around it."""
    from pi_course import plugin_loader, plugin_sandbox, plugin_worker

    desk = Desk(salt)
    desk.write(quiet=True)
    plugin = desk.admit()
    desk.write(praise="swapped")
    written(desk.shelf.folder, {"lib/deep.py": b"WORD = 'swapped '\n"})
    workspace = salt.folder / salt.word()
    workspace.mkdir()
    limits = {"memory_bytes": salt.number(300, 500) << 20, "open_files": salt.number(30, 60),
              "file_bytes": salt.number(100_000, 900_000), "cpu_s": salt.number(2, 3)}
    words = [salt.word(), "raise", "system", salt.word()]
    secrets = {mark(salt).upper(): mark(salt), "PYTHONPATH": str(desk.shelf.folder)}

    async def talk():
        worker = await plugin_worker.spawn_worker(
            plugin, plugin_loader.Grant(plugin.content.digest, frozenset(FOUR)),
            workspace=workspace, launch=plugin_sandbox.plain,
            limits=plugin_worker.WorkerLimits(handshake_s=LONG_S, call_s=LONG_S, dispose_s=LONG_S,
                                              **limits))
        scratch = worker.process.scratch
        try:
            said = [await outcome(worker.call(desk.tool, {"word": word})) for word in words]
            unknown = await outcome(worker.call(salt.word(), {"word": "x"}))
            said += [unknown, await outcome(worker.call(desk.tool, {"word": "last"}))]
        finally:
            await worker.dispose()
        specs = [[spec.name, spec.description, spec.permission] for spec in worker.specs]
        return said, specs, scratch.exists()

    kept = {name: os.environ.get(name) for name in secrets}
    os.environ.update(secrets)
    try:
        said, specs, left = salt.run(talk(), 60.0)
    finally:
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    failed, system = said[1], said[2]
    details = system[2] if isinstance(system, list) else {}
    found = details.pop("environment", [])
    return {
        "said": [said[0], said[3], said[4], said[5]], "specs": specs, "left": left,
        "failed": [failed[1:], "secret" in failed[0]] if isinstance(failed, list) else failed,
        "environment": [name for name in found if name not in ("LC_CTYPE",
            "__CF_USER_TEXT_ENCODING")],
        "system": details | {"workspace": details.get("workspace") == str(workspace)},
        "limits": [limits[name] for name in ("memory_bytes", "open_files", "file_bytes", "cpu_s")],
        "in the host": desk.shelf.ran.exists(),
    }


def probe_32_5_calls(salt):
    """A call that goes wrong has its code, and is the end of the worker and of its children."""
    made = Verified(salt, ("read",), ("write",))
    word, status = salt.word(), salt.number(1, 99)
    line_bytes = salt.number(1_500, 4_000)
    right = {"type": "result", "id": "call-x", "ok": True, "value": word}
    cases = [
        ({"do": "late", "value": word}, {"call_s": SOON_S}),
             ({"do": "flood", "size": line_bytes * 4}, {}),
        ({"do": "exit", "status": status}, {}), ({"do": "broken", "text": word}, {}),
        ({"do": "other", "id": word}, {}), ({"do": "junk", "line": right}, {}),
        ({"do": "say", "value": salt.number(1, 9)}, {}),
             ({"do": "say", "value": "y" * line_bytes * 4}, {}),
    ]

    async def gone_wrong(given, limits):
        watch, told = Watch(salt), []
        worker = await made.spawn(scripted(made.ready(), watch), told, line_bytes=line_bytes,
                                  **limits)
        name = made.tools[0].name
        before = await outcome(worker.call(name, {"do": "child", "value": word}, signal=None)) \
            if "call_s" not in limits else None
        seen = [before, await outcome(worker.call(name, given)), await watch.gone(),
                told[0]["scratch"].exists(),
                await at_once(worker.call(name, {"do": "say", "value": word})),
                len(watch.lines())]
        await at_once(worker.dispose())
        await at_once(worker.dispose())
        return seen

    async def all_of_them():
        chosen = salt.shuffled(cases)
        return [await gone_wrong(*case) for case in chosen]

    return salt.run(all_of_them(), 60.0)


def probe_32_5_abort(salt):
    """Whoever stops waiting stops the code: by an abort, or by a cancellation."""
    from pi_course.signals import AbortSignal

    made = Verified(salt)
    word, name = salt.word(), made.tools[0].name

    async def stopped(how):
        watch, told = Watch(salt), []
        worker = await made.spawn(scripted(made.ready(), watch), told)
        signal = AbortSignal()
        before = await outcome(worker.call(name, {"do": "say", "value": word}, signal=signal))
        if how == "before":
            signal.abort()
        task = asyncio.ensure_future(worker.call(name, {"do": "hang"}, signal=signal))
        if how != "before":
            await watch.until(2, task)
            signal.abort() if how == "abort" else task.cancel()
        seen = [how, before, await outcome(task), await watch.gone(), told[0]["scratch"].exists(),
                await at_once(worker.call(name, {"do": "say", "value": word}))]
        await at_once(worker.dispose())
        return seen

    async def each():
        return [await stopped(how) for how in salt.shuffled(("abort", "cancel", "before"))]

    return salt.run(each(), 60.0)


def probe_32_5_turns(salt):
    """One call at a time, each under an id of its own, and the last one before the end."""
    made = Verified(salt, ("read",), ("write",))
    words = salt.words(4)
    names = [tool.name for tool in made.tools]

    async def talk():
        watch, told = Watch(salt), []
        worker = await made.spawn(scripted(made.ready(), watch), told, dispose_s=LONG_S)
        given = [{"do": "turns", "value": word, "n": [salt.number(0, 9), None]} for word in words]
        calls = [outcome(worker.call(salt.choice(names), one)) for one in given]
        answers = await asyncio.gather(*calls)
        last = asyncio.ensure_future(outcome(worker.call(names[0],
        {"do": "wait", "value": words[0]})))
        await watch.until(5, last)
        end = asyncio.ensure_future(worker.dispose())
        await asyncio.sleep(0.02)
        early = end.done()
        watch.go.touch()
        answers.append(await last)
        await end
        lines = watch.lines()
        await worker.dispose()
        calls = [line for line in lines if line["type"] == "call"]
        return [answers, early, [[line["tool"], line["given"], line["alone"]] for line in calls],
                len({json.dumps(line["id"]) for line in calls}), [line["type"] for line in lines],
                await watch.gone(), told[0]["scratch"].exists(),
                await outcome(worker.call(names[0], {"do": "say", "value": ""})),
                len(watch.lines())]

    async def deaf():
        watch, told = Watch(salt), []
        worker = await made.spawn(scripted(made.ready(), watch, deaf=True), told, dispose_s=SOON_S)
        await outcome(worker.call(names[1], {"do": "child", "value": words[1]}))
        await asyncio.gather(worker.dispose(), worker.dispose())
        return [await watch.gone(), told[0]["scratch"].exists(),
                [line["type"] for line in watch.lines()][:1]]

    async def all_of_them():
        return [await talk(), await deaf()]

    return salt.run(all_of_them(), 60.0)


class Closing:
    """A quarantine and its clock, and what it says of each content."""

    def __init__(self, salt, **policy):
        from pi_course import plugin_supervisor
        from pi_course.bench import FakeClock

        self.clock = FakeClock(salt.number(0, 10**6))
        self.held = plugin_supervisor.Quarantine(self.clock,
                                                 plugin_supervisor.CrashPolicy(**policy))

    def state(self, digest):
        return code(self.held.check, digest)

    def wait(self, digest, most):
        """How long until the content may be started again; -1 when no time opens it."""
        low, start = 0, self.clock.now_ms()
        while self.state(digest) != "done" and low <= most:
            self.clock.advance(1)
            low = self.clock.now_ms() - start
        return low if self.state(digest) == "done" else -1


def probe_32_5_quarantine(salt):
    """Each failure doubles the wait; too many in a row close the content for all but a person."""
    base, most = salt.number(5, 20), salt.number(4, 6)
    cap = base * 4 + salt.number(1, base)
    first, second = salt.words(2)
    closing = Closing(salt, failures=most, base_ms=base, cap_ms=cap)
    seen = [closing.state(first), closing.state(second)]
    for _ in range(most - 1):
        closing.held.failed(first)
        seen += [closing.state(first), closing.state(second), closing.wait(first, 9 * cap)]
    closing.held.succeeded(first)
    for number in range(most):
        closing.held.failed(first)
        seen.append(closing.wait(first, 9 * cap))
        if number == 0:
            closing.held.succeeded(second)
            closing.held.failed(second)
            seen.append(closing.wait(second, 9 * cap))
    seen.append(closing.state(first))
    for step in salt.shuffled(("time", "success", "failure")):
        if step == "time":
            closing.clock.advance(10**9)
        else:
            (closing.held.succeeded if step == "success" else closing.held.failed)(first)
        seen += [closing.state(first), closing.state(second)]
    closing.held.enable(first)
    seen.append(closing.state(first))
    closing.held.failed(first)
    seen.append(closing.wait(first, 9 * cap))
    closing.held.failed(second)
    closing.held.succeeded(second)
    seen.append(closing.state(second))
    twice = Closing(salt, failures=2, base_ms=base, cap_ms=cap)
    for digest in (first, second, first):
        twice.held.failed(digest)
    seen += [twice.state(first), twice.state(second)]
    return [seen, base, cap, most]


async def turns_until(holds):
    """Let the others have their turns until this holds; a wrong program may never come to it."""
    for _ in range(5_000):
        if holds():
            break
        await asyncio.sleep(0)


class Pretended:
    """Workers without processes, whose calls end as they are told to."""

    def __init__(self, salt, **policy):
        from pi_course import plugin_supervisor
        from pi_course.schema import ToolSpec
        from pi_course.signals import AbortSignal
        from pi_course.tools import ExecContext

        self.closing = Closing(salt, **policy)
        self.digest = digest_by_the_text({salt.word(): b""})
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        self.specs = tuple(ToolSpec(word, word, schema, "read") for word in salt.words(2))
        self.began = self.closing.clock.now_ms()
        self.starts, self.disposed, self.refusing = [], 0, ""
        self.context = ExecContext(self.closing.clock, AbortSignal())
        self.supervisor = plugin_supervisor.PluginSupervisor(self.digest, self.start,
            self.closing.held)
        self.arrived, self.released = 0, False

    async def start(self):
        from pi_course.errors import CourseError

        self.starts.append(self.closing.clock.now_ms() - self.began)
        await asyncio.sleep(0)
        if self.refusing:
            raise CourseError(self.refusing, "does not start")
        process = SimpleNamespace(ended=False, exit_code=None, pid=0, stderr=b"")

        async def call(tool, arguments, *, signal=None):
            from pi_course.tools import ToolOutput

            given = arguments["word"]
            self.arrived += 1
            await asyncio.sleep(0)
            await turns_until(lambda: self.arrived >= arguments.get("of", 0))
            if "of" in arguments and not given.isupper():
                await turns_until(lambda: process.ended)
            await turns_until(lambda: self.released or not arguments.get("hold"))
            if process.ended:
                raise CourseError("WORKER_FAILED", "has ended")
            if given.isupper():
                process.ended = given != "UNKNOWN_TOOL"
                raise CourseError(given, "went wrong")
            if given == "fail":
                return ToolOutput("PLUGIN_FAILED", is_error=True, details={"code": "PLUGIN_FAILED"})
            return ToolOutput(f"{tool} {given}", details=[given, signal is self.context.signal])

        async def dispose():
            self.disposed += 1
            process.ended = True

        return SimpleNamespace(specs=self.specs, process=process, call=call, dispose=dispose)

    async def calls(self, *words, **more):
        """What calls that are made at the same time return."""
        from pi_course.values import thaw

        calls = [self.supervisor.call(self.specs[0].name, {"word": word, **more}, self.context)
                 for word in words]
        seen = []
        for output in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(output, BaseException):
                seen.append({"raised": type(output).__name__})
            else:
                seen.append([output.is_error, thaw(output.details),
                             output.content if not output.is_error else None])
        return seen


def probe_32_5_supervisor(salt):
    """A broken plugin costs results and waits, never the agent, and is counted once."""
    base = salt.number(10, 90)
    words = salt.words(3)

    async def live():
        made = Pretended(salt, failures=3, base_ms=base)
        seen = [await made.calls(words[0], words[1]), await made.calls("fail")]
        for crash in salt.shuffled(("WORKER_FAILED", "WORKER_TIMEOUT", "OUTPUT_LIMIT")):
            before = made.closing.state(made.digest)
            together = salt.shuffled((crash, *words))
            seen += [before, together, await made.calls(*together, of=made.arrived + 4)]
            seen.append(await made.calls(words[0]))
            made.closing.clock.advance(base - 1)
            seen.append(await made.calls(words[1]))
            made.closing.clock.advance(1)
            seen.append(await made.calls(words[2]))
        for crash in ("WORKER_FAILED", "WORKER_TIMEOUT", "OUTPUT_LIMIT"):
            seen.append(await made.calls(crash))
            made.closing.clock.advance(4 * base)
        seen += [await made.calls(words[0]), made.closing.state(made.digest)]
        made.closing.held.enable(made.digest)
        seen += [await made.calls(words[0]), made.starts]
        await made.supervisor.close()
        seen += [made.disposed, await made.calls(words[1]), len(made.starts)]
        return seen

    return [salt.run(live(), 60.0), base]


def probe_32_5_blame(salt):
    """Aborts and refused grants are results too, and speak against nobody."""
    base = salt.number(10, 90)
    word = salt.word()

    async def live():
        made = Pretended(salt, failures=2, base_ms=base)
        seen = []
        for crash in salt.shuffled(("ABORTED", "ABORTED", "UNKNOWN_TOOL")):
            seen += [await made.calls(crash), made.closing.state(made.digest),
                     await made.calls(word)]
        seen.append(len(made.starts))
        await made.supervisor.close()
        for refusing in ("NOT_GRANTED", "NOT_GRANTED", "MODULE_INVALID"):
            made.refusing = refusing
            seen += [await made.calls(word), made.closing.state(made.digest)]
        seen.append(await made.calls(word))
        made.refusing = ""
        made.closing.clock.advance(base)
        seen.append(await made.calls(word, "fail", word))
        most = made.arrived + 3
        waiting = [asyncio.ensure_future(made.calls(word, hold=True)) for _ in range(3)]
        await turns_until(lambda: made.arrived >= most)
        seen.append(await made.calls("WORKER_FAILED"))
        made.closing.clock.advance(base)
        seen.append(await made.calls(word))
        made.released = True
        seen += [await asyncio.gather(*waiting), made.closing.state(made.digest), len(made.starts)]
        seen += [await made.calls(word), len(made.starts)]
        return seen

    return [salt.run(live(), 60.0), base]


def probe_32_5_registry(salt):
    """The tools of a plugin are tools like any others, and their failures are results."""
    from pi_course.messages import ToolCall, text_of
    from pi_course.tools import ToolRegistry, create_executor
    from pi_course.values import thaw

    word = salt.word()

    async def live():
        made = Pretended(salt, failures=2, base_ms=10)
        registry = ToolRegistry(await made.supervisor.tools())
        execute = create_executor(registry)
        seen = [[spec.name, spec.permission] for spec in registry.specs()]
        for number, given in enumerate((word, "fail", "WORKER_TIMEOUT", word)):
            tool = salt.choice(made.specs).name
            result = await execute(ToolCall(f"call-{number}", tool, {"word": given}), made.context)
            shown_text = text_of(result) if not result.is_error else None
            seen.append([result.call_id, result.is_error, shown_text, thaw(result.details)])
        return [seen, made.starts]

    return salt.run(live(), 60.0)
