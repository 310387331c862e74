"""What is shipped with Laneway is permissive or LGPL; vulnerabilities are looked up, or it is said
that they were not."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from scripts import audit
from scripts.audit import Package, main, runtime_packages, vulnerabilities


def test_every_licence_is_permissive_or_lgpl() -> None:
    packages = runtime_packages()
    assert {"psycopg", "asyncpg", "pyspark", "PyMySQL", "typer"} <= {p.name for p in packages}
    assert [package for package in packages if not package.fine] == []


@pytest.mark.parametrize(
    ("licence", "fine"),
    [
        ("MIT", True),
        ("Apache-2.0 OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("GNU General Public License v2 (GPLv2)", False),
        ("AGPL-3.0-only", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_which_licences_are_fine(licence: str, fine: bool) -> None:
    assert Package("x", "1", licence).fine is fine


class List(BaseHTTPRequestHandler):
    """Knows of one vulnerability, in asyncpg."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        results = [
            {"vulns": [{"id": "X-1"}]} if query["package"]["name"] == "asyncpg" else {}
            for query in asked["queries"]
        ]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"results": results}).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), List)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_known_vulnerability_fails(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vulnerabilities(runtime_packages(), address) == {"asyncpg": ["X-1"]}
    monkeypatch.setattr(audit.vulnerabilities, "__defaults__", (address,))
    assert main() == 1
    assert "asyncpg: X-1" in capsys.readouterr().out


def test_a_list_that_cannot_be_reached_is_not_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit.vulnerabilities, "__defaults__", ("http://127.0.0.1:1/",))
    assert main() == 3
    assert "NOT KNOWN" in capsys.readouterr().err
