"""A fresh file for each test that asks for one."""

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}?synchronous=normal"
