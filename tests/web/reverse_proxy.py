"""A reverse proxy as ``proxy_pass http://127.0.0.1:8400;`` makes one: the Host is rewritten, and
nothing says that there is a proxy."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_NOT_PASSED_ON = {"host", "connection", "keep-alive", "transfer-encoding"}


class _Handler(BaseHTTPRequestHandler):
    upstream: int

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {n: v for n, v in self.headers.items() if n.lower() not in _NOT_PASSED_ON}
        headers |= {"Host": f"127.0.0.1:{self.upstream}", "Connection": "close"}
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=60)
        connection.request(self.command, self.path, body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _NOT_PASSED_ON | {"content-length"}:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_POST = do_GET  # noqa: N815, theirs

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def reverse_proxy(upstream: int) -> Iterator[int]:
    """The port of a proxy in front of that port."""
    handler = type("Handler", (_Handler,), {"upstream": upstream})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
