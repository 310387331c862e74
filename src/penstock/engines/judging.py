"""What `examine` says of any database: does the schema fit this package, does upkeep run?"""

from penstock.insight import Finding


def schema_judged(version: int | None, known: int, schema: str) -> Finding:
    if version is None:
        says = f"Penstock is not installed in schema {schema!r}."
        return Finding("schema", "fail", says, "Run penstock install.")
    says = f"Schema {schema!r} has version {version}"
    if version < known:
        return Finding("schema", "fail", f"{says}, this package needs {known}.", "penstock upgrade")
    if version > known:
        says = f"{says}, this package knows {known}; older clients keep working."
        return Finding("schema", "warn", says, "Upgrade the package when the deploy is through.")
    return Finding("schema", "ok", f"{says}, as this package.")


def upkeep_judged(expired: int, since: object) -> Finding:
    """``expired`` leases of long ago, counted up to a thousand; the oldest ran out ``since``."""
    if not expired:
        return Finding("upkeep", "ok", "No lease that ran out waits to be taken back.")
    count = "1000 or more" if expired >= 1000 else str(expired)
    says = f"Leases that ran out and nobody took back: {count}, the oldest since {since}."
    mend = "Upkeep does not run: start a worker, or anything that claims or calls queue.upkeep()."
    return Finding("upkeep", "fail", says, mend)
