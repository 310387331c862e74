"""The site is built without a warning: links, anchors and names of the API all lead somewhere."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, pages


@pytest.mark.repeats("make docs; a minute")
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    old = tmp_path / "0.0.9"
    old.mkdir()
    (old / "index.html").write_text("an older version")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_site.py", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    newest, older = json.loads((tmp_path / "versions.json").read_text())
    assert (newest["aliases"], older["version"]) == (["latest"], "0.0.9")
    site = tmp_path / newest["version"]
    assert f"url={newest['version']}/" in (tmp_path / "index.html").read_text()
    found = json.dumps(json.loads((site / "search.json").read_text()))
    assert "Limit a tenant" in found
    api = (site / "api" / "laneway" / "index.html").read_text()
    assert 'id="laneway.Queue.publish"' in api
    assert "&gt;&gt;&gt;" in api and "<blockquote>" not in api
    assert (site / "pictures" / "overview.png").is_file()
    for page in pages():
        if page.startswith("docs/"):
            name = page.removeprefix("docs/").removesuffix(".md").removesuffix("README")
            assert (site / name / "index.html").is_file(), page


def test_limiting_a_tenant_is_three_clicks_from_the_first_page() -> None:
    """The bar at the top, the list at the side, and the page's own heading."""
    lines = (ROOT / "docs" / "mkdocs.yml").read_text().splitlines()
    (page,) = [line for line in lines if line.endswith("- how-to/limits.md")]
    above = lines[: lines.index(page)]
    assert "  - How to:" in above
    assert "## Concurrency" in (ROOT / "docs/how-to/limits.md").read_text()
