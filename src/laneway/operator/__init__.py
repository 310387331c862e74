"""What an operator may see and do: one method per verb, checked by right and channel."""

from .operator import Operator
from .rights import ADMIN, OPERATOR, VIEWER, Principal, Right, admin
from .verbs import VERBS, Verb

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
