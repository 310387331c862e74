"""The dashboard as an ASGI application, for Starlette, FastAPI and uvicorn."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from .dashboard import MOST_BODY, AnyDashboard
from .hints import stream
from .request import WebRequest, WebResponse


class DashboardApp:
    """Mount it anywhere: it looks only at what comes after the mount.

    >>> app.mount("/queue", DashboardApp(Dashboard(queue)))
    """

    def __init__(self, dashboard: AnyDashboard) -> None:
        self.dashboard = dashboard

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("the dashboard speaks HTTP only")
        request = Request(scope, receive)
        try:
            given = await read_request(request)
        except ClientDisconnect:
            return
        answer = TOO_LARGE if given is None else None
        if given is not None:
            answer = await run_in_threadpool(self.dashboard.respond, given)
        assert answer is not None
        await native_response(answer)(scope, receive, send)

    async def _lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await run_in_threadpool(self.dashboard.close)
        await send({"type": "lifespan.shutdown.complete"})


TOO_LARGE = WebResponse(413, b"That is too large.", "text/plain")


async def read_request(request: Request) -> WebRequest | None:
    """None if the body is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            return None
    return WebRequest(
        request.method,
        path_below(request.scope["path"], request.scope.get("root_path", "")),
        request.scope.get("query_string", b"").decode("ascii", "replace"),
        {name.lower(): value for name, value in request.headers.items()},
        bytes(body),
        request.client.host if request.client else None,
        request,
    )


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
