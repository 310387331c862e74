"""``python -m tests.django_suites.run_suite NAME``: one suite, by Django's own runner."""

import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import TestSuite

import django
from django.test import TransactionTestCase
from django.test.runner import DiscoverRunner

from .left_out import DJANGO, TASKS_DB

SUITES: dict[str, tuple[dict[str, tuple[str, ...]], str]] = {
    "django": (DJANGO, "tasks"),
    "tasks_db": (TASKS_DB, "tests.tests"),
}


class Runner(DiscoverRunner):  # type: ignore[misc]
    left_out: frozenset[str]

    def build_suite(self, *args: Any, **kwargs: Any) -> TestSuite:
        """Without those that cannot apply; each name must be one of a test."""
        suite = super().build_suite(*args, **kwargs)
        unknown = set(self.left_out)
        kept = []
        for test in suite:
            names = {type(test).__name__, test.id().split(".", test.id().count(".") - 1)[-1]}
            unknown -= names
            if not names & self.left_out:
                kept.append(test)
        if unknown:
            sys.exit(f"left_out.py names no test of the suite: {sorted(unknown)}")
        sys.stdout.write(f"{len(kept)} tests run, {len(list(suite)) - len(kept)} left out\n")
        return TestSuite(kept)


def any_number(self: Any, number: int, *args: Any, **kwargs: Any) -> AbstractContextManager[None]:
    """How many statements somebody else's tables need is not part of the contract."""
    return nullcontext()


class PatientProcess(subprocess.Popen[str]):
    """Two seconds are too short for a worker on a busy machine."""

    def wait(self, timeout: float | None = None) -> int:
        return super().wait(None if timeout is None else 60)


def be_patient() -> None:
    from tests import tests  # type: ignore[attr-defined]

    tests.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": PatientProcess})
    tests.DatabaseWorkerProcessTestCase.WORKER_STARTUP_TIME = 15


def main(name: str) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.django_suites.settings"
    django.setup()
    reasons, label = SUITES[name]
    Runner.left_out = frozenset(test for tests in reasons.values() for test in tests)
    if name == "tasks_db":
        TransactionTestCase.assertNumQueries = any_number
        be_patient()
    return int(Runner(interactive=False).run_tests([label]))


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1])))
