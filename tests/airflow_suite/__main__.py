"""``python -m tests.airflow_suite``: Laneway's provider in a real Airflow, in a virtual environment
of its own under ``.cache``. Airflow is too heavy for the environment of all other tests. Arguments
go to pytest."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
VENV = ROOT / ".cache" / "airflow"
NEEDED = (f"{ROOT}[airflow,postgresql,sqlite,embedded]", "pytest")


def main() -> None:
    python = str(VENV / "bin" / "python")
    if not VENV.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", *NEEDED], check=True)
    with TemporaryDirectory() as home:
        env = {**os.environ, "AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "false"}
        tests = str(Path(__file__).parent / "cases.py")
        command = [python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(ROOT), tests]
        sys.exit(subprocess.run([*command, *sys.argv[1:]], env=env, cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
