"""The dashboard as a server of its own, for laneway dashboard."""

from laneway.errors import InvalidOption
from laneway.extras import needs

from .dashboard import Dashboard


def serve(dashboard: Dashboard, host: str, port: int) -> None:
    """Until Ctrl-C. An address that others reach needs a credential, or "insecure" said aloud."""
    access = dashboard.access
    open_to_others = host not in ("127.0.0.1", "localhost", "::1")
    if open_to_others and not (access.token or access.hook or access.insecure):
        raise InvalidOption(
            f"{host} can be reached by others: give --token, or --insecure if everybody may do "
            "everything"
        )
    with needs("laneway dashboard", "uvicorn and Starlette", "dashboard"):
        import uvicorn

        from .asgi import DashboardApp

    # Streams of hints do not end by themselves, so they are ended soon. Who is asking is decided by
    # the connection: a header of the client's must not change it.
    config = uvicorn.Config(
        DashboardApp(dashboard),
        host=host,
        port=port,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    dashboard.operations.begin()
    uvicorn.Server(config).run()
