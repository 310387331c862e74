"""Ledgers and dumps as a run would leave them, and with something wrong."""

from typing import Any

from laneway.dev.chaos.checker import check

Row = dict[str, Any]
LEASE = 4.0


class Forger:
    """One good message by default; tests add or change what they want to see found."""

    def __init__(self) -> None:
        self.lines: list[Row] = []
        self.dump: dict[str, Any] = {
            "taken_at": 1000.0, "lease": LEASE,
            "messages": [], "dead": [], "history": [], "effects": [],
        }  # fmt: skip

    def line(self, what: str, t: float, by: str = "p", **fields: Any) -> None:
        self.lines.append({"what": what, "t": t, "by": by, **fields})

    def publish(self, id: int, t: float, status: str = "published", **fields: Any) -> str:
        n = f"n{len(self.lines)}"
        terms = {"channel": "a", "kind": "plain", "key": None, "window": False, "max_attempts": 3}
        self.line("publish_tried", t, n=n, **{**terms, **fields})
        self.line("publish_acknowledged", t + 0.01, n=n, id=id, status=status)
        return n

    def start(self, id: int, fence: int, t: float, n: str, by: str = "w", done: int = 0) -> None:
        self.line("start", t, by=by, id=id, fence=fence, n=n, done=done)

    def settle(self, id: int, fence: int, t: float, verb: str, answer: str = "accepted") -> None:
        self.line("settle_tried", t, by="w", id=id, fence=fence, verb=verb)
        self.line(f"settle_{answer}", t + 0.01, by="w", id=id, fence=fence, verb=verb)

    def row(
        self,
        id: int,
        fence: int | None,
        claimed: float | None,
        ended: float,
        outcome: str,
        **fields: Any,
    ) -> None:
        row = {
            "id": len(self.dump["history"]), "message_id": id, "fence": fence, "channel": "a",
            "worker": "w", "attempt": 1, "claimed_at": claimed, "ended_at": ended,
            "outcome": outcome, "terminal": outcome in ("completed", "cancelled"), "dead": False,
        }  # fmt: skip
        self.dump["history"].append(row | fields)

    def waits(self, id: int, due: float, state: str = "waiting", **fields: Any) -> None:
        row = {"id": id, "channel": "a", "state": state, "due": due, "attempt": 1, "worker": "w"}
        self.dump["messages"].append({**row, "fence": None, "claimed_at": None, **fields})

    def done(self, id: int, fence: int, t: float, **fields: Any) -> str:
        """A message that was published, started and completed as it should be."""
        n = self.publish(id, t, **fields)
        self.start(id, fence, t + 1, n)
        self.settle(id, fence, t + 2, "complete")
        self.row(id, fence, t + 1, t + 2, "completed", channel=fields.get("channel", "a"))
        return n

    def broken(self) -> set[str]:
        return set(check(self.lines, self.dump)["broken"])
