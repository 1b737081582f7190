"""Every setting of the server, in one typed place.

A setting is a field of :class:`Settings`: its type, its bounds, its default and what it is for. Flags of ``serve``,
environment variables, the settings file and docs/settings.md are all made of these fields
(:mod:`parakeet_live.configuration` says which wins). A group is a class of its own; its docstring is its heading.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from parakeet_live.access.gate import MonitoringAccess
from parakeet_live.access.origins import is_loopback
from parakeet_live.access.tokens import SECRET_BYTES
from parakeet_live.dialects.messages import Limits
from parakeet_live.engine.backends import BackendChoice
from parakeet_live.engine.coreml.options import CoremlOptions
from parakeet_models.packages import ComputeUnits

ENVIRONMENT_PREFIX = "PARAKEET_LIVE_"


def _split(value: object) -> object:
    """A variable holds a list with commas between the values."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Strings = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class LogLevel(StrEnum):
    """How much the server says on standard error."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line of the log looks."""

    TEXT = "text"
    JSON = "json"


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
    tls_cert: Path | None = Field(
        default=None, description="File with the certificate chain, PEM. With it clients connect to wss://."
    )
    tls_key: Path | None = Field(default=None, description="File with the certificate's private key, PEM.")
    trusted_proxies: Strings = Field(
        default=(),
        description="Addresses or networks of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are "
        "believed. Of everyone else they are ignored.",
    )


class Recognition(BaseModel):
    """Model and capacity"""

    model: Path | None = Field(
        default=None,
        description="Short name of a model (`parakeet-live models list`), or directory of a bundle. "
        "By default the best model that is here.",
    )
    max_streams: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Streams served at the same time; further clients wait in a queue. By default as many as this "
        "machine was measured to carry at the start, at most 64 for each lane.",
    )
    lanes: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="Batches that run at the same time, one core each. "
        "By default as many as this process may use cores, by its affinity and its container's quota; with a Core ML "
        "model one for each of its processes.",
    )
    warm_up: bool = Field(
        default=True,
        description="Run every kind of batch before the first client, and measure how many streams this machine "
        "carries. Without it the server is ready a little sooner and slow for its first clients.",
    )
    backend: BackendChoice = Field(
        default=BackendChoice.AUTO, description="What runs the network; auto follows the model."
    )
    coreml_replicas: int = Field(
        default=1,
        ge=1,
        le=16,
        description="Processes that run a Core ML model at the same time, each with the whole model in memory.",
    )
    coreml_encoder: ComputeUnits | None = Field(
        default=None,
        description="Processors for the encoder of a Core ML model. By default CPU_AND_NE, the Neural Engine, or what "
        "works if the model does not run there.",
    )
    coreml_prediction: ComputeUnits = Field(
        default=ComputeUnits.CPU_ONLY, description="Processors for the prediction network of a Core ML model."
    )
    coreml_joint: ComputeUnits = Field(
        default=ComputeUnits.CPU_ONLY, description="Processors for the joint of a Core ML model."
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
        default=30.0,
        ge=0.1,
        le=3600,
        description="Seconds without an answer to a ping, and without anything else from the client, after which the "
        "connection counts as lost. It does not while the server itself holds the client's audio back.",
    )
    close_timeout_s: float = Field(
        default=30.0,
        ge=0.1,
        le=3600,
        description="Seconds a client has to read what remains once the end of its session is decided.",
    )
    drain_s: float = Field(
        default=10.0,
        ge=0,
        le=3600,
        description="Seconds that sessions have for their last results after SIGINT or SIGTERM.",
    )


class Sessions(BaseModel):
    """Sessions and queue"""

    max_waiting: int = Field(
        default=64,
        ge=0,
        le=100_000,
        description="Clients that may wait for a stream; further ones are refused.",
    )
    max_wait_s: float = Field(
        default=10.0, ge=0, le=3600, description="Longest time that a client waits for a stream, in seconds."
    )
    resume_window_s: float = Field(
        default=30.0,
        ge=0,
        le=3600,
        description="Seconds that a session is kept, with its stream, after its connection was lost, so that the "
        "client can go on with it. 0: sessions end with their connection.",
    )
    idle_timeout_s: float = Field(
        default=300.0,
        ge=0,
        le=86_400,
        description="Seconds without audio or `keepalive` after which a session is ended. 0: never.",
    )
    max_session_s: float = Field(
        default=43_200.0,
        ge=0,
        le=31_536_000,
        description="Longest time of a session in seconds; then it is ended, and the client opens another. "
        "0: no limit.",
    )


class Access(BaseModel):
    """Access"""

    keys_file: Path | None = Field(
        default=None,
        description="File with the hashes of API keys, which `parakeet-live keys` makes. With it, or with `keys`, "
        "every stream needs a key. A change of the file counts at once.",
    )
    keys: Strings = Field(
        default=(),
        description="API keys without a file: entries of name, id and SHA-256 with colons between them, as "
        "`parakeet-live keys new` prints them.",
    )
    key_max_streams: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Streams at the same time for a key that has no limit of its own.",
    )
    key_audio_minutes_per_day: int | None = Field(
        default=None,
        ge=1,
        le=10_000_000,
        description="Minutes of audio on one day (UTC) for a key that has no limit of its own. Counted in memory: a "
        "restart begins anew.",
    )
    token_secret: SecretStr | None = Field(
        default=None,
        description=f"Signs browser tokens; at least {SECRET_BYTES} characters. Servers behind one address need the "
        "same one. Without it tokens are good until the server stops.",
    )
    token_audience: str = Field(
        default="parakeet-live",
        min_length=1,
        description="Name of this service in browser tokens; a token for another one is refused.",
    )
    token_max_ttl_s: int = Field(
        default=600,
        ge=1,
        le=86_400,
        description="Longest life of a browser token that a client may ask for, in seconds.",
    )
    allowed_origins: Strings = Field(
        default=(),
        description="Web origins whose pages may connect, such as https://example.org, beside the server's own; `*` "
        "allows all, `null` pages opened from files.",
    )
    allowed_hosts: Strings = Field(
        default=(),
        description="Names, beside those of loopback addresses, by which a server without keys that listens on a "
        "loopback address may be called; `*` allows all. This keeps out pages that use DNS rebinding.",
    )
    monitoring_access: MonitoringAccess = Field(
        default=MonitoringAccess.LOOPBACK,
        description="Who may read /metrics, /v1/stats and the details of /healthz: `loopback` are programs of this "
        "machine and whoever shows a key, `key` only the latter, `open` everyone.",
    )
    insecure_no_keys: bool = Field(
        default=False,
        description="Listen on a public address although everyone who reaches it can use the server.",
    )
    insecure_no_tls: bool = Field(
        default=False,
        description="Listen on a public address without TLS: audio, text and keys can be read on the way. For servers "
        "behind a proxy that ends TLS.",
    )


class Logging(BaseModel):
    """Logs"""

    log_level: LogLevel = Field(default=LogLevel.INFO, description="What to log.")
    log_file: Path | None = Field(
        default=None,
        description="Log to this file instead of standard error. It is opened again when newsyslog or logrotate has "
        "moved it away.",
    )
    log_format: LogFormat = Field(
        default=LogFormat.TEXT, description="Lines for people, or one JSON object a line for programs."
    )
    trace_utterances: bool = Field(
        default=False,
        description="Send an OpenTelemetry span for each utterance, by OTLP; needs the extra `otel`. The variables "
        "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and others of OpenTelemetry say where and how many.",
    )
    log_transcripts: bool = Field(
        default=False,
        description="Log the text of every final. Without it no word of a speaker is in the log.",
    )


GROUPS: tuple[type[BaseModel], ...] = (Listening, Recognition, Limits, Connections, Sessions, Access, Logging)
"""In the order of the documentation."""


class Settings(Listening, Recognition, Limits, Connections, Sessions, Access, Logging, BaseSettings):
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

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key belong together: give both or none")
        secret = self.token_secret
        if secret is not None and len(secret.get_secret_value()) < SECRET_BYTES:
            raise ValueError(
                f"token_secret is too short: use {SECRET_BYTES} random characters or more, "
                "for instance of `openssl rand -hex 32`"
            )
        if is_loopback(self.host):
            return self
        if not (self.keys_file or self.keys or self.insecure_no_keys):
            raise ValueError(
                f"{self.host} is a public address, and without API keys everyone who reaches it could use the server: "
                "make a key (`parakeet-live keys new NAME --file FILE`) and give --keys-file FILE, or say "
                "--insecure-no-keys"
            )
        if not (self.tls_cert or self.insecure_no_tls):
            raise ValueError(
                f"{self.host} is a public address, and without TLS audio, text and keys could be read on the way: "
                "give --tls-cert and --tls-key, or say --insecure-no-tls, for instance behind a proxy that ends TLS"
            )
        return self

    @property
    def limits(self) -> Limits:
        """What ``ready`` announces."""
        return Limits.model_validate(self, from_attributes=True)

    @property
    def coreml(self) -> CoremlOptions:
        """What the Core ML backend is told."""
        return CoremlOptions(
            self.coreml_replicas, self.coreml_encoder, self.coreml_prediction, self.coreml_joint
        )
