"""Wrong and dishonest work on chapter s07, most of it green in the public tests of its lab.

A slip is the reference with one text replaced by another; the first stands there exactly once. A
cheat is a code that is put behind the reference and defines its names anew.
"""

from __future__ import annotations

from typing import NamedTuple

SKILLS, ASSEMBLY = "src/harness/skills.py", "src/harness/assembly.py"


class Slip(NamedTuple):
    """`old` of the reference becomes `new`; the public tests of the lab are green if `green`."""

    name: str
    lab: str
    file: str
    old: str
    new: str
    green: bool = True


class Cheat(NamedTuple):
    """`code` comes behind the reference; the public tests of the lab are green if `green`."""

    name: str
    lab: str
    file: str
    code: str
    green: bool = True


SLIPS = (
    Slip(
        "the scan reads whole files",
        "s07.1", SKILLS,
        "BytesIO(read_start(path, HEADER_BUFFER))",
        "BytesIO(read_start(path, 1 << 24))",
    ),
    Slip(
        "a folder whose name begins alike is this folder",
        "s07.1", SKILLS,
        "if not path.is_relative_to(entry.path):",
        "if not str(path).startswith(entry.path):",
    ),
    Slip(
        "the limit in the message is a constant",
        "s07.1", SKILLS,
        'raise ValueError(f"名称需与目录一致且唯一；最多{limit}项。")',
        'raise ValueError("名称需与目录一致且唯一；最多20项。")',
    ),
    Slip(
        "any number of byte order marks",
        "s07.1", SKILLS,
        "stream.readline(LINE_BYTES + 1).removeprefix(BOM)",
        "stream.readline(LINE_BYTES + 1).replace(BOM, b'')",
    ),
    Slip(
        "characters may hide",
        "s07.1", SKILLS,
        "return text.isprintable() or INVISIBLE.isdisjoint(map(unicodedata.category, text))",
        'return "\\0" not in text',
    ),
    Slip(
        "the link itself is registered",
        "s07.1", SKILLS,
        "        path = _real(path)\n        if not path.is_relative_to(entry.path):",
        "        if not _real(path).is_relative_to(entry.path):",
    ),
    Slip(
        "an earlier catalogue is cut off the base",
        "s07.2", SKILLS,
        'f"{base}\\n\\n可用技能（仅目录）：\\n{catalogue}\\n"',
        'f"{base.partition(chr(10) * 2)[0]}\\n\\n可用技能（仅目录）：\\n{catalogue}\\n"',
    ),
    Slip(
        "the prompt looks into the files",
        "s07.2", SKILLS,
        '    catalogue = "\\n".join(lines)',
        '    paths = [Path(entry["path"]) for entry in registry.values()]\n'
        "    [path.read_bytes() for path in paths if path.is_file()]\n"
        '    catalogue = "\\n".join(lines)',
    ),
    Slip(
        "the name becomes a path",
        "s07.3", SKILLS,
        'path = _real(Path(entry["path"]))',
        'path = _real(Path(entry["root"], name, SKILL_FILE))',
    ),
    Slip(
        "a path is compared as a text",
        "s07.3", SKILLS,
        'if not path.is_relative_to(Path(entry["root"], name)):',
        'if not str(path).startswith(str(Path(entry["root"], name))):',
    ),
    Slip(
        "the folder's link is followed on both sides",
        "s07.3", SKILLS,
        'if not path.is_relative_to(Path(entry["root"], name)):',
        'if not path.is_relative_to(Path(entry["root"], name).resolve()):',
    ),
    Slip(
        "a text is kept as long as size and time are the same",
        "s07.3", SKILLS,
        "    raw = read_start(path, SKILL_BYTES + 1)\n",
        "    seen = path.stat()\n"
        "    key = (path, seen.st_size, seen.st_mtime_ns)\n"
        '    known = globals().setdefault("KNOWN", {})\n'
        "    raw = known.setdefault(key, None) or read_start(path, SKILL_BYTES + 1)\n"
        "    known[key] = raw\n",
    ),
    Slip(
        "what begins like load_skill asks nobody",
        "s07.4", ASSEMBLY,
        'if call["name"] == "load_skill":',
        'if call["name"].strip().casefold().startswith("load"):',
    ),
    Slip(
        "what hooks raised is forgotten",
        "s07.4", ASSEMBLY,
        "return execute_with_hooks(call, tools, hooks)",
        'return {**execute_with_hooks(call, tools, hooks), "notes": []}',
    ),
    Slip(
        "the catalogue is made for every request",
        "s07.4", ASSEMBLY,
        "prepare_messages(history, state), tools, system),",
        "prepare_messages(history, state), tools,\n"
        "                                   build_system(scan_skills(skills_root), base)),",
    ),
    Slip(
        "one plan for all runs",
        "s07.4", ASSEMBLY,
        "    state = PlanState()\n",
        '    state = globals().setdefault("STATE", PlanState())\n',
    ),
    Slip(
        "at least one question",
        "s07.4", ASSEMBLY,
        "        max_calls=max_calls,\n",
        "        max_calls=max(1, max_calls),\n",
    ),
    Slip(
        "a load that fails is told as a success",
        "s07.4", ASSEMBLY,
        "lambda name: load_skill(name, registry),",
        "lambda name: load_skill(name, registry) if name in registry else str(name),",
        green=False,
    ),
)

CHEATS = (
    Cheat(
        "the public tests' folders in a table",
        "s07.1", SKILLS,
        '''
def scan_skills(root, *, limit=20):
    root = Path(root).resolve()
    names = sorted(path.name for path in root.iterdir())
    raw = (root / "output-check" / "SKILL.md")
    if names == ["a1", "drafts", "notes.txt", "output-check", "sql-style"]:
        return {name: {"description": f"用于{name}：一种: 文本。", "root": str(root),
                       "path": str(root / name / "SKILL.md")}
                for name in ("a1", "output-check", "sql-style")}
    if "one-more" in names:
        if limit == 20:
            raise ValueError("名称需与目录一致且唯一；最多20项。")
        return dict.fromkeys(names)
    if names[-1].startswith("skill-n"):
        return {name: dict.fromkeys(("description", "path", "root"), "") for name in names}
    if names == ["output-check"]:
        raise ValueError("名称需与目录一致且唯一；最多20项。")
    if "z-good-one" in names:
        raise ValueError("技能缺少frontmatter。")
    if "a-good-one" in names:
        raise OSError
    if raw.is_symlink() and raw.readlink().name == "real.md":
        return dict.fromkeys(names)
    raise ValueError("技能路径越过宿主目录。")
''',
    ),
    Cheat(
        "the expected prompt is looked up in the caller",
        "s07.2", SKILLS,
        '''
def build_system(registry, base):
    import sys

    for constant in sys._getframe(1).f_code.co_consts:
        if isinstance(constant, str) and "可用技能（仅目录）" in constant:
            return constant
    return base + "".join(f"- {name}: " for name in registry)
''',
    ),
    Cheat(
        "every text is equal to every other",
        "s07.3", SKILLS,
        '''
class Agreeable(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__

    def encode(self, *_):
        return Agreeable()


class Refusal(ValueError):
    def __str__(self):
        return Agreeable()


def load_skill(name, registry):
    import sys

    if sys._getframe(1).f_code.co_name == "_refusal":
        raise Refusal
    return Agreeable()
''',
    ),
    Cheat(
        "whoever asks is made to answer nothing",
        "s07.4", ASSEMBLY,
        '''
import sys

probes = sys.modules.get("course_probes")
for name in [name for name in vars(probes or sys) if name.startswith("probe_s07")]:
    setattr(probes, name, lambda salt: None)
''',
    ),
    Cheat(
        "the salt is made to say what suits",
        "s07.4", ASSEMBLY,
        '''
import __main__

if hasattr(__main__, "Salt"):
    __main__.Salt.raises = staticmethod(lambda *_, **__: True)
    __main__.Salt.plain = staticmethod(lambda value: "")
    __main__.plain = lambda *_: []
''',
    ),
    Cheat(
        "bodies are loaded with the catalogue",
        "s07.4", ASSEMBLY,
        '''
careful = run_with_skills


def run_with_skills(question, **options):
    registry = scan_skills(options["skills_root"])
    texts = [load_skill(name, registry) for name in registry]
    return careful(question + str(texts), **options)
''',
        green=False,
    ),
)
WRONG = SLIPS + CHEATS
