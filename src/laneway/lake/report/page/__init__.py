"""The report's page: one HTML file without external resources, with plots as inline SVG."""

from datetime import datetime
from importlib.resources import files

from laneway.lake.folder import Folder
from laneway.lake.report.tables import ERROR, Objective

from . import failures, load, tenants
from .facts import Facts
from .html import clock, percent, text
from .verdict import Verdict, judge, judge_empty

_SECTIONS = (
    ("normal", "normal?", tenants.normal),
    ("slo", "objective", load.slo),
    ("waits", "waits", load.waits),
    ("flow", "throughput", load.flow),
    ("depth", "depth", load.depth),
    ("failures", "failures", failures.failures),
    ("letters", "dead letters", failures.letters),
    ("fairness", "fairness", tenants.fairness),
    ("capacity", "capacity", load.capacity),
    ("forecast", "forecast", load.forecast),
    ("tries", "attempts", tenants.tries),
    ("crashes", "crashes", failures.crashes),
    ("tenants", "tenants", tenants.tenants),
)


def write_page(
    folder: Folder, path: str, objective: Objective, seen_at: datetime | None, note: str | None
) -> None:
    facts = Facts(folder, objective, seen_at)
    folder.write_text(_page(facts, note), path)


def _page(facts: Facts, note: str | None) -> str:
    style = (files(__package__) / "style.css").read_text(encoding="utf-8")
    verdict = judge_empty(*facts.unstarted()) if facts.empty else judge(facts)
    bodies = (
        []
        if facts.empty
        else [load.tiles(facts, verdict), _links(), *(make(facts) for *_, make in _SECTIONS)]
    )
    said = f'<p class="note">{text(note)}</p>' if note else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Laneway report, {clock(facts.now)} UTC</title><style>{style}</style></head><body><main>"
        f"<header><h1>Laneway · {text(_range(facts))}</h1></header>"
        f"{_verdict(verdict)}{said}{''.join(bodies)}{_footer(facts)}</main></body></html>"
    )


def _verdict(verdict: Verdict) -> str:
    first, worst, do = map(text, verdict.sentences)
    others = "".join(f"<li>{text(p.says)} {text(p.do)}</li>" for p in verdict.problems[1:])
    more = (
        f'<details class="more" open><summary>Also</summary><ul>{others}</ul></details>'
        if others
        else ""
    )
    return f'<div class="verdict {verdict.level}"><p>{first}</p><p class="worst">{worst}</p><p>{do}</p></div>{more}'


def _range(facts: Facts) -> str:
    begin = f"history since {facts.first_day:%d %b %Y}" if facts.first_day else "no history"
    return f"{begin}, as of {clock(facts.now)} UTC"


def _links() -> str:
    return (
        "<nav>"
        + "".join(f'<a href="#{anchor}">{name}</a>' for anchor, name, _ in _SECTIONS)
        + "</nav>"
    )


def _footer(facts: Facts) -> str:
    return (
        f"<footer>All times are UTC. Percentiles are within {percent(ERROR)} of the exact values. "
        "The plots show the last 14 days, and the shaded hour at the end is not over. The tables next to this page (tables/, Parquet) have everything.</footer>"
    )
