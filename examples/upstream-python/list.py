"""python3 list.py CARDS.ndjson: keeps the cards of a file as tokens, and goes on where it was stopped. A line:
{"reference":"customer-1","card":{"cardNumber":"…","expiryMonth":12,"expiryYear":2031}}.

Beside the file: CARDS.ndjson.results, a line for each card, and CARDS.ndjson.checkpoint, how far it has come.
"""

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gateway import open_client
from tokenmill_client import BatchCheckpoint

if len(sys.argv) != 2:
    print("usage: python3 list.py CARDS.ndjson", file=sys.stderr)
    sys.exit(64)
file = Path(sys.argv[1])
results, mark = Path(f"{file}.results"), Path(f"{file}.checkpoint")


def records() -> Iterator[dict]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def list_name() -> str:
    """The same file is the same list: its digest names the batch."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while piece := content.read(65_536):
            digest.update(piece)
    return f"list-{digest.hexdigest()[:32]}"


stored = json.loads(mark.read_text()) if mark.exists() else {}
counts: Counter[str] = Counter()
with open_client() as client, results.open("ab") as out:
    # What was written after the last checkpoint is written again, so it is taken away.
    out.truncate(stored.get("bytes", 0))

    def store(checkpoint: BatchCheckpoint) -> None:
        out.flush()
        os.fsync(out.fileno())
        new = Path(f"{mark}.new")
        new.write_text(json.dumps({"bytes": os.fstat(out.fileno()).st_size, "checkpoint": checkpoint}))
        new.replace(mark)
        print(f"{checkpoint['records']} cards", file=sys.stderr)

    batch = client.batch(
        records(),
        kind="token-create",
        batch_id=list_name(),
        checkpoint=stored.get("checkpoint"),
        on_checkpoint=store,
    )
    for ended in batch:
        result = ended.result
        counts[result["outcome"]] += 1
        line = {
            "reference": ended.record.get("reference"),
            "outcome": result["outcome"],
            "token": result.get("reuse_token"),
            "reason": result.get("reason"),
        }
        out.write(f"{json.dumps(line)}\n".encode())
print(f"done: {json.dumps(counts)}; {results}")
