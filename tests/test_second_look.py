"""The second look of ``.ci/run`` runs the failed tests again, and only those."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "few_failed.py"

TESTS = """
import pytest

@pytest.mark.xdist_group("one group")
@pytest.mark.parametrize("url", ["user@host", "other"])
def test_fails_once(url, request):
    marker = request.path.parent / f"{url}.failed"
    if not marker.exists():
        marker.touch()
        raise AssertionError

@pytest.mark.xdist_group("two")
def test_passes(): ...
"""


def test_a_second_look_runs_only_what_failed(tmp_path: Path) -> None:
    (tmp_path / "test_grouped.py").write_text(TESTS)
    first = _run(tmp_path, "-m", "pytest", "-n1", "--dist", "loadgroup")
    assert "2 failed, 1 passed" in first.stdout, first.stdout
    named = _run(tmp_path, str(SCRIPT))
    assert named.returncode == 0 and "2 failed beside the others" in named.stdout, named
    second = _run(tmp_path, "-m", "pytest", "--last-failed", "--last-failed-no-failures", "none")
    assert " 2 passed in" in second.stdout, second.stdout


def test_no_second_look_without_a_failed_test(tmp_path: Path) -> None:
    assert _run(tmp_path, str(SCRIPT)).returncode == 1


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
