"""A client over HTTP: encrypts cards, sends what its caller asks for until the gateway has answered, and waits for what takes
longer.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Union
from urllib.parse import SplitResult, quote, urlsplit

from .authorization import authorization_of
from .batch import BatchCheckpoint, BatchPlan, Ended, Record, RecordKind, check_names, conflict_policy_of, send_batch
from .capture_keys import newest_key
from .client_file import Credentials, GivenCredentials, read_credentials, take_credentials
from .errors import ClosedError, ConfigError, HttpError, NoAnswerError, RefusedError, WaitError
from .jwe import encrypt
from .transport import Answer, Asked, Body, Connect, Transport, failed_operation

Json = dict[str, Any]
BatchRows = Union[str, bytes, Callable[[], Iterable[Union[str, bytes]]]]

_ANSWER_SECONDS = 120.0
# The public keys are fetched anew after this time.
_CAPTURE_KEYS_SECONDS = 86_400.0
# After this time a batch that couldn't be sent isn't sent again.
_UPLOAD_SECONDS = 600.0
# Between two questions whether something has ended: longer each time.
_POLL_SECONDS = 0.1
_POLL_SECONDS_MAX = 1.0
# How long something that takes as long as it takes is awaited without `timeout`: longer than any job may wait.
_END_SECONDS_MAX = 8 * 86_400.0
_IN_FLIGHT = 3

_CARD = "/api/v2/card"
_CARD_MEMBERS = (
    "cardNumber",
    "expiryMonth",
    "expiryYear",
    "cardholderName",
    "sequenceNumber",
    "startMonth",
    "startYear",
    "captureTime",
)
_LOOKUP = "/api/v2/references/lookup"
_OPERATIONS = "/api/v2/operations"
_BATCHES = "/api/v2/batches"
_REPORTS = "/report-engine/api/v1/reports"
_CAPTURE_KEYS = "/.well-known/capture-keys"
_JSON_BODY = {"content-type": "application/json"}
_BATCH_TYPES = {"ndjson": "application/x-ndjson", "csv": "text/csv"}

_log = logging.getLogger("tokenmill_client")


def connect_http(
    *,
    base_url: str | None = None,
    client_file: str | Path | None = None,
    credentials: GivenCredentials | None = None,
    timeout: float = _ANSWER_SECONDS,
    connect: Connect | None = None,
) -> Client:
    """Opens a client. Sends nothing yet.

    `base_url`: where the gateway is, `https://vault.example`; default: `base_url` of the client's file.
    `client_file`: the path of the client's file. Without it, set `credentials`.
    `timeout`: how long an answer is awaited, repeats among them, in seconds.
    `connect`: opens a connection whose steps take the given seconds at most, such as one through a proxy.
    Raises `ConfigError` for a client's file that can't be used.
    """
    if credentials is not None:
        known = take_credentials(credentials)
    elif client_file is not None:
        known = read_credentials(Path(client_file))
    else:
        raise ConfigError("connect_http: give `client_file` or `credentials`")
    return Client(known, _base_url_of(base_url or known.base_url), timeout, connect)


class Client:
    """Made by `connect_http`. May be used by several threads at once.

    Every method raises `HttpError` if the answer isn't a success, `NoAnswerError` if there is none in time, and
    `ClosedError` after `close`. `timeout` is in seconds. Requests and answers are as `docs/openapi.json` describes them;
    `card` is a `Card` in clear, which is encrypted here. A write takes effect once under its `idempotency_key` (1 to 128
    printable ASCII characters): set it if your own code may repeat the request; default: a new one for each call. With
    `respond_async` the gateway stores the write and answers at once, and the client asks until it has ended;
    `on_accepted` is then called with the id for `operation` and `operation_end`.
    """

    def __init__(
        self,
        credentials: Credentials,
        base_url: SplitResult,
        timeout: float,
        connect: Connect | None,
    ) -> None:
        self.base_url = base_url.geturl()
        self._credentials = credentials
        self._transport = Transport(base_url, lambda: authorization_of(credentials), timeout, connect)
        self._capture_key = credentials.capture_key
        self._fetch_at = 0.0
        self._fetching = threading.Lock()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every wait and every repeat that is under way, in whatever thread."""
        self._transport.close()

    def create_token(
        self,
        request: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        respond_async: bool = False,
        on_accepted: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Creates a token of a card, or updates the card's token. `token_scope`: default that of the client's file.

        Raises `RefusedError` for a card with a `cvv`.
        """
        scope = request.get("token_scope") or self._credentials.token_scope
        if scope is None:
            raise ConfigError("create_token: `token_scope` is not set, and the client’s file has none")
        body = self._with_card({**request, "token_scope": scope})
        return self._write_object("PUT", _CARD, body, idempotency_key, respond_async, on_accepted, timeout)

    def get_token(self, token_id: str, *, timeout: float | None = None) -> Json:
        """The token's record."""
        return self._read(_card_path(token_id), timeout)

    def update_token(
        self,
        token_id: str,
        request: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        respond_async: bool = False,
        on_accepted: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Changes the token's card or its other members. Raises `RefusedError` for a card with a `cvv`."""
        path = _card_path(token_id)
        body = self._with_card(request)
        return self._write_object("PATCH", path, body, idempotency_key, respond_async, on_accepted, timeout)

    def suspend_token(
        self,
        token_id: str,
        *,
        idempotency_key: str | None = None,
        respond_async: bool = False,
        on_accepted: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> None:
        path = _card_path(token_id, "/suspend")
        self._write("PATCH", path, None, idempotency_key, respond_async, on_accepted, timeout)

    def activate_token(
        self,
        token_id: str,
        *,
        idempotency_key: str | None = None,
        respond_async: bool = False,
        on_accepted: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> None:
        path = _card_path(token_id, "/activate")
        self._write("PATCH", path, None, idempotency_key, respond_async, on_accepted, timeout)

    def delete_token(
        self,
        token_id: str,
        *,
        idempotency_key: str | None = None,
        respond_async: bool = False,
        on_accepted: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> None:
        """For good."""
        path = _card_path(token_id)
        self._write("DELETE", path, None, idempotency_key, respond_async, on_accepted, timeout)

    def put_owner(
        self,
        token_id: str,
        owner: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        respond_async: bool = False,
        on_accepted: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Adds an owner of the token's card, or changes what must travel with the card."""
        path = _card_path(token_id, "/references")
        return self._write_object("PUT", path, owner, idempotency_key, respond_async, on_accepted, timeout)

    def owners(self, token_id: str, *, timeout: float | None = None) -> Iterator[Json]:
        """The owners of the token's card, oldest first. `timeout`: of each page."""
        after: str | None = None
        while True:
            page = self._read(_card_path(token_id, "/references"), timeout, {"after": after})
            yield from page["references"]
            if page.get("next") is None:
                return
            after = str(page["next"])

    def look_up_owners(self, request: Mapping[str, Any], *, timeout: float | None = None) -> list[Json]:
        """Finds tokens by owners of one `token_scope`: in the order of `references`, at most 1,000 at once."""
        text = json.dumps(request).encode()
        asked = Asked("POST", _LOOKUP, headers=_JSON_BODY, body=lambda: text, timeout=timeout)
        found: list[Json] = self._transport.send(asked).json()["references"]
        return found

    def operation(self, receipt_id: str, *, timeout: float | None = None) -> Json:
        """The state of a write that was made with `respond_async`."""
        return self._read(f"{_OPERATIONS}/{_part(receipt_id)}", timeout)

    def operation_end(self, receipt_id: str, *, timeout: float | None = None) -> Json:
        """Asks until the operation has ended, as long as it takes without `timeout`.

        Raises the `HttpError` that the write would have been answered with, and `WaitError` after `timeout`.
        """
        wait = _Wait(f"operation {receipt_id}", timeout)
        while True:
            found = self.operation(receipt_id, timeout=wait.left())
            if found["status"] == "SUCCEEDED":
                return found
            if found["status"] == "FAILED":
                raise failed_operation(found)
            wait.pause(self._transport)

    def batch(
        self,
        records: Iterable[Record],
        *,
        kind: RecordKind,
        batch_id: str,
        scope: str | None = None,
        policy: Mapping[str, str] | None = None,
        dry_run: bool = False,
        checkpoint: BatchCheckpoint | None = None,
        on_checkpoint: Callable[[BatchCheckpoint], object] | None = None,
        in_flight: int = _IN_FLIGHT,
        timeout: float = _UPLOAD_SECONDS,
    ) -> Iterator[Ended]:
        """Sends a list and yields the result of each record in the order of the list. The list isn't held.

        Its card numbers go over the wire in clear: use TLS. A record has the members of the kind's request, a card in clear
        as `card`, and `reference`, your own name for it.
        `batch_id`: 1 to 56 letters, digits, `_` and `-`: the name of this list. The same list under the same name is the
        same batch: what was done is answered again, and nothing is done twice.
        `scope`: of the tokens, for `token-create` only; default: that of the client's file.
        `dry_run`: predicts each outcome and changes nothing.
        `checkpoint`: where the batch goes on, with the same list from its beginning.
        `on_checkpoint`: called when the caller has taken all results of a part.
        `in_flight`: how many parts of 10,000 records may be sent and not yet taken; of other kinds than `token-create`
        one.
        `timeout`: how long one part may wait for its end, in seconds.
        Raises `BatchError` for what can't be said over HTTP: owners' data, third parties, source times.
        """
        check_names(batch_id, kind)
        conflict = conflict_policy_of(policy or {})
        token_scope = (scope or self._credentials.token_scope) if kind == "token-create" else None
        # What happens to one token keeps the order of the list.
        at_once = in_flight if kind == "token-create" else 1
        plan = BatchPlan(batch_id, at_once, checkpoint, on_checkpoint)

        def end_if_stopped(_: Json) -> None:
            if plan.stopped.is_set():
                raise ClosedError

        def send_part(position: int, rows: bytes) -> list[Mapping[str, Any]]:
            accepted = self.submit_batch(
                rows,
                kind=kind,
                token_scope=token_scope,
                batch_id=None if dry_run else f"{batch_id}-{position}",
                on_conflict=conflict.get("on_conflict"),
                on_expired=conflict.get("on_expired"),
                dry_run=dry_run,
                timeout=timeout,
            )
            part_id: str = accepted["batch_id"]
            self.batch_end(part_id, timeout=timeout, on_progress=end_if_stopped)
            return list(self.batch_results(part_id))

        return send_batch(plan, records, send_part)

    def submit_batch(
        self,
        rows: BatchRows,
        *,
        kind: RecordKind = "token-create",
        token_scope: str | None = None,
        batch_id: str | None = None,
        on_conflict: str | None = None,
        on_expired: str | None = None,
        dry_run: bool = False,
        format: Literal["ndjson", "csv"] = "ndjson",
        timeout: float = _UPLOAD_SECONDS,
    ) -> Json:
        """Sends the rows of a batch; a repeat under the same `batch_id` is the same batch.

        The rows hold card numbers in clear: use TLS.
        `rows`: a text, or a function that opens them; it is called again if the request is repeated.
        `token_scope`: needed for `token-create`, and only there.
        """
        query = {
            "kind": kind,
            "token_scope": token_scope,
            "batch_id": None if dry_run else batch_id or f"c-{uuid.uuid4()}",
            "on_conflict": on_conflict,
            "on_expired": on_expired,
            "dry_run": "true" if dry_run else None,
        }
        asked = Asked(
            "POST",
            _BATCHES,
            query=query,
            headers={"content-type": _BATCH_TYPES[format]},
            body=lambda: _body_of(rows),
            idempotency_key=batch_id or str(uuid.uuid4()),
            timeout=timeout,
        )
        accepted: Json = self._transport.send(asked).json()
        return accepted

    def batch_state(self, batch_id: str, *, timeout: float | None = None) -> Json:
        """State, counts and progress of a batch."""
        return self._read(_batch_path(batch_id), timeout)

    def batch_end(
        self,
        batch_id: str,
        *,
        on_progress: Callable[[Json], object] | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Asks until every row has its outcome, as long as it takes without `timeout`; then raises `WaitError`.

        `on_progress`: called with each state.
        """
        wait = _Wait(f"batch {batch_id}", timeout)
        while True:
            batch = self.batch_state(batch_id, timeout=wait.left())
            if on_progress is not None:
                on_progress(batch)
            if batch["finished"]:
                return batch
            wait.pause(self._transport)

    def batch_results(self, batch_id: str, *, timeout: float | None = None) -> Iterator[Json]:
        """The results of a finished batch, a row each, in the order of its rows. `timeout`: of the first of them."""
        headers = {"accept": "application/x-ndjson"}
        asked = Asked("GET", _batch_path(batch_id, "/results"), headers=headers, streams=True, timeout=timeout)
        yield from self._transport.send(asked).lines()

    def cancel_batch(self, batch_id: str, *, timeout: float | None = None) -> None:
        """Cancels what of the batch hasn't started."""
        key = str(uuid.uuid4())
        self._transport.send(Asked("DELETE", _batch_path(batch_id), idempotency_key=key, timeout=timeout)).close()

    def order_report(
        self,
        order: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Asks for a report: `reportType`, `reportEntityUid`, `reportParameter`, `mimeType`."""
        return self._write_object("POST", _REPORTS, order, idempotency_key, False, None, timeout)

    def report_file(self, report_uid: str, *, timeout: float | None = None) -> Iterator[bytes]:
        """The file of a report in pieces, once it is made; waits as long as it takes without `timeout`.

        The bytes are checked: the iteration ends with a `ValueError` if they aren't the file's. Raises `WaitError` after
        `timeout`.
        """
        wait = _Wait(f"report {report_uid}", timeout)
        while True:
            try:
                path = f"{_REPORTS}/{_part(report_uid)}"
                return _checked(self._transport.send(Asked("GET", path, streams=True, timeout=timeout)))
            except HttpError as error:
                # A report that has no file yet is answered 404, with its state.
                if error.status != 404 or not re.search(r"is (INITIATED|PROCESSING_STARTED)\b", str(error)):
                    raise
            wait.pause(self._transport)

    def _read(self, path: str, timeout: float | None, query: Mapping[str, str | None] | None = None) -> Json:
        answer: Json = self._transport.send(Asked("GET", path, query=query or {}, timeout=timeout)).json()
        return answer

    def _write_object(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        idempotency_key: str | None,
        respond_async: bool,
        on_accepted: Callable[[str], object] | None,
        timeout: float | None,
    ) -> Json:
        made = self._write(method, path, body, idempotency_key, respond_async, on_accepted, timeout)
        if made is None:
            raise NoAnswerError(f"{method} {path}", "the answer is empty", idempotency_key)
        return made

    def _write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        idempotency_key: str | None,
        respond_async: bool,
        on_accepted: Callable[[str], object] | None,
        timeout: float | None,
    ) -> Json | None:
        text = None if body is None else json.dumps(body).encode()
        headers = {} if text is None else dict(_JSON_BODY)
        if respond_async:
            headers["prefer"] = "respond-async"
        asked = Asked(
            method,
            path,
            headers=headers,
            body=None if text is None else lambda: text,
            idempotency_key=idempotency_key or str(uuid.uuid4()),
            timeout=timeout,
        )
        response = self._transport.send(asked)
        if response.status == 204:
            response.close()
            return None
        answer: Json = response.json()
        if response.status != 202 or not respond_async:
            return answer
        receipt_id = str(answer["receipt_id"])
        if on_accepted is not None:
            on_accepted(receipt_id)
        record: Json | None = self.operation_end(receipt_id, timeout=timeout).get("record")
        return record

    def _with_card(self, request: Mapping[str, Any]) -> Json:
        body = dict(request)
        card = body.pop("card", None)
        return body if card is None else {**body, **self._encrypted(card)}

    def _encrypted(self, card: Mapping[str, Any]) -> dict[str, str]:
        """Encrypts to the newest key. The key of the client's file does, if the gateway has none that can be proved."""
        if "cvv" in card:
            raise RefusedError("not sent: body.cvv: cvv_not_allowed")
        # Nobody can see in the encrypted card that a member of it has a wrong name.
        unknown = [f"body.card.{name}: field_unknown" for name in card if name not in _CARD_MEMBERS]
        if unknown:
            raise RefusedError(f"not sent: {', '.join(unknown)}. A card has {', '.join(_CARD_MEMBERS)}.")
        with self._fetching:
            if time.monotonic() >= self._fetch_at:
                self._fetch_at = time.monotonic() + _CAPTURE_KEYS_SECONDS
                self._fetch_capture_key()
            key = self._capture_key
        if key is None:
            raise ConfigError("the client’s file names no JWE capture key; ask the operator for one")
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        plain = json.dumps({**card, "captureTime": now}, ensure_ascii=False, separators=(",", ":")).encode()
        return {"encrypted_card": encrypt(plain, key.public_key, key.kid), "public_key_alias": key.alias}

    def _fetch_capture_key(self) -> None:
        entity_id = self._credentials.entity_id
        try:
            document = self._read(_CAPTURE_KEYS, None, {"entity_id": entity_id})
            self._capture_key = newest_key(document, entity_id, self._credentials.trusted, time.time())
        except (ConfigError, HttpError) as error:
            _log.warning("no newer capture key was taken; that of the client’s file is used: %s", error)


class _Wait:
    """For the end of something that goes on by itself."""

    def __init__(self, what: str, timeout: float | None) -> None:
        self._what = what
        self._timeout = _END_SECONDS_MAX if timeout is None else timeout
        self._ends_at = time.monotonic() + self._timeout
        self._seconds = _POLL_SECONDS

    def left(self) -> float:
        return max(self._ends_at - time.monotonic(), 0.001)

    def pause(self, transport: Transport) -> None:
        if self.left() <= self._seconds:
            raise WaitError(self._what, self._timeout)
        transport.pause(self._seconds)
        self._seconds = min(2 * self._seconds, _POLL_SECONDS_MAX)


def _base_url_of(given: str) -> SplitResult:
    """With `/oidc`, under which all services are, and without a slash at its end."""
    url = urlsplit(given)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ConfigError("connect_http: `base_url` is not a URL: https://host or http://127.0.0.1:8080")
    path = url.path.rstrip("/")
    return SplitResult(url.scheme, url.netloc, path if path.endswith("/oidc") else f"{path}/oidc", "", "")


def _part(text: str) -> str:
    if not isinstance(text, str) or text == "":
        raise TypeError(f"an id is a text that isn't empty, not {text!r}")
    return quote(text, safe="")


def _card_path(token_id: str, more: str = "") -> str:
    return f"{_CARD}/{_part(token_id)}{more}"


def _batch_path(batch_id: str, more: str = "") -> str:
    return f"{_BATCHES}/{_part(batch_id)}{more}"


def _body_of(rows: BatchRows) -> Body:
    if callable(rows):
        return (piece.encode() if isinstance(piece, str) else piece for piece in rows())
    return rows.encode() if isinstance(rows, str) else rows


def _checked(answer: Answer) -> Iterator[bytes]:
    """The file, whose ETag is its SHA-256."""
    expected = re.fullmatch(r'"([0-9a-f]{64})"', answer.header("etag") or "")
    digest = hashlib.sha256()
    for piece in answer.pieces():
        digest.update(piece)
        yield piece
    if expected and digest.hexdigest() != expected.group(1):
        raise ValueError("the file of the report is not the one that was made: download it again")
