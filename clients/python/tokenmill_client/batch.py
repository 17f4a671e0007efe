"""Sends a list as a batch: in parts, each of which is a batch of its own with its name and number, a few of them in flight,
and yields the result of each record in the order of the list. A part that is sent again is the same batch.
"""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, get_args

from .errors import BatchError

RecordKind = Literal["token-create", "token-update", "token-lifecycle", "scheme-token", "reference"]
_KINDS = get_args(RecordKind)
# Records of a part: few enough that a part fits into the memory of both sides and into any gateway's limit.
_PART_RECORDS = 10_000

# What one name of a record or of its card is called in a row. Whatever isn't here can't be said over HTTP.
_COLUMNS: Mapping[str, str] = {
    "reference": "reference",
    "id": "id",
    "action": "action",
    "card_brand": "card_brand",
    "token_type": "token_type",
    "token_expiry_date": "token_expiry_date",
    "scheme_token_action": "scheme_token_action",
    "encrypted_card": "encrypted_card",
    "public_key_alias": "public_key_alias",
    "card_holder_name": "cardholder_name",
    "card_holder_email": "cardholder_email",
    "expiry_month": "expiry_month",
    "expiry_year": "expiry_year",
    "provider": "provider",
    "provider_account": "provider_account",
    "customer_id": "customer_id",
    "card_id": "card_id",
    "on_orphan": "on_orphan",
    "card.cardNumber": "card_number",
    "card.expiryMonth": "expiry_month",
    "card.expiryYear": "expiry_year",
    "card.cardholderName": "cardholder_name",
    "card.sequenceNumber": "sequence_number",
}

Record = Mapping[str, Any]


class BatchCheckpoint(TypedDict):
    """How far a batch has come. A program stores it with the results, and goes on from it after a crash."""

    batch_id: str
    records: int
    """How many records have their results."""
    parts: int
    """In how many parts they were sent."""


@dataclass(frozen=True)
class Ended:
    """A record of the list and what became of it."""

    record: Record
    result: Mapping[str, Any]
    """`line` is the record's place in the list, from 1."""


@dataclass(frozen=True)
class BatchPlan:
    batch_id: str
    in_flight: int
    checkpoint: BatchCheckpoint | None
    on_checkpoint: Callable[[BatchCheckpoint], object] | None
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set when nobody takes results any more: parts in flight aren't waited for then."""


@dataclass
class _Part:
    position: int
    before: int
    """How many records of the list are before it."""
    records: list[Record]
    rows: list[str]


def check_names(batch_id: object, kind: object) -> None:
    """Raises `BatchError` for what the types exclude: a list without a name would be taken for another."""
    if not isinstance(batch_id, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,56}", batch_id):
        raise BatchError("batch_id: name the list with 1 to 56 letters, digits, _ and -")
    if kind not in _KINDS:
        raise BatchError(f"kind: it is one of {', '.join(_KINDS)}")


def conflict_policy_of(policy: Mapping[str, str]) -> Mapping[str, str]:
    """Raises `BatchError` for a policy that can't be said over HTTP."""
    for name, value in policy.items():
        if name not in ("on_conflict", "on_expired") or (name, value) == ("on_conflict", "newest"):
            raise BatchError(f"policy.{name}: this can't be said over HTTP; send the batch over the queues")
    return policy


def send_batch(
    plan: BatchPlan,
    records: Iterable[Record],
    send_part: Callable[[int, bytes], list[Mapping[str, Any]]],
) -> Iterator[Ended]:
    """`send_part`: sends the rows of the part at this position, and returns the result of each."""
    checkpoint = plan.checkpoint
    if checkpoint is not None and checkpoint["batch_id"] != plan.batch_id:
        raise BatchError(f"the checkpoint is of the batch {checkpoint['batch_id']}, not of {plan.batch_id}")
    window: deque[tuple[_Part, Future[list[Mapping[str, Any]]]]] = deque()

    def taken() -> Iterator[Ended]:
        """Of the oldest part. Its checkpoint is told when the caller has taken all of it."""
        part, answer = window.popleft()
        yield from _ended_of(part, answer.result())
        if plan.on_checkpoint is not None:
            reached = part.before + len(part.records)
            plan.on_checkpoint({"batch_id": plan.batch_id, "records": reached, "parts": part.position + 1})

    pool = ThreadPoolExecutor(max_workers=plan.in_flight, thread_name_prefix="tokenmill-batch")
    try:
        for part in _parts_of(records):
            if checkpoint is not None and _is_done(part, checkpoint):
                continue
            if len(window) == plan.in_flight:
                yield from taken()
            body = "".join(part.rows).encode()
            part.rows.clear()
            window.append((part, pool.submit(send_part, part.position, body)))
        while window:
            yield from taken()
    finally:
        plan.stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _parts_of(records: Iterable[Record]) -> Iterator[_Part]:
    part = _Part(0, 0, [], [])
    for record in records:
        if len(part.records) == _PART_RECORDS:
            yield part
            part = _Part(part.position + 1, part.before + _PART_RECORDS, [], [])
        row = _row_of(record, part.before + len(part.records) + 1)
        part.rows.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
        part.records.append(record)
    if part.records:
        yield part


def _row_of(record: Record, line: int) -> dict[str, Any]:
    """The record as a flat row. Raises `BatchError` for a member that no row has."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if name == "card" and isinstance(value, Mapping):
            flat.update({f"card.{part}": of for part, of in value.items()})
        else:
            flat[name] = value
    row = {}
    for name, value in flat.items():
        if value is None:
            continue
        if name not in _COLUMNS:
            raise BatchError(
                f"record {line}: {name} is no member of a record, or can't be said over HTTP; "
                "correct it, or send the batch over the queues"
            )
        row[_COLUMNS[name]] = value
    return row


def _is_done(part: _Part, checkpoint: BatchCheckpoint) -> bool:
    if part.position == checkpoint["parts"] and part.before != checkpoint["records"]:
        raise BatchError(
            f"the list isn't the one of the checkpoint, in which {checkpoint['records']} records have their results: "
            "send the same list from its beginning, or start without the checkpoint"
        )
    return part.position < checkpoint["parts"]


def _ended_of(part: _Part, results: list[Mapping[str, Any]]) -> Iterator[Ended]:
    """A row of a part has the number of its line there; a record that of its place in the list."""
    if len(results) != len(part.records):
        raise BatchError(f"a part of {len(part.records)} records has {len(results)} results")
    for index, (record, result) in enumerate(zip(part.records, results)):
        yield Ended(record, {**result, "line": part.before + index + 1})
