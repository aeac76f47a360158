"""The loopback Messages API: what it answers, what it remembers, and that it stays on this machine."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Cut, Garble, Refuse, Say, Tokens

PATIENCE_S = 90


def post(api: MessagesApi, path: str = "/v1/messages?beta=true", **body: Any) -> bytes:
    request = urllib.request.Request(
        api.url + path,
        data=json.dumps({"messages": [], **body}).encode(),
        headers={"content-type": "application/json", "X-Api-Key": "dummy"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        return bytes(response.read())


def events(stream: bytes) -> list[dict[str, Any]]:
    lines = stream.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def test_answer_comes_whole_to_who_does_not_stream() -> None:
    with MessagesApi(Say(text="hello", calls=(Call("Bash", {"command": "ls"}),))) as api:
        answer = json.loads(post(api))

    assert [block["type"] for block in answer["content"]] == ["text", "tool_use"]
    assert answer["content"][1]["input"] == {"command": "ls"}
    assert answer["stop_reason"] == "tool_use"


def test_answer_streams_block_by_block_with_its_usage_at_the_end() -> None:
    said = Say(thinking="hm", text="hello", tokens=Tokens(input=7, output=3))
    with MessagesApi(said) as api:
        found = events(post(api, stream=True))

    kinds = [event["type"] for event in found]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == 2
    assert found[0]["message"]["usage"]["input_tokens"] == 7
    assert found[-2]["usage"] == {"output_tokens": 3}
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    assert {"type": "text_delta", "text": "hello"} in deltas
    assert any(delta.get("signature") for delta in deltas)


def test_long_text_arrives_in_pieces_that_make_it_up() -> None:
    text = "x" * 3_000_000
    with MessagesApi(Say(text=text)) as api:
        found = events(post(api, stream=True))

    pieces = [event["delta"]["text"] for event in found if event["type"] == "content_block_delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == text


def test_answers_come_in_order_and_the_last_again() -> None:
    with MessagesApi(Say(text="one"), Say(text="two")) as api:
        texts = [json.loads(post(api))["content"][0]["text"] for _ in range(3)]
        names = {json.loads(post(api))["id"] for _ in range(2)}

    assert texts == ["one", "two", "two"]
    assert len(names) == 2


def test_requests_are_remembered_with_every_text_in_them() -> None:
    content = [
        {"type": "text", "text": "b"},
        {"type": "tool_result", "content": [{"type": "text", "text": "c"}]},
        {"type": "image"},
    ]
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": content}]
    with MessagesApi(Say(text="x")) as api:
        post(api, messages=messages)
        assert api.wait_until_asked(1)
        assert not api.wait_until_asked(2, timeout_s=0)

    (asked,) = api.asked
    assert asked.texts == ["a", "b", "c"]
    assert asked.headers["x-api-key"] == "dummy"
    assert asked.path == "/v1/messages?beta=true"


@pytest.mark.parametrize("status", [401, 403, 429, 500, 529])
def test_refusal_has_its_status_and_kind(status: int) -> None:
    with (
        MessagesApi(Refuse(status=status, message="no", retry_after_s=9)) as api,
        pytest.raises(urllib.error.HTTPError) as caught,
    ):
        post(api)

    with caught.value as error:
        said = json.loads(error.read())
    assert error.code == status
    assert error.headers["retry-after"] == "9"
    assert error.headers["x-should-retry"] == "false"
    assert said["error"]["message"] == "no"
    assert said["error"]["type"].endswith("_error")


def test_refusal_may_leave_trying_again_to_the_client() -> None:
    with (
        MessagesApi(Refuse(status=429, may_retry=True)) as api,
        pytest.raises(urllib.error.HTTPError) as caught,
    ):
        post(api)

    with caught.value as error:
        assert error.headers["x-should-retry"] is None


@pytest.mark.parametrize("cut", list(Cut))
def test_connection_breaks_where_the_script_says(cut: Cut) -> None:
    with (
        MessagesApi(Say(text="hello", drop=cut)) as api,
        pytest.raises((http.client.HTTPException, OSError)),
    ):
        post(api, stream=True)

    assert len(api.asked) == 1


def test_garbled_answer_is_sent_as_it_is() -> None:
    with MessagesApi(Garble(body=b"<p>")) as api:
        assert post(api) == b"<p>"


def test_held_answer_waits_until_it_is_let_go() -> None:
    gate = threading.Event()
    with MessagesApi(Say(text="hello", hold=gate)) as api:
        connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=PATIENCE_S)
        connection.request("POST", "/v1/messages", json.dumps({"messages": [], "stream": True}))
        response = connection.getresponse()
        begun = response.readline() + response.readline()
        gate.set()
        rest = response.read()
        connection.close()

    assert b"message_start" in begun
    assert events(rest)[-1]["type"] == "message_stop"


def test_server_closes_although_an_answer_is_held() -> None:
    with MessagesApi(Say(text="hello", hold=threading.Event())) as api:
        connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=PATIENCE_S)
        connection.request("POST", "/v1/messages", json.dumps({"messages": [], "stream": True}))
        assert api.wait_until_asked(1)

    connection.close()


def test_tokens_are_counted_and_other_places_are_not_there() -> None:
    with MessagesApi(Say(text="x")) as api:
        counted = json.loads(post(api, "/v1/messages/count_tokens", messages=[{"content": "abc"}]))
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(api, "/v1/elsewhere")
        caught.value.close()

    assert counted["input_tokens"] > 0
    assert caught.value.code == 404
    assert api.asked == []


def test_it_listens_on_the_loopback_interface_only() -> None:
    with MessagesApi(Say(text="x")) as api:
        assert api.url.startswith("http://127.0.0.1:")


def test_script_without_answers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one answer"):
        MessagesApi()
