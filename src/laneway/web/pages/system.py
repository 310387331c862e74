"""System: what diagnose() found, the schema and its settings."""

from laneway.inspection import Finding
from laneway.web.context import Context, PageView

_ORDER = {"fail": 0, "warn": 1, "ok": 2}


def system(context: Context) -> PageView:
    findings: list[Finding] = context.read("diagnose") if context.may("diagnose") else []
    values = {
        "findings": sorted(findings, key=lambda finding: _ORDER[finding.level]),
        "settings": context.read("settings"),
        "schema_version": context.read("schema_version"),
        "now": context.now,
    }
    return PageView("system.html", "System", values)
