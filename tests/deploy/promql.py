"""Reads PromQL strictly enough to know its metrics and labels, and refuses what it does not know.

Not a whole parser: tokens, balanced brackets, known functions, and which names are metrics.
"""

import re
from dataclasses import dataclass, field

FUNCTIONS = {
    "rate",
    "increase",
    "delta",
    "absent",
    "histogram_quantile",
    "sum",
    "min",
    "max",
    "topk",
}
_WORDS = {"by", "on", "and", "or", "unless", "ignoring", "without"}
_TOKEN = re.compile(
    r"\s+|(?P<name>[a-zA-Z_:][\w:]*)|(?P<text>\"[^\"]*\")|(?P<number>\d+(\.\d+)?)"
    r"|(?P<range>\[(\d+[smhd]|\$__rate_interval)\])|(?P<sign>=~|!~|!=|==|<=|>=|[-+*/<>=(){},])"
)
_CLOSES = {")": "(", "}": "{"}


@dataclass
class Expression:
    metrics: dict[str, set[str]] = field(default_factory=dict)
    """The metrics, with the labels that matchers name."""
    grouped: set[str] = field(default_factory=set)
    """The labels after by and on."""


def read(text: str) -> Expression:
    tokens = list(_tokens(text))
    found = Expression()
    open_brackets: list[str] = []
    metric = ""
    for index, (kind, token) in enumerate(tokens):
        following = tokens[index + 1][1] if index + 1 < len(tokens) else ""
        if token in ("(", "{"):
            open_brackets.append(token)
        elif token in _CLOSES:
            assert open_brackets and open_brackets.pop() == _CLOSES[token], f"brackets of {text}"
        elif kind == "name" and open_brackets[-1:] == ["{"]:
            assert following in ("=", "=~", "!=", "!~"), f"{token} in {text}"
            found.metrics[metric].add(token)
        elif kind == "name" and token in FUNCTIONS:
            assert following in ("(", "by"), f"{token} in {text}"
        elif kind == "name" and token not in _WORDS:
            if _is_grouping(tokens, index):
                found.grouped.add(token)
            else:
                metric = token
                found.metrics.setdefault(metric, set())
    assert not open_brackets, f"brackets of {text}"
    assert found.metrics, f"no metric in {text}"
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match, f"cannot read {text[at : at + 20]!r} of {text}"
        at = match.end()
        if match.lastgroup is not None or match.group().strip():
            kind = next((k for k in ("name", "text", "number", "range") if match[k]), "sign")
            tokens.append((kind, match.group()))
    return tokens


def _is_grouping(tokens: list[tuple[str, str]], index: int) -> bool:
    """Whether the name is in the brackets after by or on."""
    at = index
    while at >= 0 and tokens[at][1] != "(":
        if tokens[at][0] != "name" and tokens[at][1] != ",":
            return False
        at -= 1
    return at > 0 and tokens[at - 1][1] in ("by", "on")
