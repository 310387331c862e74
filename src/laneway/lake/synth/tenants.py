"""The queues, kinds of messages and tenants of the synthetic history."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of messages. ``share`` of all messages; ``run``: its median running time. The share
    of attempts that fail and are retried (``flaky``), that fail for good (``hopeless``), and that
    are deferred with progress (``steps``)."""

    queue: str
    name: str
    share: float
    run: timedelta
    flaky: float
    hopeless: float = 0.0
    steps: float = 0.0
    size: int = 400
    errors: tuple[tuple[str, str], ...] = ()


def _ms(n: float) -> timedelta:
    return timedelta(milliseconds=n)


_SMTP = (
    ("smtplib.SMTPServerDisconnected", "Connection unexpectedly closed by mx{n}.example.net"),
    ("TimeoutError", "no answer from 10.0.{n}.25:25 after 10 s"),
)
_HTTP = (
    ("httpx.ReadTimeout", "POST https://hooks.example.com/t/{n} timed out"),
    ("httpx.HTTPStatusError", "429 Too Many Requests for tenant {n}"),
    ("ConnectionResetError", "[Errno 104] Connection reset by peer"),
)
_SQL = (("psycopg.errors.SerializationFailure", "could not serialize access, order {n}"),)
_DISK = (("MemoryError", "cannot allocate {n} bytes for the sheet"),)

KINDS = (
    Kind("emails", "receipt", 0.26, _ms(45), 0.012, 0.0003, size=600, errors=_SMTP),
    Kind("emails", "newsletter", 0.20, _ms(30), 0.010, size=2_200, errors=_SMTP),
    Kind("webhooks", "deliver", 0.30, _ms(110), 0.045, 0.0004, size=900, errors=_HTTP),
    Kind("billing", "charge", 0.10, _ms(180), 0.008, 0.0006, size=350, errors=_SQL),
    Kind("billing", "invoice", 0.08, _ms(90), 0.006, size=450, errors=_SQL),
    Kind("exports", "sheet", 0.06, _ms(1_400), 0.020, 0.001, 0.5, size=250, errors=_DISK),
)

HOPELESS = ("ValueError", "address '{n}@' has no domain")
BAD_DEPLOY = (
    "KeyError",
    "Traceback (most recent call last):\n"
    '  File "/app/.venv/lib/python3.11/site-packages/laneway/worker/execute/executor.py", '
    "line 88, in perform\n"
    "    await call(message)\n"
    '  File "/app/shop/billing.py", line {n}, in charge\n'
    '    amount = order["currency_code"]\n'
    '  File "/usr/lib/python3.11/collections/__init__.py", line 1006, in __getitem__\n'
    "KeyError: 'currency_code'",
)
TENANTS = 240
SKEW = 1.15
WORKERS = {"emails": 6, "webhooks": 8, "billing": 4, "exports": 3}
LEASE = timedelta(seconds=30)
MAX_ATTEMPTS = 6
