"""The dashboard as an ASGI application, for Starlette, FastAPI and uvicorn."""

import asyncio
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from . import sign_in
from .access import HEADERS
from .dashboard import MOST_BODY, AnyDashboard
from .hints import stream
from .request import WebRequest, WebResponse

BODY_SECONDS = 20.0
"""In which a body has to arrive."""


class DashboardApp:
    """Mount it anywhere: it looks only at what comes after the mount.

    >>> app.mount("/queue", DashboardApp(Dashboard(queue, principal=who)))
    """

    def __init__(self, dashboard: AnyDashboard) -> None:
        self.dashboard = dashboard

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("the dashboard speaks HTTP only")
        try:
            answer = await self._answer(Request(scope, receive))
        except ClientDisconnect:
            return
        await native_response(answer)(scope, receive, send)

    async def _answer(self, request: Request) -> WebResponse:
        """The body is read of those who may send one, and without holding a thread meanwhile."""
        admitted = await run_in_threadpool(self.dashboard.admit, read_head(request))
        if isinstance(admitted, WebResponse):
            return admitted
        if admitted.method == "POST":
            body = await read_body(request, MOST_BODY if admitted.principal else sign_in.MOST_BODY)
            if isinstance(body, WebResponse):
                return body
            admitted = replace(admitted, body=body)
        return await run_in_threadpool(self.dashboard.respond, admitted)

    async def _lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await run_in_threadpool(self.dashboard.close)
        await send({"type": "lifespan.shutdown.complete"})


def read_head(request: Request) -> WebRequest:
    """Everything but the body."""
    return WebRequest(
        request.method,
        path_below(request.scope["path"], request.scope.get("root_path", "")),
        request.scope.get("query_string", b"").decode("ascii", "replace"),
        {name.lower(): value for name, value in request.headers.items()},
        client=request.client.host if request.client else None,
        native=request,
    )


async def read_body(request: Request, most: int) -> bytes | WebResponse:
    """The body, or the answer to one that is too large or too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    return _ended(413, "That is too large.")
    except TimeoutError:
        return _ended(408, "That took too long.")
    return bytes(body)


def _ended(status: int, text: str) -> WebResponse:
    """Nothing more is read of this connection."""
    headers = {**HEADERS, "connection": "close"}
    return WebResponse(status, text.encode(), "text/plain", headers)


def path_below(path: str, root: str) -> str:
    """Servers differ in whether the path still has the root in front."""
    rest = path.removeprefix(root) if root and path.startswith(root) else path
    return rest if rest.startswith("/") else f"/{rest}"


def native_response(answer: WebResponse) -> Response:
    headers = {**answer.headers, "content-type": answer.content_type}
    if answer.live is not None:
        headers["content-type"] = "text/event-stream"
        headers["x-accel-buffering"] = "no"
        return StreamingResponse(stream(answer.live), headers=headers)
    return Response(answer.body, answer.status, headers)
