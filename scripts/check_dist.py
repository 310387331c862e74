"""Installs the built wheel and sdist into empty environments and uses them.

``python scripts/check_dist.py [FOLDER]`` looks for both in ``dist``, and takes every interpreter
from 3.11 on that is at hand.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CONTAINER = Path(__file__).parents[1] / "deploy" / "container" / "Dockerfile"
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


def check_container(python: str, wheel: Path) -> None:
    """Runs what deploy/container/Dockerfile runs, in an empty environment instead of an image: its
    pip commands, then each target's program with its options."""
    text = CONTAINER.read_text().replace("\\\n", " ")
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)", text, re.M)
    installs = re.findall(r"^RUN .*?(pip install .*)$", text, re.M)
    programs = [json.loads(words) for words in re.findall(r"^CMD (\[.*\])$", text, re.M)]
    assert len(installs) == 2 and len(programs) == 3
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        path = f"{folder}/bin:{os.environ['PATH']}"
        env = {**os.environ, "EXTRAS": extras, "PATH": path}
        for command in installs:
            here = command.replace("/wheels/*.whl", str(wheel))
            subprocess.run(["sh", "-c", f"{here} -q"], check=True, env=env)
        for program in programs:
            shown = subprocess.run([*program, "--help"], check=True, env=env, capture_output=True)
            print("the container runs", program[1], f"({len(shown.stdout)} bytes of help)")


def main(folder: Path) -> None:
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    found = interpreters()
    check(found[0], sdist)
    for python in found:
        check(python, wheel)
    check_container(found[0], wheel)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve())
