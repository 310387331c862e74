"""The conformance suite: named cases per verb that every engine, driver and world must pass.

>>> from laneway.conformance import Target, conformance
>>> for name, run in conformance(Target("postgresql://localhost/scratch", schema="proof")):
...     run()
"""

from .registry import Case, CaseSkipped, all_cases
from .runner import Harness, Target, conformance
from .world import World

__all__ = ["Case", "CaseSkipped", "Harness", "Target", "World", "all_cases", "conformance"]
