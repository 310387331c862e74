"""The table of rights in the documentation is the one of the code."""

import re

from laneway.operator import VERBS
from tests.docs.pages import ROOT


def test_the_page_names_every_verb_with_its_right() -> None:
    text = (ROOT / "docs/how-to/control.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (`.*?) \| [a-z]", text, re.M)
    shown = {verb: right for right, verbs in rows for verb in re.findall(r"`(\w+)`", verbs)}
    assert shown == {name: verb.right.value for name, verb in VERBS.items()}
