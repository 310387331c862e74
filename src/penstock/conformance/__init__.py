"""The conformance suite: named cases per verb that every engine, driver and world must pass.

>>> from penstock.conformance import Target, conformance
>>> for name, run in conformance(Target("postgresql://localhost/scratch", schema="proof")):
...     run()
"""

from .registry import Case, CaseSkipped, all_cases
from .runner import Target, conformance, run_case
from .world import World

__all__ = ["Case", "CaseSkipped", "Target", "World", "all_cases", "conformance", "run_case"]
