"""``python -m tests.open_lake``: the lake in an object store and as a table of Apache Iceberg, in a
virtual environment of its own under ``.cache``: a server of S3 (moto, on the loopback) and
pyiceberg are too much for the environment of all other tests. Arguments go to pytest."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VENV = ROOT / ".cache" / "open-lake"
NEEDED = ("-e", f"{ROOT}[iceberg,sqlite,cli]", "moto[server]>=5", "pytest")


def main() -> None:
    python = str(VENV / "bin" / "python")
    if not VENV.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *NEEDED], check=True)
    cases = [str(Path(__file__).parent / name) for name in ("cases_s3.py", "cases_iceberg.py")]
    given = sys.argv[1:]
    tests = [] if any(one.endswith(".py") for one in given) else cases
    command = [python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(ROOT)]
    command += ["--import-mode=importlib", "-p", "tests.open_lake.fixtures"]
    sys.exit(subprocess.run([*command, *tests, *given], cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
