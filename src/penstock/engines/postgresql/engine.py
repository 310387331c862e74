"""The engine: all groups of verbs in one object."""

from typing import TYPE_CHECKING

from .channels import Channels
from .claiming import Claiming
from .dead_letters import DeadLetters
from .examining import Examining
from .inspecting import Inspecting
from .publishing import Publishing
from .reading import Reading
from .settling import Settling

if TYPE_CHECKING:
    from penstock.contract import Engine


class PostgresqlEngine(
    Publishing, Claiming, Settling, Channels, DeadLetters, Reading, Inspecting, Examining
):
    """Every verb but install and redrive is one statement, and so its own transaction."""

    atomic = False


if TYPE_CHECKING:
    _: type[Engine] = PostgresqlEngine
