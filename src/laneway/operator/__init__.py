"""What an operator may see and do: one method per verb, checked by right and channel."""

from .operator import Operator
from .verbs import ADMIN, OPERATOR, VERBS, VIEWER, Principal, Right, Verb, admin

__all__ = [
    "ADMIN",
    "OPERATOR",
    "VERBS",
    "VIEWER",
    "Operator",
    "Principal",
    "Right",
    "Verb",
    "admin",
]
