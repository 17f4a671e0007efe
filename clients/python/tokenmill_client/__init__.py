"""Token work of tokenmill from your own programs, over HTTP. `connect_http` opens a client."""

from .batch import BatchCheckpoint, Ended
from .client import Client, connect_http
from .client_file import Card, GivenCredentials
from .errors import (
    BatchError,
    ClosedError,
    ConfigError,
    Detail,
    HttpError,
    NoAnswerError,
    RefusedError,
    WaitError,
)

__all__ = [
    "BatchCheckpoint",
    "BatchError",
    "Card",
    "Client",
    "ClosedError",
    "ConfigError",
    "Detail",
    "Ended",
    "GivenCredentials",
    "HttpError",
    "NoAnswerError",
    "RefusedError",
    "WaitError",
    "connect_http",
]
