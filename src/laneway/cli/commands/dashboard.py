"""dashboard: the operator's pages in a browser."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli.connect import open_queue
from laneway.cli.options import Schema, Url
from laneway.cli.output import say

if TYPE_CHECKING:
    from laneway import Queue


def dashboard(
    host: Annotated[str, typer.Option(help="Listen on this address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Listen on this port.")] = 8400,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="LANEWAY_DASHBOARD_TOKEN",
            show_default=False,
            help="Ask for this token, as the password of any name or as a bearer token.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show everything, change nothing.")
    ] = False,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Let everybody who can reach the address do everything."),
    ] = False,
    trace_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            show_default=False,
            help="Link traces of messages: an address with {trace} where the trace's id goes.",
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Show a temporary server with tenants and workers at work."),
    ] = False,
    url: Url = None,
    schema: Schema = None,
) -> None:
    """Serve the dashboard and its API until Ctrl-C.

    Without --token only this machine is let in.
    """
    from laneway.web import Dashboard
    from laneway.web.standalone import serve

    with _demo() if demo else open_queue(url, schema) as client:
        pages = Dashboard(
            client, token=token, insecure=insecure, read_only=read_only, trace_url=trace_url
        )
        say(f"Dashboard at http://{_shown(host)}:{port}/ until Ctrl-C.")
        serve(pages, host, port)


def _demo() -> "AbstractContextManager[Queue]":
    from laneway.dev.demo.console import demo_queue

    say("Starting a temporary PostgreSQL with tenants and two workers ...")
    return demo_queue()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
