"""The Python in the README and the tutorial runs, block after block, as a reader would type it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from penstock.embedded import EmbeddedPostgres

_REFERENCE = ("schedules", "topics", "events", "worker")
_ROOT = Path(__file__).parent.parent
_JOBS = _ROOT / "examples" / "jobs.py"
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
_SQL = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/how-to/worker.md"])
def test_python_of_a_page_runs(
    page: str,
    server: EmbeddedPostgres,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks = _BLOCK.findall((_ROOT / page).read_text())
    assert len(blocks) >= 3
    name = "examples_" + re.sub(r"\W", "_", page).lower()
    monkeypatch.setenv("DATABASE_URL", server.create_database(name))
    monkeypatch.chdir(tmp_path)  # where jobs.db is made
    names: dict[str, object] = {}
    try:
        for block in blocks:
            exec(compile(block, page, "exec"), names)
    finally:
        queue = names.get("queue")
        if queue is not None:
            queue.close()  # type: ignore[attr-defined]
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "page",
    [*(f"reference/{name}" for name in _REFERENCE), "how-to/schedules"],
)
def test_python_of_these_pages_runs(
    page: str, server: EmbeddedPostgres, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock import Queue

    url = server.create_database(page)
    names: dict[str, object] = {"url": url}
    if page.startswith("how-to"):
        names["queue"] = queue = Queue(url)
        queue.install()
    try:
        for block in _BLOCK.findall((_ROOT / f"docs/{page}.md").read_text()):
            exec(compile(block, page, "exec"), names)
    finally:
        names["queue"].close()  # type: ignore[attr-defined]
    assert capsys.readouterr().out


def test_sql_of_the_reference_runs(server: EmbeddedPostgres) -> None:
    from penstock import Queue

    url = server.create_database("examples_sql")
    with Queue(url, queue="receipts") as queue, psycopg.connect(url) as connection:
        queue.install()
        for block in _SQL.findall((_ROOT / "docs/reference/sql.md").read_text()):
            connection.execute(block)
        connection.execute("create table orders (id int, tenant text)")
        connection.execute(
            "create trigger placed after insert on orders "
            "for each row execute function order_placed()"
        )
        connection.execute("insert into orders values (7, 'acme')")
        connection.commit()
        (message,) = queue.claim(limit=10)
        assert message.json() == {"order": 7}
        assert message.channel == "acme"


def test_the_readme_shows_the_example_of_a_worker() -> None:
    code = _JOBS.read_text().split('"""\n\n', 1)[1]
    assert f"```py\n{code}```" in (_ROOT / "README.md").read_text()


def test_a_worker_as_the_readme_starts_it() -> None:
    """On the server that the README offers: a retry, a schedule, an end in good order."""
    with _process("penstock.embedded") as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip().removeprefix("export DATABASE_URL=")
        environment = {**os.environ, "DATABASE_URL": url}
        subprocess.run([sys.executable, _JOBS], env=environment, check=True, timeout=60)
        with _process("penstock.cli", "worker", "jobs:worker", env=environment) as worker:
            assert worker.stdout is not None
            lines = {worker.stdout.readline() for _ in range(2)}
            worker.send_signal(signal.SIGINT)
            assert worker.wait(60) == 0
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    assert lines == {"receipt for order 9184 of tenant-42\n", "the report\n"}


def _process(*words: str, env: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", *words]
    return subprocess.Popen(
        command,
        env=env,
        cwd=_JOBS.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*_ROOT.glob("*.md"), *_ROOT.glob("docs/**/*.md")]
    assert len(pages) > 20
    links = [(page, link) for page in pages for link in _LINK.findall(page.read_text())]
    lost = [
        f"{page.relative_to(_ROOT)}: {link}"
        for page, link in links
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert not lost
