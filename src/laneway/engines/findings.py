"""Findings that every database has: does the schema fit this package, does upkeep run?"""

from laneway.inspection import Finding


def schema_finding(version: int | None, known: int, schema: str) -> Finding:
    if version is None:
        says = f"Laneway is not installed in schema {schema!r}."
        return Finding("schema", "fail", says, "Run laneway install.")
    says = f"Schema {schema!r} has version {version}"
    if version < known:
        return Finding("schema", "fail", f"{says}, this package needs {known}.", "laneway upgrade")
    if version > known:
        says = f"{says}, this package knows {known}; older clients keep working."
        return Finding("schema", "warn", says, "Upgrade the package once the deploy is done.")
    return Finding("schema", "ok", f"{says}, the one that this package needs.")


def upkeep_finding(expired: int, since: object) -> Finding:
    """``expired``: leases that ended long ago, at most 1000; the oldest ended at ``since``."""
    if not expired:
        return Finding("upkeep", "ok", "No expired lease is waiting for upkeep.")
    count = "1000 or more" if expired >= 1000 else str(expired)
    says = f"Expired leases that upkeep has not handled: {count}, the oldest since {since}."
    fix = "Upkeep does not run: start a worker, or call queue.upkeep() regularly."
    return Finding("upkeep", "fail", says, fix)
