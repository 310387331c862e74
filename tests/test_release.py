"""The wheel and the sdist: all that they need is in them, and nothing else."""

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.metadata import Metadata

import laneway
from scripts.check_dist import SMOKE

ROOT = Path(__file__).parent.parent
NAME = f"laneway-{laneway.__version__}"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return folder


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return {path for path in listed.stdout.splitlines() if (ROOT / path).exists()}


def test_the_wheel_has_every_file_of_the_package(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert wheel.name == f"laneway-{laneway.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(f"{NAME}.dist-info/METADATA")
    assert tracked("src") <= {f"src/{name}" for name in names}
    assert all(name.startswith(("laneway/", "pyspark_laneway/")) for name in names)
    found = Metadata.from_email(metadata, validate=True)
    assert found.license_expression == "Apache-2.0"
    assert found.description_content_type == "text/markdown"
    assert found.requires_dist and all(one.marker for one in found.requires_dist)
    assert "# Laneway" in str(message_from_bytes(metadata).get_payload())


def test_the_sdist_can_be_built_and_tested(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
    assert tracked("src", "tests", "deploy", "docs", "scripts") <= names
    assert {"README.md", "LICENSE", "Makefile", "pyproject.toml", "PKG-INFO"} <= names
    assert not [name for name in names if name.startswith((".venv", ".cache", "build", "dist"))]


def test_the_wheel_works_alone(dist: Path, tmp_path: Path) -> None:
    """Without a single other package: the core has no dependencies."""
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r})\n{SMOKE}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"laneway {laneway.__version__} works" in done.stdout
