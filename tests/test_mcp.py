"""The MCP server, asked by the SDK's own client: in the process, and over pipes."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from laneway import Queue
from laneway.integrations.mcp import make_server

CHANGES = {"pause_channel", "resume_channel", "limit_channel", "redrive", "run_now", "cancel"}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'queue.db'}"


@pytest.fixture
def queue(url: str) -> Iterator[Queue]:
    with Queue(url) as queue:
        queue.install()
        queue.publish({"secret": "abc"}, channel="tenant-42", kind="mail")
        queue.publish({"secret": "def"}, channel="tenant-43", kind="mail", delay=3600)
        queue.publish({"secret": "ghi"}, channel="tenant-44", kind="mail")
        for message in queue.claim(2):
            if message.channel == "tenant-44":
                message.fail("no such address")
            else:
                message.give_back()
        yield queue


async def ask(client: Client, tool: str, **given: Any) -> Any:
    answer = await client.call_tool(tool, given)
    (content,) = answer.content
    assert not answer.is_error, content.text
    return json.loads(content.text)


def asked(server: Any, tool: str, **given: Any) -> Any:
    async def run() -> Any:
        async with Client(server) as client:
            return await ask(client, tool, **given)

    return asyncio.run(run())


def named(server: Any) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        async with Client(server) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    return asyncio.run(run())


def test_it_only_looks_unless_it_is_told_otherwise(queue: Queue) -> None:
    tools = named(make_server(queue))
    assert not CHANGES & tools.keys()
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools.values())
    more = named(make_server(queue, allow_changes=True))
    assert more.keys() == tools.keys() | CHANGES
    assert [name for name in CHANGES if more[name].annotations.destructive_hint] == ["cancel"]


def test_what_it_shows(queue: Queue) -> None:
    server = make_server(queue)
    (stats,) = asked(server, "queues")
    assert (stats["waiting"], stats["scheduled"], stats["dead"]) == (1, 1, 1)
    (waiting,) = asked(server, "messages", state="waiting")
    assert (waiting["channel"], waiting["kind"]) == ("tenant-42", "mail")
    found = asked(server, "message", id=waiting["id"])
    assert found["message"]["id"] == waiting["id"]
    (dead,) = asked(server, "dead_letters")
    assert dead["reason"] == "no such address"
    assert asked(server, "dead_letter_groups")
    assert {c["channel"] for c in asked(server, "channels")} >= {"tenant-42"}
    assert asked(server, "workers") == []
    assert isinstance(asked(server, "problems"), list)


def test_payloads_are_hidden(queue: Queue) -> None:
    """One is shown at a time, and only by a server that may."""
    assert "payload" not in named(make_server(queue))
    server = make_server(queue, payloads=True)
    (dead,) = asked(server, "dead_letters")
    assert not dead["payload"]
    content = queue.payload(dead["id"])
    assert content
    assert asked(server, "payload", id=dead["id"]) == content.decode()


def test_changes_are_in_the_audit(queue: Queue) -> None:
    server = make_server(queue, allow_changes=True, name="assistant")
    asked(server, "pause_channel", channel="tenant-42")
    assert queue.channel("tenant-42").policy().paused
    asked(server, "resume_channel", channel="tenant-42")
    asked(server, "limit_channel", channel="tenant-42", concurrency=5)
    asked(server, "limit_channel", channel="tenant-42", rate=2)
    policy = queue.channel("tenant-42").policy()
    assert (policy.concurrency, policy.rate) == (5, 2)
    (dead,) = queue.messages(state="dead")
    asked(server, "redrive", ids=[dead.id])
    (later,) = queue.messages(state="scheduled")
    asked(server, "run_now", ids=[later.id])
    asked(server, "cancel", ids=[later.id])
    assert {info.id for info in queue.messages()} >= {dead.id} and not queue.messages(state="dead")
    audit = queue.audit()
    assert len(audit) == 7 and {entry.actor for entry in audit} == {"assistant"}


def test_errors_are_told(queue: Queue) -> None:
    async def run() -> Any:
        async with Client(make_server(queue)) as client:
            return await client.call_tool("messages", {"queue": ""})

    answer = asyncio.run(run())
    assert answer.is_error and "the queue is empty" in answer.content[0].text


def test_over_pipes(queue: Queue, url: str) -> None:
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "laneway.integrations.mcp"],
        env={**os.environ, "DATABASE_URL": url},
    )

    async def run() -> Any:
        async with Client(stdio_client(program)) as client:
            return await ask(client, "queues")

    assert asyncio.run(run())[0]["waiting"] == 1


def test_a_database_without_a_schema(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "laneway.integrations.mcp",
            "--url",
            f"sqlite:///{tmp_path / 'a.db'}",
        ],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 1
    assert "laneway install" in done.stderr and "Traceback" not in done.stderr
