"""What protects every page: requests from other sites are refused, browsers are told to be strict.

A form that another site submits is recognised by the headers that browsers send and scripts cannot
change. Clients that send neither are no browsers, and carry no credentials by themselves.
"""

from urllib.parse import urlsplit

from .request import WebRequest

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def is_foreign(request: WebRequest) -> bool:
    """Whether a request that changes something comes from another site's page."""
    site = request.header("sec-fetch-site")
    if site:
        return site != "same-origin"
    origin = request.header("origin")
    return bool(origin) and urlsplit(origin).netloc.lower() != request.header("host").lower()
