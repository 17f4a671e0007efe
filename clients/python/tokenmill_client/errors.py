"""The errors of the client. Each says what to do next, and passes between processes (`pickle`) as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict

ReversalStatus = Literal["NONE", "REQUIRED", "COMPLETED"]


class Detail(TypedDict):
    """What is wrong with one field."""

    message: str
    code: str


class ConfigError(Exception):
    """The client's file or an option can't be used."""


class RefusedError(Exception):
    """The client refused the request and didn't send it."""


class ClosedError(Exception):
    """The client was closed while the caller waited."""

    def __str__(self) -> str:
        return "the client was closed"


class WaitError(Exception):
    """The wait ended before what was waited for, which goes on."""

    def __init__(self, what: str, timeout: float) -> None:
        super().__init__(what, timeout)
        self._what = what
        self._timeout = timeout

    def __str__(self) -> str:
        return f"{self._what} has not ended within {self._timeout:g} s. It goes on: wait for it again."


class BatchError(Exception):
    """Ends a batch. What was answered before stays done; the batch can go on from its last checkpoint."""


class NoAnswerError(Exception):
    """No answer came in time, or none that can be read whole. A write may have had an effect, unless nothing was sent."""

    def __init__(self, asked: str, missing: str, idempotency_key: str | None = None, is_sent: bool = True) -> None:
        """`missing`: what there is in place of an answer. `is_sent` false: no gateway was reached."""
        super().__init__(asked, missing, idempotency_key, is_sent)
        self.idempotency_key = idempotency_key
        self._is_sent = is_sent
        self._said = f"{asked}: {missing}."

    def __str__(self) -> str:
        if not self._is_sent:
            return (
                f"{self._said} Nothing was sent: compare the base URL with the operator’s, and ask whether a gateway "
                "runs there."
            )
        if self.idempotency_key is None:
            return f"{self._said} Ask again."
        return (
            f"{self._said} It may have had an effect: repeat the same request with the idempotency key "
            f"{self.idempotency_key} to learn what became of it."
        )


@dataclass(frozen=True)
class Answered:
    """What an answer that isn't a success says."""

    status: int
    asked: str
    """Method and path: `PUT /api/v2/card`."""
    message: str | None = None
    is_own: bool = False
    details: Mapping[str, Detail] = field(default_factory=dict)
    reversal_status: ReversalStatus | None = None
    request_id: str | None = None
    idempotency_key: str | None = None


class HttpError(Exception):
    """The gateway answered, and it isn't a success."""

    status: int
    details: Mapping[str, Detail]
    """The wrong fields, and the code of what is wrong with each."""
    is_own: bool
    """The answer is tokenmill's own, not that of a proxy before it."""
    reversal_status: ReversalStatus | None
    """Of a write that was answered 500: what became of it."""
    request_id: str | None
    """`X-Request-Id`, by which the operator finds the request in the log."""
    idempotency_key: str | None

    def __init__(self, answered: Answered) -> None:
        super().__init__(answered)
        self._text = _text_of(answered)
        self.status = answered.status
        self.details = answered.details
        self.is_own = answered.is_own
        self.reversal_status = answered.reversal_status
        self.request_id = answered.request_id
        self.idempotency_key = answered.idempotency_key

    def __str__(self) -> str:
        return self._text


def _text_of(answered: Answered) -> str:
    fields = [f"{name}: {_words_of(detail)}" for name, detail in answered.details.items()]
    said = ", ".join(fields) or answered.message or "no reason given"
    return f"{answered.asked}: {answered.status} {said.removesuffix('.')}. {_next_step(answered)}"


def _words_of(detail: Detail) -> str:
    """The reason in words, and its code, by which `docs/results.md` lists it."""
    code, message = detail["code"], detail["message"]
    return code if message == code else f"{code} ({message.removesuffix('.')})"


_AFTER_STATUS = {
    401: "The installation doesn’t accept these credentials: compare the client’s file with the operator’s.",
    403: "Nothing was done: ask the operator for the role, the entity or the scope.",
    404: "Nothing was done: it isn’t there, or belongs to another client.",
    400: "Nothing was done: change what is named, and send it as a new request.",
    429: "The installation is busy: send it again later, with {key}.",
}
_AFTER_FAILURE: Mapping[ReversalStatus, str] = {
    "NONE": "Nothing was left behind: repeat it with {key}.",
    "REQUIRED": "What it did is being undone: repeat it later with {key} to learn the end.",
    "COMPLETED": "What it did was undone: to do it, ask anew with another idempotency key.",
}


def _next_step(answered: Answered) -> str:
    is_elsewhere = any(detail["code"] == "path_unknown" for detail in answered.details.values())
    if is_elsewhere or (not answered.is_own and 400 <= answered.status < 500 and answered.status != 429):
        return "No gateway answers so: compare the base URL with the operator’s."
    given = answered.idempotency_key
    key = "the same idempotency key" if given is None else f"the idempotency key {given}"
    if answered.status in _AFTER_STATUS:
        return _AFTER_STATUS[answered.status].replace("{key}", key)
    if answered.reversal_status is not None:
        return _AFTER_FAILURE[answered.reversal_status].replace("{key}", key)
    if 300 <= answered.status < 400:
        return "A gateway redirects nobody: compare the base URL with the operator’s."
    again = "Ask again" if given is None else f"Repeat it with {key}"
    told = "when it was" if answered.request_id is None else f"the request id {answered.request_id}"
    return f"{again}; if it stays so, tell the operator {told}."
