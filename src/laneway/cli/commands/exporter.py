"""exporter: the numbers of all queues and workers for Prometheus."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli.connect import check_file, open_config, settled
from laneway.cli.exits import Code
from laneway.cli.options import Json, Schema, Url
from laneway.cli.output import emit, say

if TYPE_CHECKING:
    from laneway.exporter import Exporter

_PORT = 9595


def exporter(
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Where it listens; 0.0.0.0 is every network."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free port.")] = _PORT,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=60, help="Seconds that a scrape waits for the database.")
    ] = 5.0,
    max_age: Annotated[
        float, typer.Option(min=0, max=300, help="Seconds for which an answer is given again.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the metrics and exit.")] = False,
    url: Url = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Serve the numbers of all queues and workers for Prometheus.

    /metrics, /livez and /readyz, on the loopback unless --host says otherwise. It needs only the
    rights of a viewer.
    """
    from laneway.client.shared.options import looking_url
    from laneway.exporter import Exporter

    config = settled(url, schema)
    check_file(config)
    looking = looking_url(config.url or "", config.pooler, timeout)
    with open_config(replace(config, url=looking), pool_size=1) as client:
        found = Exporter(client, max_age=max_age, timeout=timeout)
        if once:
            _print(found, as_json)
        else:
            _serve(found, host, port, as_json)


def _print(found: "Exporter", as_json: bool) -> None:
    reading = found.reading()
    if as_json:
        for family in found.families():
            for sample in family.samples:
                emit({"name": sample.name, "labels": sample.labels, "value": sample.value})
    else:
        sys.stdout.write(found.scrape().decode())
    if reading.problem is not None:
        say(f"laneway: {reading.problem}")
        raise typer.Exit(Code.FAILED)


def _serve(found: "Exporter", host: str, port: int, as_json: bool) -> None:
    import asyncio
    import signal

    from laneway.cli.logs import log_to_stderr

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await found.serve(host, port, stop)

    log_to_stderr(as_json=as_json)
    asyncio.run(serve())
