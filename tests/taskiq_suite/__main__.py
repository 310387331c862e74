"""``python -m tests.taskiq_suite``: the published tests of taskiq on Laneway's broker and result
backend. The sdist is downloaded into a temporary directory and nothing is kept; ``stand_in`` takes
the place of taskiq's in-memory broker. Arguments go to pytest."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
TASKIQ = "taskiq==0.13.0"
EXTRAS = "orjson,msgpack,cbor,reload"
NEEDED = (
    f"{ROOT}[sqlite,cron]",
    TASKIQ.replace("==", f"[{EXTRAS}]=="),
    *("pytest>=9", "anyio>=4.12", "freezegun", "polyfactory", "hatchling", "versioningit"),
)

LEFT_OUT: dict[str, tuple[str, ...]] = {
    "only a broker in the memory of one process knows that nobody has the task, or cannot listen": (
        "brokers/test_inmemory.py::test_cannot_listen",
        "test_exceptions_flow.py::test_inmemory_broker_raises_unknown_task_error",
    ),
    "it looks into the memory of the in-memory result backend": (
        "middlewares/test_task_retry.py::test_wait_result_error",
        "middlewares/test_task_retry.py::test_wait_result_no_result",
    ),
    "it waits a second for ten retries of five seconds each, which in memory are left out": (
        "middlewares/test_task_retry.py::test_per_task_exc_types_matching[SmartRetryMiddleware]",
        "middlewares/test_task_retry.py::test_per_task_exc_types_override_global"
        "[SmartRetryMiddleware]",
        "middlewares/test_task_retry.py::test_retry_of_custom_exc_types_of_smart_middleware",
    ),
    "taskiq's own JSON cannot bring pydantic's error back": (
        "depends/test_progress_tracker.py::test_progress_tracker_validation_error",
    ),
}
IGNORED = {
    "opentelemetry": "one broker in several event loops, one after the other, as only one that has"
    " no connections can be",
}


def main() -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        run(sys.executable, "-m", "venv", str(home / "venv"))
        python = str(home / "venv" / "bin" / "python")
        run(python, "-m", "pip", "install", "-q", *NEEDED)
        run(python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
            "--no-build-isolation", "-d", str(home), TASKIQ)  # fmt: skip
        with tarfile.open(next(home.glob("*.tar.gz"))) as opened:
            opened.extractall(home, filter="data")
        (theirs,) = home.glob("taskiq-*/")
        left_out = [f"--deselect=tests/{name}" for names in LEFT_OUT.values() for name in names]
        left_out += [f"--ignore=tests/{name}" for name in IGNORED]
        sys.exit(subprocess.run(
            [python, "-m", "pytest", "-q", "-p", "stand_in", "tests", *left_out, *sys.argv[1:]],
            cwd=theirs, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        ).returncode)  # fmt: skip


def run(*command: str) -> None:
    subprocess.run([*command], check=True)


if __name__ == "__main__":
    main()
