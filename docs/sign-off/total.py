#!/usr/bin/env python3
"""The sender's half of the total of a migration: Python's standard library and the program `sort`.

    gpg --decrypt key.asc > key.txt
    python3 total.py --key key.txt --leave-out spring-2030.pack.leave-out.csv < rows.csv

Standard input is CSV with a header line and these columns, in any order:

    number      the card number, digits only
    expiry      YYYYMM, or empty
    reference   as in the file that was sent, or as the receiver's profile makes it; or empty
    brand       optional: then there is a sum for each brand with 1,000 rows or more
    line        optional: the row's line in the file that was sent (default: the first of its lines here)
    item        for nested JSON: the numbers of the element and of the card in it, `17.2`; then no line is needed
    batch_id    which file it is, if there are several

The file to leave out is the one that the receiver's `manifest pack` wrote, with the columns batch_id, line, item and reason.
Each row that is left makes one line, lower-case hex:

    HMAC-SHA-256(key, number LF expiry LF reference)

The total is the number of these lines and the SHA-256 over them, sorted as `LC_ALL=C sort` does, a line feed after each.
"""
import argparse
import csv
import hashlib
import hmac
import json
import os
import subprocess
import sys

BRAND_ROWS_MIN = 1000


def read_key(path):
    with open(path, encoding="ascii") as file:
        key = bytes.fromhex(file.read().strip())
    if len(key) != 32:
        sys.exit(f"{path}: the key has 64 hex digits")
    return key


def place_of(row, line):
    """The item names a row of nested JSON, where several rows may share a line."""
    return ("item", row["item"]) if row.get("item") else ("line", line)


def read_left_out(paths, columns):
    """The rows to leave out. `columns`: those of the rows that were sent, which must be able to name them."""
    left_out, batches = set(), set()
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                place = place_of(row, row["line"])
                if place[0] == "item" and "item" not in columns:
                    sys.exit(f"{path} names rows by their item: add the column item to the rows")
                batches.add(row.get("batch_id") or "")
                left_out.add((row.get("batch_id") if "batch_id" in columns else None, place))
    if len(batches) > 1 and "batch_id" not in columns:
        sys.exit("rows of several batches are to be left out: add the column batch_id to the rows")
    return left_out


def read_rows(reader, header):
    """A row may be several lines long, if a field with line feeds is in quotes: its line is the first of them."""
    first = reader.line_num + 1
    for fields in reader:
        if fields and len(fields) < len(header):
            sys.exit(f"line {first}: the row has fewer fields than the header; nothing was computed")
        if fields:
            row = dict(zip(header, fields))
            yield {**row, "line": row.get("line") or str(first)}
        first = reader.line_num + 1


def digests(rows, key, left_out):
    """One line for each row that counts: the digest, a blank, the brand."""
    for row in rows:
        line = row["line"]
        if (row.get("batch_id"), place_of(row, line)) in left_out:
            continue
        number, expiry = row["number"], row["expiry"]
        if not number.isdigit() or not (expiry == "" or len(expiry) == 6 and expiry.isdigit()):
            sys.exit(f"line {line}: number or expiry has another form; nothing was computed")
        text = "\n".join([number, expiry, row["reference"]])
        digest = hmac.new(key, text.encode("utf-8"), hashlib.sha256).hexdigest()
        yield f"{digest} {row.get('brand') or ''}\n"


def sorted_lines(lines):
    # All digests are equally long, so a brand behind them doesn't change their order.
    environment = {**os.environ, "LC_ALL": "C"}
    with subprocess.Popen(["sort"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as sort:
        for line in lines:
            sort.stdin.write(line)
        sort.stdin.close()
        yield from sort.stdout
    if sort.returncode != 0:
        sys.exit("sort failed; nothing was computed")


def main():
    parser = argparse.ArgumentParser(description="The sender's half of the total of a migration.")
    parser.add_argument("--key", required=True, help="file of the decrypted key")
    parser.add_argument("--leave-out", action="append", default=[], help="CSV of the rows to leave out; may be repeated")
    options = parser.parse_args()
    reader = csv.reader(sys.stdin)
    header = next(reader, [])
    whole, by_brand = [0, hashlib.sha256()], {}
    left_out = read_left_out(options.leave_out, header)
    for line in sorted_lines(digests(read_rows(reader, header), read_key(options.key), left_out)):
        digest, brand = line.rstrip("\n").split(" ", 1)
        for sum_of in (whole, by_brand.setdefault(brand, [0, hashlib.sha256()])):
            sum_of[0] += 1
            sum_of[1].update(digest.encode("ascii") + b"\n")
    shown = {
        brand: {"rows": count, "sha256": sha256.hexdigest()}
        for brand, (count, sha256) in sorted(by_brand.items())
        if brand != "" and count >= BRAND_ROWS_MIN
    }
    print(json.dumps({"rows": whole[0], "sha256": whole[1].hexdigest(), "by_brand": shown}, indent=2))


if __name__ == "__main__":
    sys.stdin.reconfigure(encoding="utf-8", newline="")
    main()
