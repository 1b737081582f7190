"""``parakeet-live serve``: the WebSocket server."""

from __future__ import annotations

import errno
import ssl

from parakeet_live.access.keys import KeyFileError
from parakeet_live.cli.bundles import choose_bundle
from parakeet_live.cli.console import fail
from parakeet_live.cli.settings_flags import with_settings
from parakeet_live.configuration import Configuration


@with_settings
def serve(configuration: Configuration) -> None:
    """Start the server. Clients stream audio to ws://HOST:PORT/v1/stream and get text back.

    The first line on standard output is "listening on URL", printed once clients are admitted.
    Ctrl-C stops the server. Every setting is also an environment variable and a line of a settings file:
    `parakeet-live config` prints them all with their values.
    """
    from parakeet_live.engine.backend import EngineError
    from parakeet_live.logs import configure_logging
    from parakeet_live.web.app import create_app
    from parakeet_live.web.run import run_server
    from parakeet_live.web.tracing import TracingUnavailableError

    settings = configuration.settings
    try:
        configure_logging(settings)
    except OSError as error:
        fail(f"cannot write the log file {settings.log_file}: {error.strerror}")
    bundle = choose_bundle(settings.model)
    try:
        app = create_app(bundle, settings)
    except KeyFileError as error:
        fail(str(error))
    except TracingUnavailableError as error:
        fail(f"--trace-utterances needs more packages ({error}): pip install 'parakeet-live[otel]'")
    try:
        run_server(app, settings, on_started=_announce)
    except EngineError as error:
        fail(f"the model cannot be run: {error}")
    except ssl.SSLError as error:
        fail(f"the certificate or key of --tls-cert and --tls-key cannot be used: {error.reason or error}")
    except OSError as error:
        fail(_listening_problem(error, settings.host, settings.port))


def _announce(url: str) -> None:
    # Flushed, because a parent process waits for this line on a pipe.
    print(f"listening on {url}", flush=True)


def _listening_problem(error: OSError, host: str, port: int) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file: --tls-cert and --tls-key name PEM files"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: stop what listens there, or choose another with --port"
    if isinstance(error, PermissionError):
        return f"not allowed to listen on port {port}: choose one above 1023 with --port"
    reason = str(error.strerror).partition(" (while attempting")[0]
    return f"cannot listen on {host}, port {port}: {reason}; --host takes an address of this machine"
