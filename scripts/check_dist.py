"""Installs the built wheel and sdist into empty environments and uses them.

``python scripts/check_dist.py [FOLDER]`` looks for both in ``dist``, and takes every interpreter
from 3.11 on that is at hand.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INTERPRETERS = ("python3.11", "python3.12", "python3.13", "python3.14")

# 3.12.0 to 3.12.3 take SQLite's ?1 for a named parameter; later ones do not.
OF_PYTHON_3_12 = "ignore:Binding:DeprecationWarning"

SMOKE = """
import sys
from laneway import Queue, Worker, __version__

queue = Queue("sqlite:///smoke.db")
queue.install()
worker = Worker(queue)
done = []

@worker.handler
def receipt(order: dict) -> None:
    done.append(order["id"])

queue.publish({"id": 9182}, channel="tenant-42", kind="receipt")
worker.run(until_empty=True)
queue.close()
assert done == [9182], done
print("laneway", __version__, "works on Python", sys.version.split()[0])
"""


def interpreters() -> list[str]:
    """Those that really run: a name may belong to a version manager that has no such version."""
    found = [path for name in INTERPRETERS if (path := shutil.which(name))]
    return [path for path in found if _runs(path)] or [sys.executable]


def _runs(path: str) -> bool:
    return subprocess.run([path, "-c", "import venv"], capture_output=True).returncode == 0


def check(python: str, package: Path) -> None:
    """Installs it with the command line and the async driver of SQLite, and handles a message."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subprocess.run([python, "-m", "venv", str(place / "env")], check=True)
        programs = place / "env" / "bin"
        pip = (programs / "python", "-m", "pip", "-q", "--disable-pip-version-check")
        subprocess.run([*pip, "install", f"{package}[cli,sqlite]"], check=True)
        subprocess.run([programs / "laneway", "--version"], check=True, cwd=place)
        strict = ("-W", "error", "-W", OF_PYTHON_3_12)
        subprocess.run([programs / "python", *strict, "-c", SMOKE], check=True, cwd=place)


def main(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    found = interpreters()
    check(found[0], sdist)
    for python in found:
        check(python, wheel)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve())
