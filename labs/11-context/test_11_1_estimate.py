"""Lab 11.1: how much room something takes, before anybody has asked the model."""

from pi_course import context
from pi_course.messages import (
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    assistant,
    tool_result,
    user,
)
from pi_course.schema import ToolSpec


def test_a_text_is_a_third_of_its_bytes_rounded_up():
    """Bytes, not characters: a Chinese character is one token, three English letters are one."""
    sizes = {"": 0, "a": 1, "abc": 1, "abcd": 2, "你": 1, "你好吗": 3, "é": 1, "\U0001f642": 2}
    assert {text: context.estimate_tokens(text) for text in sizes} == sizes
    assert context.estimate_tokens("word " * 3_000) == 5_000
    assert context.estimate_tokens(TextBlock("abcd")) == 2
    assert context.estimate_tokens(ThinkingBlock("abcd")) == 2


def test_a_message_is_its_blocks_and_a_little_more():
    """All blocks count, a call with its name and its arguments; what no model sees does not."""
    estimate, extra = context.estimate_tokens, context.MESSAGE_TOKENS
    call = ToolCall("a-very-long-call-id", "grep", {"b": 1, "a": "你"})
    assert estimate(call) == estimate("grep") + estimate('{"a":"你","b":1}') == 2 + 6
    assert estimate(user("", at=1)) == extra
    assert estimate(user([TextBlock("abcd"), TextBlock("abcd")], at=9)) == extra + 4
    assert estimate(assistant([ThinkingBlock("abc"), TextBlock("abc"), call], at=1)) == extra + 10
    result = tool_result(call, "abcdefg", is_error=True, details={"for": "the host" * 99}, at=1)
    assert estimate(result) == extra + 3


def test_pictures_tools_and_plain_json_have_a_size_too():
    """A picture counts the same whatever its bytes; a tool counts all that the model reads."""
    estimate = context.estimate_tokens
    small, large = ImageBlock("image/png", "QUJD"), ImageBlock("image/png", "QUJD" * 50_000)
    assert estimate(small) == estimate(large) == context.IMAGE_TOKENS
    seen = user([TextBlock("abc"), large], at=1)
    assert estimate(seen) == context.MESSAGE_TOKENS + 1 + context.IMAGE_TOKENS
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    spec = ToolSpec("grep", "find a text", schema, "read")
    written = '{"properties":{"q":{"type":"string"}},"type":"object"}'
    assert estimate(spec) == estimate("grep") + estimate("find a text") + estimate(written)
    assert estimate({"b": [1, None], "a": True}) == estimate('{"a":true,"b":[1,null]}')
