"""The engine: all groups of verbs in one object."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.contract import Ability

from .channels import Channels
from .claiming import Claiming
from .dead_letters import DeadLetters
from .events import Events
from .examining import Examining
from .inspecting import Inspecting
from .reading import Reading
from .schedules import Schedules
from .settling import Settling
from .sleeping import Sleeping

if TYPE_CHECKING:
    from penstock.contract import Engine


class PostgresqlEngine(
    Schedules,
    Claiming,
    Settling,
    Sleeping,
    Events,
    Channels,
    DeadLetters,
    Reading,
    Inspecting,
    Examining,
):
    """Verbs on messages and channels are one statement each, and so their own transactions; redrive
    and discard are one a batch."""

    dialect = "postgresql"
    atomic = False
    lacks: Mapping[Ability, str] = {}


if TYPE_CHECKING:
    _: type[Engine] = PostgresqlEngine
