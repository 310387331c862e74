"""The worker of the README, started as the README says, and the links between the pages."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_JOBS = _ROOT / "examples" / "jobs.py"
_LINK = re.compile(r"\]\(([^)#]*)#?([^)]*)\)")


def test_the_readme_shows_the_example_of_a_worker() -> None:
    code = _JOBS.read_text().split('"""\n\n', 1)[1]
    assert f"```python\n{code}```" in (_ROOT / "README.md").read_text()


@pytest.mark.repeats("the README's blocks run in tests/docs")
def test_a_worker_as_the_readme_starts_it() -> None:
    """On the server that the README offers: a retry, a schedule, an end in good order."""
    with _process("laneway.cli", "dev", "postgresql", "--temporary") as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip().removeprefix("export DATABASE_URL=")
        environment = {**os.environ, "DATABASE_URL": url}
        subprocess.run([sys.executable, _JOBS], env=environment, check=True, timeout=60)
        with _process("laneway.cli", "worker", "jobs", env=environment) as worker:
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
    lost = [
        f"{page.relative_to(_ROOT)}: {link}#{heading}"
        for page in pages
        for link, heading in _LINK.findall(page.read_text())
        if "://" not in link and not _leads_somewhere(page, link, heading)
    ]
    assert not lost


def _leads_somewhere(page: Path, link: str, heading: str) -> bool:
    target = page.parent / link if link else page
    return target.exists() and (not heading or heading in _anchors(target))


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them: small letters, hyphens for spaces, no other signs."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
