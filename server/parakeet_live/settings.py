"""Every setting of the server, in one typed place.

A setting is a field of :class:`Settings`: its type, its bounds, its default and what it is for. Flags of ``serve``,
environment variables, the settings file and docs/settings.md are all made of these fields
(:mod:`parakeet_live.configuration` says which wins). A group is a class of its own; its docstring is its heading.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from parakeet_live.dialects.messages import Limits

ENVIRONMENT_PREFIX = "PARAKEET_LIVE_"


class LogLevel(StrEnum):
    """How much the server says on standard error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Listening(BaseModel):
    """Where it listens"""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address to listen on. 127.0.0.1 takes clients of this machine only, 0.0.0.0 of every network.",
    )
    port: int = Field(
        default=8765, ge=0, le=65535, description="Port to listen on; 0 takes any free one, which is printed."
    )


class Recognition(BaseModel):
    """Model and capacity"""

    model: Path | None = Field(
        default=None,
        description="Short name of a model (`parakeet-live models list`), or directory of a bundle. "
        "By default the best model that is here.",
    )
    max_streams: int = Field(
        default=64, ge=1, le=4096, description="Streams served at the same time; further clients are refused."
    )
    lanes: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="Batches that run at the same time, one core each. "
        "By default as many as this process may use cores, by its affinity and its container's quota.",
    )
    warm_up: bool = Field(
        default=True,
        description="Run every kind of batch before the first client, and measure how many streams this machine "
        "carries. Without it the server is ready a little sooner and slow for its first clients.",
    )


class Connections(BaseModel):
    """Connections"""

    ping_interval_s: float = Field(
        default=20.0,
        ge=0.1,
        le=3600,
        description="Seconds between two WebSocket pings. They keep proxies, whose usual limit is 60 s, from closing "
        "a quiet connection.",
    )
    ping_timeout_s: float = Field(
        default=120.0,
        ge=0.1,
        le=3600,
        description="Seconds a client may take to answer a ping before it counts as dead. Long, because the answer "
        "of a client that uploads faster than real time waits behind its audio, which the server holds back.",
    )
    close_timeout_s: float = Field(
        default=30.0,
        ge=0.1,
        le=3600,
        description="Seconds a client has to read what remains once the end of its session is decided.",
    )
    shutdown_s: int = Field(
        default=5, ge=0, le=3600, description="Seconds that connections have to end after SIGINT or SIGTERM."
    )


class Logging(BaseModel):
    """Logs"""

    log_level: LogLevel = Field(default=LogLevel.INFO, description="What to log on standard error.")


GROUPS: tuple[type[BaseModel], ...] = (Listening, Recognition, Limits, Connections, Logging)
"""In the order of the documentation."""


class Settings(Listening, Recognition, Limits, Connections, Logging, BaseSettings):
    """The effective settings. Made here from its arguments and defaults alone; nothing is read from outside."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)

    @property
    def limits(self) -> Limits:
        """What ``ready`` announces."""
        return Limits.model_validate(self, from_attributes=True)
