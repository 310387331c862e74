"""dashboard: the pages in a browser; exporter: the numbers for Prometheus."""

import sys
from contextlib import AbstractContextManager
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laneway.cli.exits import Code
from laneway.cli.options import Json, Schema, Urls
from laneway.cli.output import emit, say
from laneway.cli.sources import open_named, sources

if TYPE_CHECKING:
    from laneway import Queue
    from laneway.exporter import Exporter


def dashboard(
    host: Annotated[str, typer.Option(help="Listen on this address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Listen on this port.")] = 8400,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="LANEWAY_DASHBOARD_TOKEN",
            show_default=False,
            help="Require this token, on the sign-in page or as a bearer token.",
        ),
    ] = None,
    trust_local: Annotated[
        bool,
        typer.Option(
            "--trust-local",
            help="Require no token from this machine, nor from anybody behind a proxy on it.",
        ),
    ] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Allow no changes.")] = False,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Give full access to everybody who can reach the address."),
    ] = False,
    trace_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            show_default=False,
            help="Link messages to their traces: a URL with {trace} in place of the trace id.",
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Start a temporary server with sample tenants and workers, and show it."
        ),
    ] = False,
    url: Urls = None,
    schema: Schema = None,
) -> None:
    """Serve the dashboard and its API until Ctrl-C.

    Without --token, it creates a token for this run and prints a link that signs you in. With
    several databases, the first page shows all of them, and each has its own pages.
    """
    from laneway.web import Dashboard, Dashboards
    from laneway.web.dashboard import AnyDashboard
    from laneway.web.server import check_reach, serve

    check_reach(host, said=bool(token or insecure))
    address = f"http://{_shown(host)}:{port}/"
    if not (token or trust_local or insecure):
        token = token_urlsafe(24)
        # Behind the #: browsers send that part to nobody.
        address += f"login#token={token}"
    options: dict[str, Any] = {"token": token, "trust_local": trust_local, "insecure": insecure}
    options |= {"read_only": read_only, "trace_url": trace_url}
    with _demo() if demo else open_named(sources(url, schema)) as found:
        several = isinstance(found, dict)
        make: Any = Dashboards if several else Dashboard
        pages: AnyDashboard = make(found, **options)
        say(f"Dashboard at {address} until Ctrl-C.")
        serve(pages, host, port)


def _demo() -> "AbstractContextManager[Queue]":
    from laneway.dev.demo.console import demo_queue

    say("Starting a temporary PostgreSQL with tenants and two workers ...")
    return demo_queue()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


_PORT = 9595


def exporter(
    host: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Listen on this address; 0.0.0.0 for all interfaces."),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Listen on this port; 0 picks a free one.")
    ] = _PORT,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=60, help="Seconds that a scrape waits for the database.")
    ] = 5.0,
    max_age: Annotated[
        float, typer.Option(min=0, max=300, help="Seconds for which an answer may be reused.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the metrics and exit.")] = False,
    url: Urls = None,
    schema: Schema = None,
    as_json: Json = False,
) -> None:
    """Serve metrics of all queues and workers for Prometheus.

    Serves /metrics, /livez and /readyz, on 127.0.0.1 unless --host is given. The role viewer is
    enough. With several databases, every sample has the label database.
    """
    from laneway.exporter import Exporter

    with open_named(sources(url, schema), looking=timeout) as opened:
        found = Exporter(opened, max_age=max_age, timeout=timeout)
        if once:
            _print(found, as_json)
        else:
            _serve(found, host, port, as_json)


def _print(found: "Exporter", as_json: bool) -> None:
    problems = found.problems()
    if as_json:
        for family in found.families():
            for sample in family.samples:
                emit({"name": sample.name, "labels": sample.labels, "value": sample.value})
    else:
        sys.stdout.write(found.scrape().decode())
    for problem in problems:
        say(f"laneway: {problem}")
    if problems:
        raise typer.Exit(Code.FAILED)


def _serve(found: "Exporter", host: str, port: int, as_json: bool) -> None:
    import asyncio
    import signal

    from laneway.cli.output import log_to_stderr

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await found.serve(host, port, stop)

    log_to_stderr(as_json=as_json)
    asyncio.run(serve())
