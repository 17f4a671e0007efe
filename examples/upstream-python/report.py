"""python3 report.py ENTITY DAY OUT.csv: asks for the settlement report of a day (2026-01-31) and writes its file."""

import sys

from gateway import open_client

if len(sys.argv) != 4:
    print("usage: python3 report.py ENTITY DAY OUT.csv", file=sys.stderr)
    sys.exit(64)
entity, day, path = sys.argv[1:]
with open_client() as client:
    report = client.order_report(
        {
            "reportType": "MERCHANT_SETTLEMENT_REPORT",
            "reportEntityUid": entity,
            "reportParameter": {"clearingDate": day},
            "mimeType": "text/csv",
        }
    )
    with open(path, "wb") as out:
        for piece in client.report_file(report["reportUid"]):
            out.write(piece)
print(f"{path}: report {report['reportUid']}")
