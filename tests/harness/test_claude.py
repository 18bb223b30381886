"""The client side: the request that is made, the reply that is taken, and the stand-in."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness.claude import KEY, ask_claude, connect
from harness.messages import Block
from harness.scripted import RecordingClient, scripted
from harness.subtask import child_tools

TEXT: Block = {"type": "text", "text": "hello"}


def test_request_holds_all_five_parts_and_is_recorded_as_it_was(tmp_path: Path) -> None:
    """Five parts go out, and what happens to the history later does not reach the record."""
    client = RecordingClient(scripted(lambda request: [TEXT]))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "q"}]
    assert ask_claude(client, "m", messages, child_tools(tmp_path), "SYSTEM") == [TEXT]
    messages.clear()
    request = client.requests[0]
    assert set(request) == {"model", "max_tokens", "system", "tools", "messages"}
    assert request["messages"] == [{"role": "user", "content": "q"}]
    assert (request["model"], request["system"]) == ("m", "SYSTEM")
    assert [tool["name"] for tool in request["tools"]] == ["read_file"]


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "pause_turn", None])
def test_incomplete_reply_is_no_reply(reason: str | None) -> None:
    """A reply that was cut short or refused raises before anything of it can be executed."""
    reply = SimpleNamespace(stop_reason=reason, content=[])
    with pytest.raises(RuntimeError):
        ask_claude(RecordingClient(lambda **_: reply), "m", [], {}, "")


def test_absent_fields_are_left_out() -> None:
    """Fields that the SDK fills with None are not sent back; a None deeper inside stays."""
    block = SimpleNamespace(model_dump=lambda mode: {
        "type": "tool_use", "id": "1", "name": "n", "input": {"a": None}, "caller": None})
    reply = SimpleNamespace(stop_reason="tool_use", content=[block])
    assert ask_claude(RecordingClient(lambda **_: reply), "m", [], {}, "") == [
        {"type": "tool_use", "id": "1", "name": "n", "input": {"a": None}}]


def test_connecting_needs_key_and_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the key, or without the package, connect says which is missing."""
    monkeypatch.delenv(KEY, raising=False)
    with pytest.raises(RuntimeError, match=KEY):
        connect()
    monkeypatch.setenv(KEY, "test")
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(RuntimeError, match="anthropic"):
        connect()
