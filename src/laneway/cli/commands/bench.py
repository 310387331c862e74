"""bench: measures throughput on a database, in a schema of its own."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.confirm import confirm
from laneway.cli.connect import open_config, settled
from laneway.cli.options import Json, Url, Yes
from laneway.cli.output import Column, emit, say, table

if TYPE_CHECKING:
    from laneway import Queue

_CHANNELS = 100
_SINGLE = 200


def bench(
    messages: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Number of messages.")
    ] = 20_000,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Messages per call.")] = 100,
    size: Annotated[int, typer.Option(min=1, max=1_000_000, help="Payload size in bytes.")] = 200,
    yes: Yes = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Measure throughput on your database from this machine.

    Uses a schema of its own, which is dropped afterwards.
    """
    from secrets import token_hex

    from laneway.drivers.errors import masked

    config = replace(settled(url, None), schema=f"laneway_bench_{token_hex(4)}")
    assert config.url is not None
    where = f"{masked(config.url)}, schema {config.schema}"
    confirm(f"Publish and complete {messages:,} messages at {where}, then drop it?", yes)
    with open_config(config) as client:
        try:
            client.install()
            rates = measured(client, messages, batch, bytes(size))
        finally:
            _drop(client)
    if as_json:
        emit({"messages": messages, "batch": batch, "payload_bytes": size, **rates})
    else:
        columns = (Column("step"), Column("messages/s", right=True))
        table(columns, [(name, f"{rate:,.0f}") for name, rate in rates.items()])
        say("Measured with one process and one connection; results vary with machine and load.")


def measured(client: "Queue", messages: int, batch: int, payload: bytes) -> dict[str, float]:
    """Messages per second of each step."""
    return {
        "publish_single": _rate(_SINGLE, lambda: _publish_single(client, payload)),
        "publish_batch": _rate(messages, lambda: _publish(client, messages, batch, payload)),
        "claim_complete": _rate(messages + _SINGLE, lambda: _drain(client, batch)),
    }


def _rate(count: int, work: Any) -> float:
    start = time.perf_counter()
    work()
    return round(count / (time.perf_counter() - start), 1)


def _publish_single(client: "Queue", payload: bytes) -> None:
    for number in range(_SINGLE):
        client.publish(payload, channel=f"c{number % _CHANNELS}")


def _publish(client: "Queue", messages: int, batch: int, payload: bytes) -> None:
    from laneway import NewMessage

    for start in range(0, messages, batch):
        numbers = range(start, min(start + batch, messages))
        client.publish_many([NewMessage(payload, channel=f"c{n % _CHANNELS}") for n in numbers])


def _drain(client: "Queue", batch: int) -> None:
    while claim := client.claim(batch):
        client.complete(claim)


def _drop(client: "Queue") -> None:
    from laneway.errors import SchemaMissing

    try:
        client.uninstall()
    except SchemaMissing:
        say("Nothing was installed, so there is nothing to drop.")
