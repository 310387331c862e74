"""The operator: every verb of command line, API and pages, as one principal may use it."""

from laneway.client.sync.queue import Queue
from laneway.errors import InvalidOption
from laneway.operations import Source

from .act import ChannelActions, FlowActions, MessageActions
from .bulk import BulkActions
from .look import CountLooks
from .repeat import ScheduleActions, TopicActions
from .verbs import Principal


class Operator(
    CountLooks,
    ChannelActions,
    MessageActions,
    BulkActions,
    ScheduleActions,
    TopicActions,
    FlowActions,
):
    """A client as one principal may use it; threads may share it, and it holds nothing open.

    Every method needs one right and keeps to the principal's channels (``laneway.operator.VERBS``
    has the table); else it raises NotAllowed.

    >>> ann = Operator(queue, Principal("ann", OPERATOR), source="cli")
    >>> ann.pause_channel("tenant-42")
    """

    def __init__(self, queue: Queue, principal: Principal, source: Source = "api") -> None:
        if source not in ("api", "cli", "dashboard"):
            raise InvalidOption(f"source is {source!r}: use api, cli or dashboard")
        super().__init__(queue, principal, source)

    def __repr__(self) -> str:
        return f"<Operator {self.principal.name!r} from {self.source}>"
