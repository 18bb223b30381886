"""Lab 03.2: the functions that make messages, and the two that read them."""

import pytest
from pi_course import messages
from pi_course.errors import CourseError
from pi_course.stream import AssistantDraft, DraftCall, DraftText


def _call(id="call-1", name="read_file"):
    return messages.ToolCall(id, name, {"path": "a"})


def test_a_string_becomes_one_text_block():
    """A string is short for one text block, once and for all; other iterables keep their order."""
    hello = messages.TextBlock("hello")
    assert messages.user("hello", at=1) == messages.user([hello], at=1)
    assert messages.user("hello", at=1).content == (hello,)
    assert messages.user("", at=1).content == (messages.TextBlock(""),)
    assert messages.assistant("hello", at=1).content == (hello,)
    assert messages.tool_result(_call(), "hello", at=1).content == (hello,)
    words = (messages.text(word) for word in ["a", "b", "c"])
    assert [block.text for block in messages.user(words, at=1).content] == ["a", "b", "c"]


def test_no_maker_makes_an_illegal_message():
    """What the JSON door refuses cannot be made by a function either."""
    thought = messages.ThinkingBlock("hm")
    for make in [
        lambda: messages.user("x", at=True),
        lambda: messages.user([_call()], at=1),
        lambda: messages.user([thought], at=1),
        lambda: messages.user("\ud800", at=1),
        lambda: messages.assistant([_call(), _call(name="grep")], at=1),
        lambda: messages.assistant("x", stop="finished", at=1),
        lambda: messages.assistant("x", at=-1),
        lambda: messages.tool_result(_call(), [thought], at=1),
        lambda: messages.tool_result(_call(id=""), "x", at=1),
        lambda: messages.tool_result(_call(), "x", is_error=None, at=1),
    ]:
        with pytest.raises(CourseError) as caught:
            make()
        assert caught.value.code == "INVALID_MESSAGE"


def test_a_result_is_paired_by_id_and_name_when_it_is_an_error_too():
    """Good or bad, an answer carries both the id and the name of its call, and its details."""
    for is_error in [False, True]:
        answer = messages.tool_result(
            _call(), "gone", is_error=is_error, details={"code": ["X"]}, at=5
        )
        assert (answer.role, answer.call_id, answer.tool_name) == (
            "tool_result",
            "call-1",
            "read_file",
        )
        assert (answer.is_error, answer.timestamp) == (is_error, 5)
        assert answer.details == {"code": ("X",)}


def test_text_and_calls_are_read_apart():
    """text_of joins the text blocks alone, calls_of gives every call in order."""
    message = messages.assistant(
        [
            messages.ThinkingBlock("secret"),
            messages.text("first"),
            _call("c1"),
            messages.text("second"),
            _call("c2", "grep"),
        ],
        stop="tool_use",
        at=1,
    )
    assert messages.text_of(message) == "first\nsecond"
    assert messages.calls_of(message) == (_call("c1"), _call("c2", "grep"))
    picture = messages.user([messages.ImageBlock("image/png", "aGk=")], at=1)
    assert messages.text_of(picture) == ""
    assert messages.calls_of(picture) == ()
    assert messages.text_of(messages.tool_result(_call(), "42", at=1)) == "42"


def test_a_draft_becomes_a_message_whatever_the_model_did():
    """Blocks, stop and error are kept; calls that nobody could answer cost the calls, no crash."""
    blocks = (DraftText("let me see"), DraftCall("c1", "grep", {"q": "x"}), DraftText("and"))
    message = messages.assistant_from_draft(AssistantDraft(blocks, "tool_use"), at=3)
    call = messages.ToolCall("c1", "grep", {"q": "x"})
    assert message == messages.assistant(
        [messages.text("let me see"), call, messages.text("and")], stop="tool_use", at=3
    )
    cut = AssistantDraft((DraftText("let"),), "aborted", "stopped by the user")
    message = messages.assistant_from_draft(cut, at=4)
    assert (message.stop, message.error) == ("aborted", "stopped by the user")

    for wrong in [
        (DraftText("I try"), DraftCall("c1", "a", {}), DraftCall("c1", "b", {})),
        (DraftCall("", "a", {}), DraftText("I try")),
        (DraftCall("c1", "", {}), DraftText("I try")),
    ]:
        message = messages.assistant_from_draft(AssistantDraft(wrong, "tool_use"), at=5)
        assert messages.calls_of(message) == ()
        assert messages.text_of(message) == "I try"
        assert message.stop == "error" and message.error
    broken = AssistantDraft((DraftText("half a \ud83d"),), "stop")
    assert messages.text_of(messages.assistant_from_draft(broken, at=6)) == "half a ?"
