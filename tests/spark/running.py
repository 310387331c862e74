"""Programs under tests/spark/apps, as processes of their own."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark import __file__ as pyspark_file

APPS = Path(__file__).parent / "apps"
SUBMIT = Path(pyspark_file).parent / "bin" / "spark-submit"


def submitting() -> dict[str, str]:
    """The environment of spark-submit, which would take any ``python3`` of the PATH."""
    return {**os.environ, "PYSPARK_PYTHON": sys.executable}


def run_app(
    name: str,
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = (sys.executable,),
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, str(APPS / name), *map(str, arguments)],
        env=dict(os.environ) if environment is None else dict(environment),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def without_java(folder: Path) -> dict[str, str]:
    """This environment, as if no Java were installed: ``folder`` becomes a PATH with all but it."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for tool in Path(place).glob("[!j]*"):
            if not (folder / tool.name).exists():
                (folder / tool.name).symlink_to(tool)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAVA")}
    return {**kept, "PATH": str(folder)}
