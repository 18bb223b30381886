"""Wrong implementations of chapter 12: one plausible slip each in the reference, and what sees it.

Each is (name, text of the reference, text in its place, tests that must fail). The text stands
exactly once in the reference; all other tests of its lab may fail or pass.
"""

from __future__ import annotations

from typing import NamedTuple


class Wrong(NamedTuple):
    """A slip: `old` of the reference becomes `new`, and every one of `fails` is red."""

    name: str
    old: str
    new: str
    fails: tuple[str, ...]


ROOTS = "test_the_callers_order_of_roots_decides"
NO_BODY = "test_a_catalogue_holds_no_skill_body_and_a_bad_file_costs_only_itself"
READS = "test_activation_reads_what_was_asked_for_and_nothing_else"
TEXT_OUT = "test_a_request_whose_text_leads_out_is_refused"
LINK_OUT = "test_a_link_that_leads_out_is_refused"
TEMPLATE = "test_a_template_becomes_one_user_message"
PROMPT = "test_only_what_is_active_speaks_in_the_one_system_prompt"
TRUST = "test_an_untrusted_source_is_never_imported"
WHOLE = "test_an_extension_appears_whole_or_not_at_all"
DENIED = "test_a_denied_call_never_reaches_the_core"
CLOSED = "test_a_gate_that_fails_stays_closed"
OBSERVERS = "test_observers_see_every_result_once_and_change_none"

WRONG = (
    Wrong(
        "the winner is overwritten",
        "winner = winners.setdefault(identity, resource)",
        "winner = winners[identity] = resource",
        (ROOTS,),
    ),
    Wrong(
        "the list is in the order of folders",
        "key=lambda item: (KINDS.index(item.kind), item.name)",
        "key=lambda item: (item.source.parent.name, item.name)",
        (ROOTS,),
    ),
    Wrong(
        "a second candidate in one root is dropped",
        "if other.source != resource.source:",
        "if False:",
        (ROOTS,),
    ),
    Wrong(
        "the body is kept",
        "order, _digest(data[:size]), None)",
        "order, _digest(data[:size]), _decode(source.read_bytes()[size:]))",
        (NO_BODY,),
    ),
    Wrong(
        "the whole file is decoded to find the header",
        "    found = _HEADER.match(data)\n",
        "    _decode(data)\n    found = _HEADER.match(data)\n",
        (NO_BODY,),
    ),
    Wrong(
        "CRLF ends no header",
        r"(?:\xef\xbb\xbf)?---\r?\n((?:.*\n)*?)---(?:\r?\n|\Z)",
        r"(?:\xef\xbb\xbf)?---\n((?:.*\n)*?)---(?:\n|\Z)",
        (NO_BODY,),
    ),
    Wrong(
        "a missing end is the end of the file",
        r"((?:.*\n)*?)---(?:\r?\n|\Z)",
        r"((?:.*\n)*?)(?:---(?:\r?\n|\Z)|(?=Do it))",
        (NO_BODY,),
    ),
    Wrong(
        "the name is not looked at again",
        "if name_now != name:",
        "if False:",
        (READS,),
    ),
    Wrong(
        "a repeated request is read again",
        "for request in dict.fromkeys(resources):",
        "for request in resources:",
        (READS,),
    ),
    Wrong(
        "requests are only joined",
        "path = contained(skill.root, request)",
        "path = Path(os.path.realpath(skill.root / request))",
        (TEXT_OUT, LINK_OUT),
    ),
    Wrong(
        "a prefix is taken for a folder",
        "path = contained(skill.root, request)",
        """path = Path(os.path.realpath(skill.root / request))
        if Path(request).is_absolute() or not request or not str(path).startswith(str(skill.root)):
            raise CourseError("PATH_ESCAPE", request)""",
        (TEXT_OUT,),
    ),
    Wrong(
        "only the text of a request is checked",
        "path = contained(skill.root, request)",
        """from pi_course.containment import lexical

        path = lexical(skill.root, request)
        if not path.exists():
            raise CourseError("NOT_FOUND", request)""",
        (LINK_OUT,),
    ),
    Wrong(
        "SKILL.md is read without a check",
        'source = contained(skill.root, "SKILL.md")',
        'source = skill.root / "SKILL.md"',
        (LINK_OUT,),
    ),
    Wrong(
        "the folder is believed to be where it was",
        "if os.path.realpath(skill.root) != str(skill.root):",
        "if False:",
        (LINK_OUT,),
    ),
    Wrong(
        "the arguments answer for themselves",
        "if missing := [name for name in names if name not in args]:",
        "args = {name: args[name] if hasattr(args, '__missing__') else args.get(name, '')\n"
        "            for name in names}\n"
        "    if missing := [name for name in names if name not in args]:",
        (TEMPLATE,),
    ),
    Wrong(
        "one replacement after the other",
        "return user(_PLACEHOLDER.sub(lambda place: args[place[1]], template.body), at=at)",
        "text = template.body\n"
        "    for name in names:\n"
        "        text = text.replace('{{' + name + '}}', args[name])\n"
        "    return user(text, at=at)",
        (TEMPLATE,),
    ),
    Wrong(
        "values are patterns",
        "return user(_PLACEHOLDER.sub(lambda place: args[place[1]], template.body), at=at)",
        "text = template.body\n"
        "    for name in names:\n"
        "        text = re.sub('{{' + name + '}}', args[name], text)\n"
        "    return user(text, at=at)",
        (TEMPLATE,),
    ),
    Wrong(
        "an activation is known by its name alone",
        "if (skill.name, skill.root, skill.entry) not in listed:",
        "if skill.name not in {name for name, _, _ in listed}:",
        (PROMPT,),
    ),
    Wrong(
        "text is not escaped",
        "{saxutils.escape(text)}",
        "{text}",
        (PROMPT,),
    ),
    Wrong(
        "the prompt keeps the order of activation",
        "active = sorted(activated, key=lambda skill: skill.name)",
        "active = list(activated)",
        (PROMPT,),
    ),
    Wrong(
        "an answer that is true is trust",
        "fault, answer = await _attempt(is_trusted, replace(source), expect=bool)",
        "fault, answer = await _attempt(is_trusted, replace(source))\n    answer = bool(answer)",
        (TRUST,),
    ),
    Wrong(
        "nobody to ask means yes",
        '        return LoadResult(source.id, "skipped_untrusted", (doubt,))\n',
        "        answer = doubt\n",
        (TRUST,),
    ),
    Wrong(
        "a factory that failed is committed too",
        "        staging._closed = True\n    host._commit(source.id, staging)\n",
        "        staging._closed = True\n        host._commit(source.id, staging)\n",
        (WHOLE,),
    ),
    Wrong(
        "tools are registered one by one",
        "        self._registry.register_all(staging._tools)\n",
        "        for tool in staging._tools:\n            self._registry.register(tool)\n",
        (WHOLE,),
    ),
    Wrong(
        "the context stays open",
        "        staging._closed = True\n",
        "        pass\n",
        (WHOLE,),
    ),
    Wrong(
        "only an Exception is a failure",
        "        return None, function(argument)\n    except BaseException as error:",
        "        return None, function(argument)\n    except Exception as error:",
        (CLOSED,),
    ),
    Wrong(
        "a Deny is just another answer",
        "if isinstance(verdict, Deny):",
        "if verdict is Deny:",
        (DENIED,),
    ),
    Wrong(
        "what is no Deny is an Allow",
        'expect = HookDecision if hook == "before_tool_call" else object',
        "expect = object",
        (CLOSED,),
    ),
    Wrong(
        "a fault is reported and passes",
        '                    return _blocked(call, ctx, "HOOK_FAILED", owner, fault)\n',
        "                    continue\n",
        (CLOSED,),
    ),
    Wrong(
        "plain hooks are called in the loop",
        "in_thread=timeout is not None",
        "in_thread=False",
        (CLOSED,),
    ),
    Wrong(
        "a report that fails is a failure of the call",
        "            await _attempt(self._report, diagnostic)\n",
        "            self._report(diagnostic)\n",
        (CLOSED,),
    ),
    Wrong(
        "observers see only what went well",
        "            for owner, observer in observers:\n",
        "            for owner, observer in [] if result.is_error else observers:\n",
        (OBSERVERS,),
    ),
    Wrong(
        "the first observer that fails is the last",
        'await self._ask("after_tool_result", owner, observer, _copy(call, result))',
        'if (await self._ask("after_tool_result", owner, observer, result))[0]:\n'
        "                    break",
        (OBSERVERS,),
    ),
    Wrong(
        "an observer's failure is the result",
        'await self._ask("after_tool_result", owner, observer, _copy(call, result))',
        'if (await self._ask("after_tool_result", owner, observer, result))[0]:\n'
        '                    result = _blocked(call, ctx, "HOOK_FAILED", owner, "observer")',
        (OBSERVERS,),
    ),
    Wrong(
        "a core that raises ends the run",
        "    except (Exception, SystemExit) as error:\n        return error_result(",
        "    except SystemExit as error:\n        return error_result(",
        (OBSERVERS,),
    ),
    Wrong(
        "four dashes are a fence",
        r"(?:\xef\xbb\xbf)?---\r?\n((?:.*\n)*?)---(?:\r?\n|\Z)",
        r"(?:\xef\xbb\xbf)?-{3,}\r?\n((?:.*\n)*?)-{3,}(?:\r?\n|\Z)",
        (NO_BODY,),
    ),
    Wrong(
        "SKILL.md may be a link to anywhere in the root",
        'source = contained(place, "SKILL.md")',
        'source = contained(root, f"{request}/SKILL.md")',
        (NO_BODY,),
    ),
    Wrong(
        "a key twice is overwritten",
        "if field is None or field[1] in fields:",
        "if field is None:",
        (NO_BODY,),
    ),
    Wrong(
        "a header may be longer than its limit",
        "if found is None or found.end() > limits.header_bytes:",
        "if found is None:",
        (NO_BODY,),
    ),
    Wrong(
        "a file may be longer than its limit",
        "if whole and len(data) > limit:",
        "if False:",
        (NO_BODY, READS),
    ),
    Wrong(
        "what is not UTF-8 is replaced",
        'return data.decode("utf-8-sig").replace("\\r\\n", "\\n")',
        'return data.decode("utf-8-sig", "replace").replace("\\r\\n", "\\n")',
        (NO_BODY, READS),
    ),
    Wrong(
        "CRLF is kept in a body",
        "body = _decode(data[size:])",
        'body = data[size:].decode("utf-8")',
        (READS,),
    ),
    Wrong(
        "only the place and the name of an activation are looked at",
        "if (skill.name, skill.root, skill.entry) not in listed:",
        "if (skill.name, skill.root) not in {(name, root) for name, root, _ in listed}:",
        (PROMPT,),
    ),
    Wrong(
        "rules are believed",
        'sections = [_section("instructions", i.name, i.body or "") for i in catalog.instructions]',
        'sections = [f"<rules>{i.body}</rules>" for i in catalog.instructions]',
        (PROMPT,),
    ),
    Wrong(
        "an active body is believed",
        'sections.append(_section("active_skill", skill.name, skill.body))',
        'sections.append(f"<skill>{skill.body}</skill>")',
        (PROMPT,),
    ),
    Wrong(
        "a file is believed",
        'sections.append(_section("skill_file", f"{skill.name}/{file.request}", file.content))',
        'sections.append(f"<file>{file.content}</file>")',
        (PROMPT,),
    ),
    Wrong(
        "a request is believed",
        'sections.append(_section("skill_file", f"{skill.name}/{file.request}", file.content))',
        'sections.append(file.request + _section("skill_file", skill.name, file.content))',
        (PROMPT,),
    ),
    Wrong(
        "the source is not looked at again",
        "if _fingerprint(source.path) != asked_about:",
        "if False:",
        (TRUST,),
    ),
    Wrong(
        "only the content of the source is compared",
        "        return real, _digest(Path(real).read_bytes()) if Path(real).is_file() else None\n",
        '        return "", _digest(Path(real).read_bytes()) if Path(real).is_file() else None\n',
        (TRUST,),
    ),
    Wrong(
        "any host will do",
        "if not isinstance(host, _Host):",
        "if not isinstance(host, _Host):\n        host = _Host(ToolRegistry(), 1, print)\n"
        "    if False:",
        (TRUST,),
    ),
    Wrong(
        "an import may take as long as it likes",
        "module = await _demand(import_module, replace(source), timeout)",
        "module = await _demand(import_module, replace(source), None)",
        (WHOLE,),
    ),
    Wrong(
        "a factory may take as long as it likes",
        "await _demand(factory, staging, timeout)",
        "await _demand(factory, staging, None)",
        (WHOLE,),
    ),
    Wrong(
        "any hook will do",
        "if hook not in get_args(HookName) or not callable(listener):",
        "if False:",
        (WHOLE,),
    ),
    Wrong(
        "hooks go in at once",
        "    staging = _Staging()\n",
        "    staging = _Staging()\n"
        "    host._hooks[f'live-{len(host._hooks)}'] = staging._hooks\n",
        (WHOLE, DENIED),
    ),
    Wrong(
        "a Deny has no text",
        "result = error_result(call, code, reason, at=ctx.clock.now_ms())",
        'result = error_result(call, code, "", at=ctx.clock.now_ms())',
        (DENIED,),
    ),
    Wrong(
        "who stopped a call is not told",
        '{"code": code, "extension_id": owner, "reason": reason}',
        '{"code": code, "reason": reason}',
        (DENIED, CLOSED),
    ),
    Wrong(
        "an answer of core is its result, whatever it is",
        "if (result.call_id, result.tool_name) == (call.id, call.name):",
        "if True:",
        (OBSERVERS,),
    ),
    Wrong(
        "a core that exits ends the program",
        "    except (Exception, SystemExit) as error:\n        return error_result(",
        "    except Exception as error:\n        return error_result(",
        (OBSERVERS,),
    ),
    Wrong(
        "gates share the call",
        'await self._ask("before_tool_call", owner, gate, replace(call))',
        'await self._ask("before_tool_call", owner, gate, call)',
        (OBSERVERS,),
    ),
    Wrong(
        "observers share the result",
        'await self._ask("after_tool_result", owner, observer, _copy(call, result))',
        'await self._ask("after_tool_result", owner, observer, result)',
        (OBSERVERS,),
    ),
    Wrong(
        "hooks are those of the time of wrapping",
        "        async def execute(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:\n"
        '            gates = self._listeners("before_tool_call")\n'
        '            observers = self._listeners("after_tool_result")\n',
        '        gates = self._listeners("before_tool_call")\n'
        '        observers = self._listeners("after_tool_result")\n\n'
        "        async def execute(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:\n",
        (DENIED, CLOSED, OBSERVERS),
    ),
)
