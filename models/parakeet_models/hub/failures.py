"""What the hub's library raises, in words for the user."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from parakeet_models.hub.errors import HubError
from parakeet_models.hub.store import DIRECTORY_VARIABLE


@contextmanager
def explained(repository: str, revision: str, target: Path) -> Iterator[None]:
    """Turns failures of a pull of ``repository`` into ``target`` into :class:`HubError`."""
    endpoint = constants.ENDPOINT
    page = f"{endpoint}/{repository}"
    again = "what has come is kept; run the command again, it goes on where it stopped"
    try:
        yield
    except OfflineModeIsEnabled as error:
        raise HubError(
            "the hub's library is in offline mode: unset HF_HUB_OFFLINE, "
            f"or copy the model's directory from another machine to {target.parent}"
        ) from error
    except GatedRepoError as error:
        raise HubError(
            f"{repository} asks you to accept its licence first: sign in at {page}, accept, then make a token there "
            "and set HF_TOKEN to it (or run `hf auth login`)"
        ) from error
    except RevisionNotFoundError as error:
        raise HubError(f"{repository} has no revision {revision!r}; see {page}/commits/main") from error
    except RemoteEntryNotFoundError as error:
        raise HubError(f"a file is gone from {repository}: {error.args[0].splitlines()[-1]}") from error
    except RepositoryNotFoundError as error:
        raise HubError(
            f"{endpoint} has no repository {repository}, or not for you: if it is private, set HF_TOKEN"
        ) from error
    except HfHubHTTPError as error:
        raise HubError(_http_problem(error, endpoint, again)) from error
    except httpx2.ConnectError as error:
        raise HubError(
            f"cannot reach {endpoint} ({_reason(error)}): check the connection and HTTPS_PROXY, "
            "or name a mirror with HF_ENDPOINT"
        ) from error
    except httpx2.TimeoutException as error:
        raise HubError(f"{endpoint} does not answer in time; {again}") from error
    except httpx2.HTTPError as error:
        raise HubError(f"the connection to {endpoint} broke ({_reason(error)}); {again}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise HubError(
                f"no space left on the disk of {target.parent}: make room, or name a directory on another disk "
                f"with {DIRECTORY_VARIABLE}; {again}"
            ) from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise HubError(
                f"cannot write to {error.filename or target.parent} ({error.strerror}): "
                f"name a directory of yours with {DIRECTORY_VARIABLE}"
            ) from error
        if error.errno is None:  # the library's own check of the size
            raise HubError(f"a file came incomplete; {again}") from error
        raise HubError(f"{error.filename or target.parent}: {error.strerror}") from error


def _http_problem(error: HfHubHTTPError, endpoint: str, again: str) -> str:
    status = error.response.status_code
    if status in (401, 403):
        return (
            f"{endpoint} refuses access ({status}): check that HF_TOKEN is valid and may read this repository"
        )
    if status == 429:
        return f"{endpoint} says there were too many requests; wait some minutes. {again.capitalize()}"
    return f"{endpoint} answered with HTTP status {status}; {again}"


def _reason(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
