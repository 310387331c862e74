"""MySQL URLs: TLS options, and characters that need escaping."""

import ssl

import pytest

from laneway.drivers.mysql.url import connect_options
from laneway.errors import InvalidOption


@pytest.mark.parametrize(
    ("query", "checks_name", "verifies"),
    [
        ("ssl_mode=VERIFY_IDENTITY", True, ssl.CERT_REQUIRED),
        ("ssl_mode=verify_ca", False, ssl.CERT_REQUIRED),
        ("ssl_mode=REQUIRED", False, ssl.CERT_NONE),
    ],
)
def test_ssl_mode_sets_what_is_verified(
    query: str, checks_name: bool, verifies: ssl.VerifyMode
) -> None:
    context = connect_options(f"mysql://h/d?{query}")["ssl"]
    assert (context.check_hostname, context.verify_mode) == (checks_name, verifies)


@pytest.mark.parametrize(
    ("query", "says"),
    [("ssl_mode=SOME", "use one of REQUIRED"), ("ssl_ca=/no/such/file", "cannot use")],
)
def test_unusable_tls_options(query: str, says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        connect_options(f"mysql://h/d?{query}")


@pytest.mark.parametrize("url", ["mysql://u:12#34@host/d", "mysql://u@host/d#2"])
def test_a_fragment_is_refused(url: str) -> None:
    with pytest.raises(InvalidOption, match="write it as %23") as refused:
        connect_options(url)
    assert "34" not in str(refused.value)
