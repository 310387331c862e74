"""What opentelemetry-instrument finds."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

from laneway import Queue
from laneway.worker.telemetry import process_wide

ROOT = Path(__file__).parents[2]


def test_the_entry_point_switches_it_on_and_off() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    target = project["entry-points"]["opentelemetry_instrumentor"]["laneway"]
    module, _, name = target.partition(":")
    instrumentor = getattr(import_module(module), name)()
    assert isinstance(instrumentor, BaseInstrumentor)
    before = Queue.complete
    instrumentor.instrument(skip_dep_check=True)
    try:
        assert Queue.complete is not before and process_wide.middleware
    finally:
        instrumentor.uninstrument()
    assert Queue.complete is before
    assert not process_wide.middleware and not process_wide.observers


def test_it_is_not_even_imported_unless_it_is_used(tmp_path: Path) -> None:
    code = f"""
import sys
from laneway import Queue, Worker
with Queue("sqlite:///{tmp_path}/queue.db") as queue:
    queue.install()
    worker = Worker(queue)
    worker.default_handler(lambda payload: None)
    queue.publish(1)
    worker.run(until_empty=True)
names = [name for name in sys.modules if name.startswith(("opentelemetry", "prometheus_client"))]
sys.exit(str(names) if names else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
