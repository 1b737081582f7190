"""Whether the server's port is free."""

from __future__ import annotations

import errno
import socket

from parakeet_live.doctor.findings import Finding, Level


def check_port(host: str, port: int) -> Finding:
    """Try to listen where `serve` would."""
    subject = f"port {port}"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family):
            return Finding(subject, f"free on {host}")
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return Finding(
                subject,
                f"in use on {host}",
                Level.NOTE,
                "fine if that is your server; else choose another with --port",
            )
        return Finding(
            subject, f"cannot be listened on: {error.strerror}", Level.WARNING, "choose another with --port"
        )
