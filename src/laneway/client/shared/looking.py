"""The address for connections that only look."""

from urllib.parse import quote


def looking_url(url: str, pooler: bool, seconds: float) -> str:
    """The server itself ends what takes longer, and PostgreSQL refuses to write. PgBouncer does not
    let such options through; SQLite has no server, and its looks are bounded by themselves."""
    sign = "&" if "?" in url else "?"
    if url.startswith(("mysql", "mariadb")) and "statement_timeout=" not in url:
        return f"{url}{sign}statement_timeout={seconds:g}"
    if not url.startswith("postgres") or pooler or "options=" in url:
        return url
    options = f"-c statement_timeout={int(seconds * 1000)} -c default_transaction_read_only=on"
    return f"{url}{sign}options={quote(options)}"
