"""Faults of chapter 12: one function a fault, each wraps one public name."""

import html
import os
import re
from dataclasses import replace
from inspect import isawaitable, iscoroutine
from pathlib import Path
from types import SimpleNamespace

from pi_course import resources
from pi_course.errors import CourseError
from pi_course.messages import text_of
from pi_course.tools import ToolRegistry, error_result

# 12.1: a wrapper around discover_resources


def last_root_wins(discover_resources):
    """Let a later root overwrite what an earlier one has."""

    def faulty(roots, **rest):
        return discover_resources(list(roots)[::-1], **rest)

    return faulty


def roots_sorted_by_path(discover_resources):
    """Sort the roots before looking into them, to be tidy."""

    def faulty(roots, **rest):
        return discover_resources(sorted(roots), **rest)

    return faulty


def listed_by_path(discover_resources):
    """List the winners in the order of their files."""

    def faulty(roots, **rest):
        catalog = discover_resources(roots, **rest)
        by_path = sorted(catalog.resources, key=lambda item: str(item.source))
        return replace(catalog, resources=tuple(by_path))

    return faulty


def body_kept_in_catalogue(discover_resources):
    """Keep the text of each skill, since the file is open anyway."""

    def faulty(roots, **rest):
        catalog = discover_resources(roots, **rest)
        whole = [replace(s, body=s.source.read_text("utf-8", "replace")) for s in catalog.skills]
        return replace(catalog, skills=tuple(whole))

    return faulty


def shallow_copy_returned(discover_resources):
    """Give out a list that the next caller gets too."""
    kept = {}

    def faulty(roots, **rest):
        roots = list(roots)
        key = tuple(map(str, roots))
        if key not in kept:
            catalog = discover_resources(roots, **rest)
            kept[key] = replace(catalog, resources=list(catalog.resources))
        return replace(kept[key])

    return faulty


def shadowing_is_silent(discover_resources):
    """Say nothing of what lost to an earlier root."""
    return _without(discover_resources, "shadowed")


def bad_file_is_silent(discover_resources):
    """Skip a file that is no use, and say nothing of it."""
    return _without(discover_resources, "invalid")


def one_bad_file_stops_all(discover_resources):
    """Raise for the first file that is no use."""

    def faulty(roots, **rest):
        catalog = discover_resources(roots, **rest)
        for found in catalog.diagnostics:
            if found.kind == "invalid":
                raise CourseError("INVALID_SKILL", found.message)
        return catalog

    return faulty


def duplicate_in_one_root_is_picked(discover_resources):
    """Make do without a root that has the same identity twice."""

    def faulty(roots, **rest):
        try:
            return discover_resources(roots, **rest)
        except CourseError:
            return discover_resources(roots[:1], **rest)

    return faulty


def link_out_is_listed(discover_resources):
    """List what a link leads to, wherever that is."""

    def faulty(roots, **rest):
        catalog = discover_resources(roots, **rest)
        strays = [found for found in catalog.diagnostics if found.kind == "escape"]
        listed = [replace(catalog.skills[0], name=found.source.name) for found in strays]
        return replace(catalog, skills=(*catalog.skills, *listed))

    return faulty


def limits_not_kept(discover_resources):
    """Read files of any size."""

    def faulty(roots, *, limits=resources.DEFAULT_LIMITS):
        return replace(discover_resources(roots), limits=limits)

    return faulty


def _without(discover_resources, kind):
    def faulty(roots, **rest):
        catalog = discover_resources(roots, **rest)
        told = tuple(found for found in catalog.diagnostics if found.kind != kind)
        return replace(catalog, diagnostics=told)

    return faulty


# 12.2: a wrapper around activate_skill


def lexical_check_only(activate_skill):
    """Take a request whose text stays inside, without a look at where it leads."""
    return _taking(activate_skill, lambda root, path: path.is_relative_to(root))


def prefix_instead_of_containment(activate_skill):
    """Take a path that begins with the same letters as the skill's folder."""
    return _taking(activate_skill, lambda root, path: str(path).startswith(str(root)))


def absolute_request_accepted(activate_skill):
    """Take an absolute path, if it is one of a file of the skill."""

    def faulty(catalog, name, *, resources=()):
        root = next((str(s.root) + os.sep for s in catalog.skills if s.name == name), "")
        return activate_skill(catalog, name, resources=[r.removeprefix(root) for r in resources])

    return faulty


def climbing_is_stripped(activate_skill):
    """Clean a request instead of refusing it."""

    def faulty(catalog, name, *, resources=()):
        clean = [request.replace("../", "") for request in resources]
        return activate_skill(catalog, name, resources=clean)

    return faulty


def link_at_skill_file_followed(activate_skill):
    """Check where the attached files lead, but not where SKILL.md leads."""

    def faulty(catalog, name, *, resources=()):
        try:
            return activate_skill(catalog, name, resources=resources)
        except CourseError as refused:
            skill = next((s for s in catalog.skills if s.name == name), None)
            if resources or skill is None or refused.code != "PATH_ESCAPE":
                raise
            body = (skill.root / "SKILL.md").read_text("utf-8")
            return _activated(skill, body, ())

    return faulty


def name_not_rechecked(activate_skill):
    """Trust the catalogue about the name, whatever the file says by now."""

    def faulty(catalog, name, *, resources=()):
        try:
            return activate_skill(catalog, name, resources=resources)
        except CourseError as refused:
            if refused.code != "SKILL_CHANGED":
                raise
            skill = next(s for s in catalog.skills if s.name == name)
            return _activated(skill, skill.source.read_text("utf-8"), ())

    return faulty


def repeated_request_read_twice(activate_skill):
    """Attach a file as often as it was asked for."""

    def faulty(catalog, name, *, resources=()):
        active = activate_skill(catalog, name, resources=resources)
        files = {file.request: file for file in active.files}
        return replace(active, files=tuple(files[request] for request in resources))

    return faulty


def first_body_kept(activate_skill):
    """Read a skill once, and answer later activations from memory."""
    kept = {}

    def faulty(catalog, name, *, resources=()):
        active = activate_skill(catalog, name, resources=resources)
        return replace(active, body=kept.setdefault(active.source, active.body))

    return faulty


def catalogue_filled_in(activate_skill):
    """Put the text that was read into the catalogue, for the next time."""

    def faulty(catalog, name, *, resources=()):
        active = activate_skill(catalog, name, resources=resources)
        for skill in catalog.skills:
            if skill.name == name:
                object.__setattr__(skill, "body", active.body)
        return active

    return faulty


def windows_line_ends_kept(activate_skill):
    """Decode the body, and leave its line ends as they are."""

    def faulty(catalog, name, *, resources=()):
        active = activate_skill(catalog, name, resources=resources)
        ends = "\r\n" if b"\r\n" in active.source.read_bytes() else "\n"
        return replace(active, body=active.body.replace("\n", ends))

    return faulty


def size_not_checked(activate_skill):
    """Attach files of any size."""

    def faulty(catalog, name, *, resources=()):
        limits = replace(catalog.limits, file_bytes=1_000_000)
        return activate_skill(replace(catalog, limits=limits), name, resources=resources)

    return faulty


def _taking(activate_skill, inside):
    """activate_skill, which also reads each request that is `inside`, judged by its text."""

    def faulty(catalog, name, *, resources=()):
        try:
            return activate_skill(catalog, name, resources=resources)
        except CourseError as refused:
            skill = next((s for s in catalog.skills if s.name == name), None)
            if skill is None or refused.code != "PATH_ESCAPE":
                raise
            for request in resources:
                if not inside(skill.root, Path(os.path.normpath(skill.root / request))):
                    raise
            return activate_skill(catalog, name)

    return faulty


def _activated(skill, body, files):
    return resources.ActivatedSkill(
        skill.name, skill.root, skill.source, body, files, skill.digest, skill.digest
    )


# 12.3: a wrapper around render_template or format_resource_context


def missing_argument_becomes_empty(render_template):
    """Put nothing where an argument is missing."""

    def faulty(template, args, *, at):
        return render_template(template, dict.fromkeys(_names(template), "") | dict(args), at=at)

    return faulty


def default_factory_answers(render_template):
    """Ask the arguments for each name, and take what they make up."""

    def faulty(template, args, *, at):
        made = {name: args[name] for name in _names(template) if hasattr(args, "__missing__")}
        return render_template(template, {**args, **made}, at=at)

    return faulty


def second_pass_expansion(render_template):
    """Look through the text again until no placeholder is left."""

    def faulty(template, args, *, at):
        message = render_template(template, args, at=at)
        again = replace(template, body=text_of(message))
        return render_template(again, args, at=at)

    return faulty


def value_read_as_pattern(render_template):
    """Hand the values to re.sub as they are."""

    def faulty(template, args, *, at):
        read = {
            name: re.sub("()x", value, "x")
            for name, value in args.items()
            if isinstance(value, str)
        }
        return render_template(template, {**args, **read}, at=at)

    return faulty


def blanks_allowed(render_template):
    """Take {{ name }} for {{name}}."""

    def faulty(template, args, *, at):
        body = re.sub(r"\{\{\s+(\w+)\s+\}\}", r"{{\1}}", template.body)
        return render_template(replace(template, body=body), args, at=at)

    return faulty


def _names(template):
    return re.findall(r"\{\{([A-Za-z_]\w*)\}\}", template.body)


def inactive_body_leaks(format_resource_context):
    """Show the text of every skill, to be on the safe side."""

    def faulty(catalog, activated=()):
        prompt = format_resource_context(catalog, activated)
        return "\n\n".join([prompt, *(s.source.read_text("utf-8") for s in catalog.skills)])

    return faulty


def foreign_activation_accepted(format_resource_context):
    """Take a skill of another catalogue, as long as the name is known here."""

    def faulty(catalog, activated=()):
        known = {skill.name: skill for skill in catalog.skills}
        ours = [
            replace(active, root=known[active.name].root, entry=known[active.name].digest)
            for active in activated
            if active.name in known
        ]
        return format_resource_context(catalog, ours)

    return faulty


def duplicate_activation_accepted(format_resource_context):
    """Let a second activation of a skill pass."""

    def faulty(catalog, activated=()):
        return format_resource_context(catalog, {skill.name: skill for skill in activated}.values())

    return faulty


def order_of_activation_shows(format_resource_context):
    """Name the active skills at the end, as they came."""

    def faulty(catalog, activated=()):
        activated = list(activated)
        prompt = format_resource_context(catalog, activated)
        return " ".join([prompt, *(skill.name for skill in activated)])

    return faulty


def text_not_escaped(format_resource_context):
    """Put text from files into the prompt letter by letter."""

    def faulty(catalog, activated=()):
        return html.unescape(format_resource_context(catalog, activated))

    return faulty


def only_descriptions_escaped(format_resource_context):
    """Escape what strangers describe, and believe rules, bodies and files."""

    def faulty(catalog, activated=()):
        activated = list(activated)
        prompt = format_resource_context(catalog, activated)
        texts = [item.body for item in catalog.instructions]
        texts += [skill.body for skill in activated]
        texts += [file.content for skill in activated for file in skill.files]
        for text in map(str.strip, texts):
            prompt = prompt.replace(html.escape(text, quote=False), text)
        return prompt

    return faulty


def stale_activation_accepted(format_resource_context):
    """Take an activation of the same folder, whatever its header said at that time."""

    def faulty(catalog, activated=()):
        entry = {(skill.name, skill.root): skill.digest for skill in catalog.skills}
        fresh = [replace(a, entry=entry.get((a.name, a.root), a.entry)) for a in activated]
        return format_resource_context(catalog, fresh)

    return faulty


# 12.4: a wrapper around load_extension or create_extension_host


def import_before_trust(load_extension):
    """Import the module first and ask for trust afterwards."""

    async def faulty(source, *, import_module, **rest):
        module = import_module(source)
        module = await module if isawaitable(module) else module
        return await load_extension(source, import_module=lambda source: module, **rest)

    return faulty


def truthy_is_trust(load_extension):
    """Take every answer that is not empty for a yes."""

    async def faulty(source, *, is_trusted, **rest):
        async def lenient(source):
            answer = is_trusted(source)
            return bool(await answer if isawaitable(answer) else answer)

        return await load_extension(source, is_trusted=lenient, **rest)

    return faulty


def unawaited_answer_is_trust(load_extension):
    """Forget to await the answer: a coroutine is always true."""

    async def faulty(source, *, is_trusted, **rest):
        def hasty(source):
            answer = is_trusted(source)
            if not iscoroutine(answer):
                return answer
            answer.close()
            return True

        return await load_extension(source, is_trusted=hasty, **rest)

    return faulty


def trust_error_opens(load_extension):
    """Go on when nobody can be asked."""

    async def faulty(source, *, is_trusted, **rest):
        async def brave(source):
            try:
                answer = is_trusted(source)
                return await answer if isawaitable(answer) else answer
            except Exception:
                return True

        return await load_extension(source, is_trusted=brave, **rest)

    return faulty


def source_can_be_changed(load_extension):
    """Hand out a source that whoever gets it can change."""

    async def faulty(source, *, is_trusted, **rest):
        def asked(source):
            return is_trusted(SimpleNamespace(id=source.id, path=source.path))

        return await load_extension(source, is_trusted=asked, **rest)

    return faulty


def change_goes_unseen(load_extension):
    """Look at the source for the first time when trust has been given."""

    async def faulty(source, *, is_trusted, **rest):
        if not source.id.strip() or source.path == Path():
            return await load_extension(source, is_trusted=is_trusted, **rest)
        try:
            answer = is_trusted(source)
            answer = await answer if isawaitable(answer) else answer
        except Exception:
            answer = None
        return await load_extension(source, is_trusted=lambda source: answer, **rest)

    return faulty


def any_host_will_do(load_extension):
    """Load an extension for whatever has the method of a host."""

    async def faulty(source, *, host, **rest):
        try:
            return await load_extension(source, host=host, **rest)
        except CourseError as refused:
            if refused.code != "INVALID_HOST":
                raise
        nobody = resources.create_extension_host(ToolRegistry(), hook_timeout=1, report=print)
        return await load_extension(source, host=nobody, **rest)

    return faulty


def load_without_deadline(load_extension):
    """Wait for import and factory as long as they like."""

    async def faulty(source, *, timeout=None, **rest):
        return await load_extension(source, **rest)

    return faulty


def unknown_hook_is_ignored(load_extension):
    """Say nothing about a hook that will never be asked."""

    def tolerant(on):
        def take(hook, listener):
            try:
                on(hook, listener)
            except CourseError as error:
                if error.code != "INVALID_HOOK":
                    raise

        return take

    def change(factory):
        return lambda context: factory(
            SimpleNamespace(register_tool=context.register_tool, on=tolerant(context.on))
        )

    return _with_factory(load_extension, change)


def commit_on_failure(load_extension):
    """Keep what was registered before the factory failed."""
    errors = []

    def change(factory):
        async def stubborn(context):
            try:
                done = factory(context)
                return await done if isawaitable(done) else done
            except (Exception, SystemExit) as error:
                errors.append(error)

        return stubborn

    async def faulty(source, **rest):
        errors.clear()
        result = await _with_factory(load_extension, change)(source, **rest)
        if errors:
            raise CourseError("EXTENSION_FAILED", str(errors[0]))
        return result

    return faulty


def duplicate_tool_overwrites(create_extension_host):
    """Let the extension's tool take the place of the tool that has its name."""

    def faulty(registry, **rest):
        def register_all(tools):
            new = {tool.spec.name: tool for tool in tools}
            old = {name: registry.get(name) for name in registry.names()}
            registry.__init__((old | new).values())

        blind = SimpleNamespace(
            register_all=register_all,
            register=lambda tool: register_all([tool]),
            get=lambda name: None,
            names=lambda: (),
            specs=lambda: (),
        )
        return create_extension_host(blind, **rest)

    return faulty


def context_stays_open(load_extension):
    """Take registrations from an extension that has long been loaded."""

    def lasting(method):
        def take(*args):
            try:
                return method(*args)
            except CourseError as error:
                if error.code != "CONTEXT_CLOSED":
                    raise

        return take

    def change(factory):
        return lambda context: factory(
            SimpleNamespace(register_tool=lasting(context.register_tool), on=lasting(context.on))
        )

    return _with_factory(load_extension, change)


def system_exit_escapes(load_extension):
    """Catch what is an Exception, and nothing more."""
    exits = []

    def change(factory):
        async def watched(context):
            try:
                done = factory(context)
                return await done if isawaitable(done) else done
            except SystemExit as error:
                exits.append(error)
                raise

        return watched

    async def faulty(source, **rest):
        try:
            return await _with_factory(load_extension, change)(source, **rest)
        finally:
            if exits:
                raise exits.pop()

    return faulty


def same_id_twice(load_extension):
    """Load an extension again although it is active."""
    loads = []

    async def faulty(source, **rest):
        loads.append(source)
        if source.id:
            source = replace(source, id=f"{source.id}.{len(loads)}")
        return await load_extension(source, **rest)

    return faulty


def _with_factory(load_extension, change):
    """load_extension, with change(factory) in the place of each factory."""

    async def faulty(source, *, import_module, **rest):
        async def changed(source):
            module = import_module(source)
            module = await module if isawaitable(module) else module
            factory = getattr(module, "default", None)
            return SimpleNamespace(default=change(factory)) if callable(factory) else module

        return await load_extension(source, import_module=changed, **rest)

    return faulty


# 12.5: a wrapper around create_extension_host or load_extension


def hooks_ignored(create_extension_host):
    """Hand the core executor back as it is: where lab 12.4 leaves off."""

    def faulty(registry, **rest):
        return _rewired(create_extension_host(registry, **rest), lambda wrap, core: core)

    return faulty


def before_error_opens(create_extension_host):
    """Let a call pass when the policy raises."""
    return _opening(create_extension_host, "error")


def before_timeout_opens(create_extension_host):
    """Let a call pass when the policy does not answer."""
    return _opening(create_extension_host, "timeout")


def bad_result_opens(create_extension_host):
    """Let a call pass when the policy answers something else."""
    return _opening(create_extension_host, "bad_result")


def failing_report_opens(create_extension_host):
    """Let a call pass when its block cannot be logged."""

    def faulty(registry, *, report, **rest):
        failed = []

        def fragile(found):
            try:
                report(found)
            except Exception:
                failed.append(found)

        def make(wrap, core):
            async def execute(call, ctx):
                failed.clear()
                result = await wrap(core)(call, ctx)
                return await core(call, ctx) if failed else result

            return execute

        return _rewired(create_extension_host(registry, report=fragile, **rest), make)

    return faulty


def deny_opens(create_extension_host):
    """Run the core although an extension said no."""

    def make(wrap, core):
        async def execute(call, ctx):
            result = await wrap(core)(call, ctx)
            return await core(call, ctx) if _code(result) == "DENIED" else result

        return execute

    return _remade(create_extension_host, make)


def denial_is_reported(create_extension_host):
    """Report a Deny as if the policy were out of order."""

    def faulty(registry, *, report, **rest):
        def make(wrap, core):
            async def execute(call, ctx):
                result = await wrap(core)(call, ctx)
                if _code(result) == "DENIED":
                    report(resources.HookDiagnostic("", "before_tool_call", "error", "denied"))
                return result

            return execute

        return _rewired(create_extension_host(registry, report=report, **rest), make)

    return faulty


def unpaired_block(create_extension_host):
    """Answer a blocked call with a result that belongs to no call."""

    def make(wrap, core):
        async def execute(call, ctx):
            result = await wrap(core)(call, ctx)
            blocked = _code(result) in ("DENIED", "HOOK_FAILED")
            return replace(result, call_id="blocked") if blocked else result

        return execute

    return _remade(create_extension_host, make)


def denial_has_no_text(create_extension_host):
    """Put the reason where only the host sees it."""

    def make(wrap, core):
        async def execute(call, ctx):
            result = await wrap(core)(call, ctx)
            return replace(result, content=()) if _code(result) == "DENIED" else result

        return execute

    return _remade(create_extension_host, make)


def owner_not_named(create_extension_host):
    """Leave out who stopped the call."""

    def make(wrap, core):
        async def execute(call, ctx):
            result = await wrap(core)(call, ctx)
            if _code(result) not in ("DENIED", "HOOK_FAILED"):
                return result
            told = {k: v for k, v in result.details.items() if k != "extension_id"}
            return replace(result, details=told)

        return execute

    return _remade(create_extension_host, make)


def core_answer_unchecked(create_extension_host):
    """Hand on whatever the core answered."""

    def make(wrap, core):
        async def execute(call, ctx):
            answers = []

            async def watched(call, ctx):
                answers.append(await core(call, ctx))
                return answers[-1]

            result = await wrap(watched)(call, ctx)
            return answers[-1] if _code(result) == "BAD_OUTPUT" else result

        return execute

    return _remade(create_extension_host, make)


def core_exit_escapes(create_extension_host):
    """Let a core that exits end the program."""

    def make(wrap, core):
        async def execute(call, ctx):
            exits = []

            async def watched(call, ctx):
                try:
                    return await core(call, ctx)
                except SystemExit as error:
                    exits.append(error)
                    raise

            result = await wrap(watched)(call, ctx)
            if exits:
                raise exits[0]
            return result

        return execute

    return _remade(create_extension_host, make)


def core_runs_twice(create_extension_host):
    """Run the core once for the hooks and once for the caller."""

    def make(wrap, core):
        async def twice(call, ctx):
            await core(call, ctx)
            return await core(call, ctx)

        return wrap(twice)

    return _remade(create_extension_host, make)


def after_failure_replaces_result(create_extension_host):
    """Turn a result into an error because an observer failed."""

    def faulty(registry, *, report, **rest):
        failed = []

        def listening(found):
            failed.append(found.hook)
            return report(found)

        def make(wrap, core):
            async def execute(call, ctx):
                failed.clear()
                result = await wrap(core)(call, ctx)
                if "after_tool_result" not in failed:
                    return result
                return error_result(call, "HOOK_FAILED", "an observer failed", at=result.timestamp)

            return execute

        return _rewired(create_extension_host(registry, report=listening, **rest), make)

    return faulty


def diagnostics_missing(create_extension_host):
    """Drop every report."""

    def faulty(registry, *, report, **rest):
        return create_extension_host(registry, report=lambda found: None, **rest)

    return faulty


def observers_miss_errors(load_extension):
    """Show the observers only what went well."""

    def change(hook, listener):
        if hook != "after_tool_result":
            return listener
        return lambda result: None if result.is_error else listener(result)

    return _with_listeners(load_extension, change)


def one_fault_silences_the_rest(load_extension):
    """Stop observing once an observer has failed."""
    failed = []

    def change(hook, listener):
        async def heard(value):
            if failed:
                return None
            try:
                answer = listener(value)
                return await answer if isawaitable(answer) else answer
            except Exception as error:
                failed.append(error)
                raise

        return heard if hook == "after_tool_result" else listener

    return _with_listeners(load_extension, change)


def hooks_share_mutable_data(load_extension):
    """Give all hooks one object, with a plain dict inside."""
    shared = {}

    def loose(value):
        field = "arguments" if hasattr(value, "arguments") else "details"
        value = replace(value)
        object.__setattr__(value, field, dict(getattr(value, field)))
        return value

    def change(hook, listener):
        return lambda value: listener(shared.setdefault(repr(value), loose(value)))

    return _with_listeners(load_extension, change)


def hooks_get_one_object(load_extension):
    """Hand the same object to all hooks."""
    shared = {}

    def change(hook, listener):
        return lambda value: listener(shared.setdefault(repr(value), value))

    return _with_listeners(load_extension, change)


def hooks_of_a_failure_stay(load_extension):
    """Add each hook to the host when the factory registers it."""
    failures = []

    async def faulty(source, **rest):
        heard = []

        def change(hook, listener):
            heard.append((hook, listener))
            return listener

        def again(context):
            for hook, listener in heard:
                context.on(hook, listener)

        try:
            return await _with_listeners(load_extension, change)(source, **rest)
        except CourseError:
            if heard:
                failures.append(source)
                module = SimpleNamespace(default=again)
                source = replace(source, id=f"{source.id}.{len(failures)}")
                rest |= {"is_trusted": lambda s: True, "import_module": lambda s: module}
                await load_extension(source, **rest)
            raise

    return faulty


def _code(result):
    return (result.details or {}).get("code")


def _opening(create_extension_host, kind):
    """A host that runs the core after all when a before hook had a fault of this kind."""

    def faulty(registry, *, report, **rest):
        faults = []

        def listening(found):
            faults.append((found.hook, found.kind))
            return report(found)

        def make(wrap, core):
            async def execute(call, ctx):
                faults.clear()
                result = await wrap(core)(call, ctx)
                opened = ("before_tool_call", kind) in faults
                return await core(call, ctx) if opened else result

            return execute

        return _rewired(create_extension_host(registry, report=listening, **rest), make)

    return faulty


def _remade(create_extension_host, make):
    def faulty(registry, **rest):
        return _rewired(create_extension_host(registry, **rest), make)

    return faulty


def _rewired(host, make):
    """The same host, whose wrap_executor(core) is now make(its own wrap_executor, core)."""
    own = host.wrap_executor

    def wrap_executor(core):
        return make(own, core)

    try:
        object.__setattr__(host, "wrap_executor", wrap_executor)
    except AttributeError:  # an object with slots: change its class instead
        methods = {"__slots__": (), "wrap_executor": staticmethod(wrap_executor)}
        object.__setattr__(host, "__class__", type("Host", (type(host),), methods))
    return host


def _with_listeners(load_extension, change):
    """load_extension, with change(hook, listener) in the place of each listener."""

    def context_of(context):
        return SimpleNamespace(
            register_tool=context.register_tool,
            on=lambda hook, listener: context.on(hook, change(hook, listener)),
        )

    return _with_factory(load_extension, lambda factory: lambda c: factory(context_of(c)))
