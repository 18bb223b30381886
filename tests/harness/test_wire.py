"""The real SDK against a server of our own: what is sent, request by request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest
from harness.messages import Block, tool_calls
from harness.practice import SHIPPED, run_practice
from harness.script import is_parent, script

PINNED = "1.13.0"  # the version of the extra `live`
anthropic = pytest.importorskip(
    "anthropic", reason=f"THE WIRE IS NOT TESTED: install the extra live (anthropic=={PINNED})"
)

BODY = (SHIPPED / "skills" / "output-check" / "SKILL.md").read_text(encoding="utf-8")
SQL_LINE = "# SQL 书写约定"
CATALOGUE = "可用技能（仅目录）："

Create = Callable[..., Any]
Requests = list[dict[str, Any]]


@contextmanager
def _server(reply: Callable[[dict[str, Any]], list[Block]]) -> Iterator[tuple[Create, Requests]]:
    """The SDK's create function on a local server that answers from `reply`, and what it got."""
    requests: Requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            requests.append({"path": self.path, "key": self.headers["x-api-key"], **body})
            content = reply(body)
            answer = json.dumps({
                "id": f"msg_{len(requests)}", "type": "message", "role": "assistant",
                "model": body["model"], "content": content, "stop_sequence": None,
                "stop_reason": "tool_use" if tool_calls(content) else "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        with anthropic.Anthropic(api_key="test-key", base_url=url, max_retries=0) as client:
            yield client.messages.create, requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def _result_ids(messages: list[dict[str, Any]]) -> list[str]:
    return [block["tool_use_id"] for message in messages if isinstance(message["content"], list)
            for block in message["content"] if block["type"] == "tool_result"]


def _asked_ids(messages: list[dict[str, Any]]) -> list[str]:
    return [block["id"] for message in messages if message["role"] == "assistant"
            for block in tool_calls(message["content"])]


def test_sdk_is_the_pinned_one() -> None:
    """What is proved here is proved for one version, the one that the extra installs."""
    assert anthropic.__version__ == PINNED


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_eight_requests_and_what_they_hold(decision: str) -> None:
    """Eight requests: catalogue in system, body after its load, SQL's never, ids paired."""
    with _server(script()) as (create, requests):
        report = run_practice(create, decision=decision, model="some-model")

    parent = [request for request in requests if is_parent(request)]
    child = [request for request in requests if not is_parent(request)]
    assert (len(requests), len(parent), len(child)) == (8, 5, 3)
    assert (report.outcome.stop, report.program_ran) == ("final", decision == "allow")
    assert {(request["path"], request["key"], request["model"]) for request in requests} == {
        ("/v1/messages", "test-key", "some-model")}

    assert len({request["system"] for request in parent}) == 1
    assert all(CATALOGUE in request["system"] for request in parent)
    assert not any(CATALOGUE in request["system"] for request in child)
    assert not any(CATALOGUE in str(request["messages"]) for request in requests)

    bodies = [[block["content"] for message in request["messages"]
               if isinstance(message["content"], list) for block in message["content"]
               if block["type"] == "tool_result"].count(BODY) for request in parent]
    assert bodies == [0, 1, 1, 1, 1]
    assert not any("# 核对程序输出" in str(request) for request in child)
    assert SQL_LINE not in str(requests)
    assert str(SHIPPED) not in str(requests)

    for request in requests:
        assert _asked_ids(request["messages"]) == _result_ids(request["messages"])
    assert _asked_ids(parent[-1]["messages"]) == [
        "toolu_parent_skill", "toolu_parent_plan", "toolu_parent_task", "toolu_parent_read",
        "toolu_parent_run"]
    assert _asked_ids(child[-1]["messages"]) == ["toolu_child_0", "toolu_child_1"]
    run = parent[-1]["messages"][-1]["content"][0]
    assert (run["tool_use_id"], run["is_error"]) == ("toolu_parent_run", decision == "deny")


def test_history_grows_by_pairs_and_is_sent_back_as_it_was() -> None:
    """Each parent request is the one before without its plan, and one reply with its results."""
    with _server(script()) as (create, requests):
        run_practice(create, decision="allow")

    def without_plan(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [message if isinstance(message["content"], str) else {
            **message, "content": [block for block in message["content"]
                                   if not str(block.get("text", "")).startswith("当前清单")]}
            for message in messages]

    parent = [without_plan(request["messages"]) for request in requests if is_parent(request)]
    for earlier, later in pairwise(parent):
        assert later[: len(earlier)] == earlier
        assert [message["role"] for message in later[len(earlier):]] == ["assistant", "user"]


def test_unknown_skill_is_answered_over_the_wire() -> None:
    """An unknown name is an is_error result under the id of its request."""
    with _server(script("missing")) as (create, requests):
        run_practice(create, decision="allow")
    result = requests[1]["messages"][-1]["content"][0]
    assert (len(requests), result["tool_use_id"], result["is_error"], result["content"]) == (
        2, "toolu_parent_skill", True, "未知技能名称。")


def test_reply_that_was_cut_is_not_executed() -> None:
    """max_tokens in the middle of a request ends the run with an error, nothing done."""
    with _server(script()) as (create, requests):
        def cut(**request: Any) -> Any:
            return create(**request).model_copy(update={"stop_reason": "max_tokens"})

        with pytest.raises(RuntimeError, match="max_tokens"):
            run_practice(cut, decision="allow")
    assert len(requests) == 1
