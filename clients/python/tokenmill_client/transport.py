"""Sends requests to a gateway, and repeats what may be repeated: reads, and writes under an idempotency key, which take effect
once however often they are sent. What was answered for good is returned or raised at once.
"""

from __future__ import annotations

import errno
import http.client
import json
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Union
from urllib.parse import SplitResult, urlencode

from .errors import Answered, ClosedError, Detail, HttpError, NoAnswerError, ReversalStatus

Body = Union[bytes, Iterable[bytes]]
Connect = Callable[[float], http.client.HTTPConnection]

# Longer than a gateway takes for its own time-out.
_ATTEMPT_SECONDS = 60.0
# How long a client that was never answered tries to connect: its base URL may be wrong.
_CONNECT_SECONDS = 10.0
_PAUSE_SECONDS = 0.25
_PAUSE_SECONDS_MAX = 5.0
# How often a read that failed inside is asked again.
_READS_MAX = 3
# Said by a proxy before gateways that don't answer. A gateway's own 503 has a message, and stays.
_AWAY = frozenset({502, 503, 504})
_PIECE_BYTES = 64 * 1024
_REVERSAL_STATUSES: Mapping[object, ReversalStatus] = {
    "NONE": "NONE",
    "REQUIRED": "REQUIRED",
    "COMPLETED": "COMPLETED",
}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    """Under the base URL: `/api/v2/card`."""
    query: Mapping[str, str | None] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[], Body] | None = None
    """Called once for each time the request is sent."""
    idempotency_key: str | None = None
    """Of a write: repeats under it take effect once."""
    streams: bool = False
    """The answer's body is read as it comes, by the caller."""
    timeout: float | None = None
    """How long the answer is awaited, repeats among them, in seconds."""

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


class Answer:
    """A success. Its body is read once: whole, or in pieces."""

    def __init__(self, asked: Asked, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._asked = asked
        self._connection = connection
        self._response = response
        self._text: bytes | None = None
        self.status = response.status

    def load(self) -> None:
        """Reads the whole body. Raises `NoAnswerError` for an answer that broke off."""
        self._text = b"".join(self.pieces())
        has_end = self._response.length is not None or self._response.chunked
        if self._text == b"" and not has_end:
            # `http.client` takes headers that broke off for whole ones.
            raise self._broken("the answer broke off")

    def header(self, name: str) -> str | None:
        return self._response.getheader(name)

    def json(self) -> Any:
        """Raises `NoAnswerError` for an answer that broke off or isn't JSON."""
        return self._parsed(b"".join(self.pieces()))

    def lines(self) -> Iterator[Any]:
        """Each line is a JSON. Raises `NoAnswerError` for an answer that broke off or isn't that."""
        rest = b""
        for piece in self.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            yield from (self._parsed(line) for line in lines if line)
        if rest:
            yield self._parsed(rest)

    def pieces(self) -> Iterator[bytes]:
        """Raises `NoAnswerError` for an answer that broke off."""
        if self._text is not None:
            yield self._text
            return
        try:
            while piece := self._response.read(_PIECE_BYTES):
                yield piece
            if self._response.length:
                raise http.client.IncompleteRead(b"", self._response.length)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, http.client.IncompleteRead) and error.partial:
                yield error.partial
            raise self._broken("the answer broke off") from error
        finally:
            self.close()

    def close(self) -> None:
        self._response.close()
        self._connection.close()

    def _parsed(self, text: bytes) -> Any:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self._broken("the answer is not JSON") from error

    def _broken(self, missing: str) -> NoAnswerError:
        return NoAnswerError(self._asked.name, missing, self._asked.idempotency_key)


class Transport:
    def __init__(
        self,
        base_url: SplitResult,
        authorization: Callable[[], str],
        timeout: float,
        connect: Connect | None = None,
    ) -> None:
        """`connect`: opens a connection whose steps take the given seconds at most; default: to `base_url`, without a proxy."""
        self._base_path = base_url.path
        self._authorization = authorization
        self._timeout = timeout
        self._connect = connect or _connect_to(base_url)
        self._closed = threading.Event()
        self._origin = f"{base_url.scheme}://{base_url.netloc}"
        self._was_answered = False

    def send(self, asked: Asked) -> Answer:
        """Returns a success. Raises `HttpError`, `NoAnswerError`, or `ClosedError`."""
        timeout = self._timeout if asked.timeout is None else asked.timeout
        starts_at = time.monotonic()
        was_sent = False
        times = 0
        while True:
            times += 1
            if self._closed.is_set():
                raise ClosedError
            least_pause = 0.0
            cause: Exception
            try:
                answer = self._once(asked, max(starts_at + timeout - time.monotonic(), 0.001))
                if 200 <= answer.status < 300:
                    return answer
                error = _error_of(answer, asked)
                if not _may_repeat(error, asked.idempotency_key is not None, times):
                    raise error
                least_pause = _retry_after(answer)
                cause = error
            except (OSError, http.client.HTTPException, NoAnswerError, _UnreachableError) as broken:
                cause = broken
            was_sent = was_sent or not isinstance(cause, _UnreachableError)
            tried = timeout if was_sent or self._was_answered else min(timeout, _CONNECT_SECONDS)
            pause = max(least_pause, _pause_after(times))
            if time.monotonic() + pause >= starts_at + tried:
                if isinstance(cause, HttpError):
                    raise cause
                missing = "no answer"
                if isinstance(cause, _UnreachableError):
                    missing = f"no gateway can be reached at {self._origin} ({cause})"
                raise NoAnswerError(
                    asked.name, f"{missing} within {tried:g} s", asked.idempotency_key, was_sent
                ) from cause
            self.pause(pause)

    def pause(self, seconds: float) -> None:
        """Waits, unless the client is closed meanwhile."""
        if self._closed.wait(seconds):
            raise ClosedError

    def close(self) -> None:
        self._closed.set()

    def _once(self, asked: Asked, left: float) -> Answer:
        body = asked.body() if asked.body else None
        streams = body is not None and not isinstance(body, bytes)
        # A body that streams takes as long as it takes.
        connection = self._connect(left if streams else min(_ATTEMPT_SECONDS, left))
        headers = {"authorization": self._authorization(), **asked.headers}
        if asked.idempotency_key is not None:
            headers["idempotency-key"] = asked.idempotency_key
        query = urlencode({name: value for name, value in asked.query.items() if value is not None})
        path = f"{self._base_path}{asked.path}{'?' if query else ''}{query}"
        try:
            try:
                connection.connect()
            except OSError as error:
                raise _UnreachableError(_reason_of(error)) from error
            try:
                connection.request(asked.method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                # A gateway may answer and close before it has read a whole body: that answer counts.
                if connection.sock is None:
                    raise
            answer = Answer(asked, connection, connection.getresponse())
            self._was_answered = True
            if not asked.streams or not 200 <= answer.status < 300:
                answer.load()
            return answer
        except BaseException:
            connection.close()
            raise


class _UnreachableError(Exception):
    """No connection came about, so that nothing was sent."""


def _reason_of(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, socket.gaierror):
        return "the name of the host can’t be resolved"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason})"
    if isinstance(error, TimeoutError):
        return "the host doesn’t answer"
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return "there is no route to the host"
    return str(error)


def _connect_to(base_url: SplitResult) -> Connect:
    host = base_url.hostname or ""
    if base_url.scheme == "http":
        return lambda timeout: http.client.HTTPConnection(host, base_url.port, timeout=timeout)
    context = ssl.create_default_context()
    return lambda timeout: http.client.HTTPSConnection(host, base_url.port, timeout=timeout, context=context)


def _may_repeat(error: HttpError, is_write: bool, times: int) -> bool:
    if error.status == 429:
        return True
    if error.status in _AWAY:
        return not error.is_own
    if error.status != 500:
        return False
    if is_write:
        return error.reversal_status not in (None, "COMPLETED")
    return times < _READS_MAX


def _pause_after(times: int) -> float:
    """Twice as long after each time, and not the same for all callers."""
    longest = min(_PAUSE_SECONDS * 2.0 ** min(times - 1, 16), _PAUSE_SECONDS_MAX)
    return longest * random.uniform(0.5, 1.0)


def _retry_after(answer: Answer) -> float:
    """Of `Retry-After` in seconds; 0 without one."""
    text = answer.header("retry-after") or ""
    return float(text) if text.isdigit() else 0.0


def _error_of(answer: Answer, asked: Asked) -> HttpError:
    body = _object_of(b"".join(answer.pieces()))
    message = body.get("message")
    own = message if isinstance(message, str) else None
    description = re.search(r'error_description="([^"]*)"', answer.header("www-authenticate") or "")
    return HttpError(
        Answered(
            status=answer.status,
            asked=asked.name,
            message=description.group(1) if description else own,
            is_own=own is not None,
            details=_details_of(body, own or ""),
            reversal_status=_REVERSAL_STATUSES.get(body.get("reversal_status")) if answer.status == 500 else None,
            request_id=answer.header("x-request-id"),
            idempotency_key=asked.idempotency_key,
        )
    )


def failed_operation(operation: Mapping[str, Any]) -> HttpError:
    """The error that the write would have been answered with."""
    body = operation.get("error", {})
    status = int(operation.get("code", 500))
    return HttpError(
        Answered(
            status=status,
            asked=f"operation {operation['receipt_id']}",
            message=body.get("message"),
            is_own=True,
            details=_details_of(body, ""),
            reversal_status=_REVERSAL_STATUSES.get(body.get("reversal_status")) if status == 500 else None,
        )
    )


def _details_of(body: Mapping[str, Any], message: str) -> dict[str, Detail]:
    """Error bodies of reports name a parameter in place of details."""
    details = body.get("details")
    if isinstance(details, Mapping):
        return {
            str(name): {"message": str(detail.get("message", "")), "code": str(detail.get("code", ""))}
            for name, detail in details.items()
            if isinstance(detail, Mapping)
        }
    param = body.get("param")
    return {param: {"message": message, "code": message}} if isinstance(param, str) else {}


def _object_of(text: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
