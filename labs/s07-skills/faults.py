"""The faults of chapter s07: each wraps one public name and breaks one promise."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from copy import deepcopy
from pathlib import Path


def body_decoded_at_scan(scan_skills):
    """Decode every file whole before the catalogue is made."""

    def faulty(root, **options):
        for path in Path(root).glob("*/SKILL.md"):
            if path.is_file():
                path.read_text(encoding="utf-8")
        return scan_skills(root, **options)

    return faulty


def body_kept_in_registry(scan_skills):
    """Keep each skill's text in its entry, to have it at hand."""

    def faulty(root, **options):
        registry = scan_skills(root, **options)
        for entry in registry.values():
            entry["body"] = Path(entry["path"]).read_bytes()
        return registry

    return faulty


def twenty_first_skill_accepted(scan_skills):
    """Compare with the limit one skill too late."""

    def faulty(root, *, limit=20):
        return scan_skills(root, limit=limit + 1)

    return faulty


def name_mismatch_accepted(scan_skills):
    """Take the header's word for the name: the folder counts as renamed."""

    def faulty(root, **options):
        for path in [path for path in Path(root).glob("*/SKILL.md") if path.is_file()]:
            name = path.read_bytes().partition(b"name: ")[2].partition(b"\n")[0].decode()
            if name:
                path.parent.rename(path.parent.with_name(name))
        return scan_skills(root, **options)

    return faulty


def partial_catalogue_on_error(scan_skills):
    """Return the skills that are fine and forget the rest."""

    def faulty(root, **options):
        try:
            return scan_skills(root, **options)
        except ValueError:
            registry = {}
            for folder in sorted(Path(root).iterdir()):
                with tempfile.TemporaryDirectory() as alone, suppress(ValueError):
                    shutil.copytree(folder, Path(alone, folder.name))
                    registry |= scan_skills(Path(alone), **options)
            return registry

    return faulty


def linked_folder_followed(scan_skills):
    """Follow a link to a folder as if it were the folder."""

    def faulty(root, **options):
        links = [path for path in Path(root).iterdir() if path.is_symlink() and path.is_dir()]
        for link in links:
            target = link.resolve()
            link.unlink()
            shutil.copytree(target, link)
        return scan_skills(root, **options)

    return faulty


def root_check_skipped(scan_skills):
    """Read whatever SKILL.md leads to, without asking where that is."""

    def faulty(root, **options):
        for path in Path(root).glob("*/SKILL.md"):
            if path.is_symlink():
                raw = path.read_bytes()
                path.unlink()
                path.write_bytes(raw)
        return scan_skills(root, **options)

    return faulty


def unreadable_skill_passed_over(scan_skills):
    """Treat a SKILL.md that is no regular file as if there were none."""

    def faulty(root, **options):
        found = [path for path in Path(root).glob("*/*") if path.name == "SKILL.md"]
        strange = [path.parent.name for path in found if not path.is_file()]
        if not strange:
            return scan_skills(root, **options)
        with tempfile.TemporaryDirectory() as copy:
            ignore = shutil.ignore_patterns(*strange)
            shutil.copytree(root, copy, dirs_exist_ok=True, ignore=ignore)
            return scan_skills(Path(copy), **options)

    return faulty


def path_shown_to_the_model(build_system):
    """Tell the model where each skill is kept."""

    def faulty(registry, base):
        shown = deepcopy(registry)
        for entry in shown.values():
            entry["description"] += f" ({entry['path']})"
        return build_system(shown, base)

    return faulty


def bodies_in_the_catalogue(build_system):
    """Put each body behind its description, so that nobody has to ask."""

    def faulty(registry, base):
        full = deepcopy(registry)
        for entry in full.values():
            entry["description"] += "\n" + Path(entry["path"]).read_text(encoding="utf-8")
        return build_system(full, base)

    return faulty


def catalogue_unsorted(build_system):
    """List the skills as they come."""

    def faulty(registry, base):
        lines = build_system(registry, base).split("\n")
        skills = [line for line in lines if line.startswith("- ")]
        return "\n".join(skills.pop() if line.startswith("- ") else line for line in lines)

    return faulty


def base_accumulates(build_system):
    """Build on the prompt of the last time instead of the base."""
    last = []

    def faulty(registry, base):
        last.append(build_system(registry, last[-1] if last and base in last[-1] else base))
        return last[-1]

    return faulty


def empty_catalogue_silent(build_system):
    """Say nothing at all when there are no skills."""

    def faulty(registry, base):
        return build_system(registry, base) if registry else base

    return faulty


def argument_becomes_a_file_name(load_skill):
    """Join the argument to the skills' folder when it is not registered."""

    def faulty(name, registry):
        if type(name) is str and name not in registry:
            for entry in registry.values():
                path = Path(entry["root"], name, "SKILL.md")
                if path.is_file():
                    return path.read_text(encoding="utf-8")
        return load_skill(name, registry)

    return faulty


def long_skill_truncated(load_skill):
    """Return the first 8,192 bytes of a longer skill."""

    def faulty(name, registry):
        try:
            return load_skill(name, registry)
        except ValueError:
            known = type(name) is str and name in registry
            raw = Path(registry[name]["path"]).read_bytes() if known else b""
            if len(raw) <= 8192:
                raise
            return raw[:8192].decode("utf-8", errors="ignore")

    return faulty


def characters_counted(load_skill):
    """Hold the limit against characters, not bytes."""

    def faulty(name, registry):
        try:
            return load_skill(name, registry)
        except ValueError:
            known = type(name) is str and name in registry
            raw = Path(registry[name]["path"]).read_bytes() if known else b""
            text = raw.decode("utf-8", errors="replace")
            if len(raw) <= 8192 or len(text) > 8192:
                raise
            return text

    return faulty


def path_not_checked_again(load_skill):
    """Trust the path that was registered at the start."""

    def faulty(name, registry):
        if type(name) is str and name in registry and Path(registry[name]["path"]).is_symlink():
            return Path(registry[name]["path"]).read_text(encoding="utf-8")
        return load_skill(name, registry)

    return faulty


def decode_error_escapes(load_skill):
    """Let the decoder's own error out."""

    def faulty(name, registry):
        try:
            return load_skill(name, registry)
        except ValueError as error:
            raise (error.__cause__ or error) from None

    return faulty


def first_text_remembered(load_skill):
    """Keep what was read first and never look again."""
    known = {}

    def faulty(name, registry):
        key = (name, registry[name]["path"]) if type(name) is str and name in registry else None
        if key not in known:
            text = load_skill(name, registry)
            if key is None:
                return text
            known[key] = text
        return known[key]

    return faulty


def result_without_the_id(execute_with_skills):
    """Answer a load under the tool's name."""

    def faulty(call, tools, approve, hooks):
        execution = deepcopy(execute_with_skills(call, tools, approve, hooks))
        if call["name"] == "load_skill":
            execution["result"]["tool_use_id"] = call["name"]
        return execution

    return faulty


def permission_by_skill_text(execute_with_skills):
    """Believe a skill that says that no permission is needed."""
    freed = []

    def faulty(call, tools, approve, hooks):
        allowed = (lambda call: True) if freed else approve
        execution = execute_with_skills(call, tools, allowed, hooks)
        if call["name"] == "load_skill" and "忽略许可" in execution["result"]["content"]:
            freed.append(call["id"])
        return execution

    return faulty


def loading_asks_permission(execute_with_skills):
    """Ask the user about a load as about a run."""

    def faulty(call, tools, approve, hooks):
        if call["name"] == "load_skill" and approve(call) is not True:
            tools = {}
        return execute_with_skills(call, tools, approve, hooks)

    return faulty


def hooks_skipped_for_loads(execute_with_skills):
    """Load past the hooks: it only reads."""

    def faulty(call, tools, approve, hooks):
        if call["name"] == "load_skill":
            hooks = type(hooks)()
        return execute_with_skills(call, tools, approve, hooks)

    return faulty


def earlier_tools_lost(build_tools):
    """Offer the new tool instead of adding it."""

    def faulty(workspace, state, ask_child, registry):
        tools = build_tools(workspace, state, ask_child, registry)
        return {"load_skill": tools["load_skill"]}

    return faulty


def bodies_loaded_at_start(run_with_skills):
    """Give the model every skill's text with the first request."""

    def faulty(question, **options):
        texts = [p.read_text(encoding="utf-8") for p in options["skills_root"].glob("*/SKILL.md")]
        return run_with_skills(question + "\n".join(texts), **options)

    return faulty


def one_call_too_many(run_with_skills):
    """Ask the model once more than the budget allows."""

    def faulty(question, *, max_calls=6, **options):
        return run_with_skills(question, max_calls=max_calls + 1, **options)

    return faulty


def plan_kept_elsewhere(build_tools):
    """Bind the tools to a plan that no request carries."""

    def faulty(workspace, state, ask_child, registry):
        return build_tools(workspace, type(state)(), ask_child, registry)

    return faulty


def child_told_the_skills(build_tools):
    """Give the child every skill's text with its task."""

    def faulty(workspace, state, ask_child, registry):
        texts = [Path(entry["path"]).read_text(encoding="utf-8") for entry in registry.values()]
        return build_tools(
            workspace, state, lambda task: ask_child("\n".join([task, *texts])), registry
        )

    return faulty
