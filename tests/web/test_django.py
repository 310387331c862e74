"""The dashboard in a Django site, under WSGI and ASGI."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_site_with_its_own_users(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.web.django_pages", str(tmp_path / "site.sqlite3")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "stranger": 403,
        "stranger's body": [403, False],
        "helper": 200,
        "helper acts": 403,
        "message": 200,
        "relative": True,
        "csp": True,
        "other site": 403,
        "acts": [303, "./channels?done"],
        "paused": True,
        "api": 1,
        "live": 204,
        "asgi": {
            "page": 200,
            "live": "text/event-stream",
            "first": "retry: 3000\nevent: hint\ndata: 0\n\n",
        },
    }
