"""Which web pages and which names of this server may be used: what a browser tells about where a request comes from.

A browser lets any page on the web open a WebSocket to any address, also to one of the user's own machine, and tells the
server only the page's origin. A page can also make a name of its own point to this machine (DNS rebinding): page and
server then seem to be the same host, so a server without keys looks at the name as well.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

ANY = "*"


def is_loopback(host: str) -> bool:
    """True for an address or a name that only this machine itself can reach."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def host_name(host_header: str) -> str:
    """The host of a Host header, without the port."""
    return urlsplit(f"//{host_header}").hostname or ""


def origin_allowed(origin: str | None, host_header: str, allowed: Collection[str]) -> bool:
    """True without an origin (no browser), for the server's own pages, and for origins that are allowed by name."""
    if origin is None or ANY in allowed or origin.lower() in {name.lower().rstrip("/") for name in allowed}:
        return True
    parts = urlsplit(origin)
    own = urlsplit(f"//{host_header}")
    try:
        default = {"http": 80, "https": 443}.get(parts.scheme)
        return (
            default is not None
            and parts.hostname is not None
            and parts.hostname == own.hostname
            and (parts.port or default) == (own.port or default)
        )
    except ValueError:  # a port that is no number
        return False
