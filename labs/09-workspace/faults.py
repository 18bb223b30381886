"""Faults of chapter 09: each takes the right function and returns a plausibly wrong one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from pi_course import containment, permissions, workspace
from pi_course.errors import CourseError


def climb_is_clamped(lexical):
    """Stop a climbing path at the root, as a web server does, instead of refusing it."""
    def faulty(root, request):
        try:
            return lexical(root, request)
        except CourseError as error:
            if error.code == "PATH_ESCAPE":
                return root / PurePosixPath(request).name
            raise
    return faulty


def posix_only(lexical):
    """Judge the text by the rules of the system it runs on."""
    def faulty(root, request):
        return root / request if "\\" in request or ":" in request else lexical(root, request)
    return faulty


def any_name_goes(lexical):
    """Refuse absolute paths, and take every other name for a name."""
    def faulty(root, request):
        try:
            return lexical(root, request)
        except CourseError as error:
            odd = not request or "\0" in request or request.startswith("~")
            if error.code == "PATH_ESCAPE" or odd or PureWindowsPath(request).anchor:
                raise
            return root / request
    return faulty


def home_is_expanded(lexical):
    """Be helpful and put the home folder in the place of `~`."""
    def faulty(root, request):
        return Path(request).expanduser() if request.startswith("~") else lexical(root, request)
    return faulty


def text_alone_decides(contained):
    """Trust a path whose text stays inside; never look where its links lead."""
    def faulty(root, request, *, must_exist=True):
        path = containment.lexical(Path(os.path.realpath(root)), request)
        if must_exist and not path.exists():
            raise CourseError("NOT_FOUND", request)
        return path
    return faulty


def prefix_by_text(contained):
    """Compare the real paths as texts: "/work/skill-old" begins with "/work/skill"."""
    def faulty(root, request, *, must_exist=True):
        try:
            return contained(root, request, must_exist=must_exist)
        except CourseError as error:
            home = os.path.realpath(root)
            real = os.path.realpath(f"{home}/{request}")
            if error.code == "PATH_ESCAPE" and ".." not in request and real.startswith(home):
                return Path(real)
            raise
    return faulty


def missing_is_harmless(contained):
    """Let every path through that leads to nothing: there is nothing to steal."""
    def faulty(root, request, *, must_exist=True):
        path = containment.lexical(Path(os.path.realpath(root)), request)
        if not must_exist and not path.exists():
            return path
        return contained(root, request, must_exist=must_exist)
    return faulty


def link_is_kept(contained):
    """Follow the links for the check, and then return the path as it was asked for."""
    def faulty(root, request, *, must_exist=True):
        contained(root, request, must_exist=must_exist)
        return containment.lexical(Path(os.path.realpath(root)), request)
    return faulty


def missing_is_found(contained):
    """Forget that the file has to be there."""
    def faulty(root, request, *, must_exist=True):
        return contained(root, request, must_exist=False)
    return faulty


def written_in_place(write_text):
    """Open the file and write over it."""
    def faulty(self, request, content):
        path = self.resolve(request, must_exist=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return faulty


def mode_is_lost(write_text):
    """Leave the new file with the permissions that temporary files have."""
    def faulty(self, request, content):
        write_text(self, request, content)
        self.resolve(request).chmod(0o600)
    return faulty


def resolved_once(write_text):
    """Remember the answer to a path that has been judged once."""
    known = {}
    def faulty(self, request, content):
        if request in known:
            known[request].write_bytes(content.encode())
        else:
            write_text(self, request, content)
            known[request] = self.root / request
    return faulty


def first_match_wins(replace_once):
    """Change the first of several places."""
    def faulty(self, request, old, new):
        try:
            replace_once(self, request, old, new)
        except CourseError as error:
            if error.code != "MANY_MATCHES":
                raise
            self.write_text(request, self.read_text(request).replace(old, new, 1))
    return faulty


def newlines_are_unified(replace_once):
    """Read and write the file in text mode."""
    def faulty(self, request, old, new):
        replace_once(self, request, old, new)
        path = self.resolve(request)
        path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    return faulty


def mark_is_dropped(replace_once):
    """Decode with utf-8-sig, encode with utf-8."""
    def faulty(self, request, old, new):
        replace_once(self, request, old, new)
        path = self.resolve(request)
        path.write_bytes(path.read_bytes().decode("utf-8-sig").encode())
    return faulty


def cut_anywhere(truncate_head):
    """Cut at the character, not at the line."""
    def faulty(text, max_chars):
        return replace(truncate_head(text, max_chars), text=text[:max_chars])
    return faulty


def splitlines_counts(truncate_tail):
    """Count lines with splitlines, which also splits at U+2028 and others."""
    def faulty(text, max_chars):
        return replace(truncate_tail(text, max_chars), total=len(text.splitlines()))
    return faulty


def tail_is_the_head(truncate_tail):
    """Show the beginning of what a program printed: the error stands at the end."""
    def faulty(text, max_chars):
        truncate_tail(text, max_chars)
        return workspace.truncate_head(text, max_chars)
    return faulty


def through_a_shell(run_program):
    """Join the arguments to one line and let a shell read it."""
    async def faulty(self, argv):
        return await run_program(self, ["/bin/sh", "-c", " ".join(argv)])
    return faulty


def environment_is_inherited(run_program):
    """Let the program see the whole environment, keys and tokens too."""
    async def faulty(self, argv):
        if isinstance(argv, list) and all(isinstance(item, str) for item in argv[:1]) and argv:
            everything = [f"{name}={value}" for name, value in os.environ.items()]
            argv = ["/usr/bin/env", *everything, *argv]
        return await run_program(self, argv)
    return faulty


def everything_is_a_read(core_tools):
    """Declare the permission "read" for every tool, because that one is never asked about."""
    def faulty(space):
        tools = core_tools(space)
        return tuple(replace(tool, spec=replace(tool.spec, permission="read")) for tool in tools)
    return faulty


def run_then_deny(gate):
    """Decide while the tool is at work already."""
    def faulty(executor, registry, policy, ask=None):
        guarded = gate(executor, registry, policy, ask)
        async def run(call, ctx):
            done = await executor(call, ctx)
            answer = await guarded(call, ctx)
            return answer if answer.is_error else done
        return run
    return faulty


def silence_is_consent(gate):
    """Take it for a yes when there is nobody to ask."""
    async def yes(call, spec):
        return True
    def faulty(executor, registry, policy, ask=None):
        return gate(executor, registry, policy, ask or yes)
    return faulty


def truthy_is_yes(gate):
    """Take every answer that is not empty for a yes."""
    def faulty(executor, registry, policy, ask=None):
        async def lenient(call, spec):
            return bool(await ask(call, spec))
        return gate(executor, registry, policy, ask and lenient)
    return faulty


def deny_becomes_ask(decide):
    """Let the user overrule a rule."""
    def faulty(self, spec, args):
        answer = decide(self, spec, args)
        return "ask" if answer == "deny" else answer
    return faulty


def unlisted_is_allowed(init):
    """Allow the permissions that nobody has thought of."""
    def faulty(self, by_permission=permissions.DEFAULTS, rules=()):
        everything = {"read": "allow", "write": "allow", "execute": "allow", "network": "allow"}
        init(self, {**everything, **by_permission}, rules)
    return faulty


def broken_rule_is_silent(init):
    """Take a rule that fails for one that has no objection."""
    def quiet(rule):
        def asked(spec, args):
            try:
                return rule(spec, args)
            except Exception:
                return None
        return asked
    def faulty(self, by_permission=permissions.DEFAULTS, rules=()):
        init(self, by_permission, [quiet(rule) for rule in rules])
    return faulty


def falsy_is_no_objection(init):
    """Take a rule that answers False for one that has no objection."""
    def quiet(rule):
        return lambda spec, args: rule(spec, args) or None
    def faulty(self, by_permission=permissions.DEFAULTS, rules=()):
        init(self, by_permission, [quiet(rule) for rule in rules])
    return faulty
