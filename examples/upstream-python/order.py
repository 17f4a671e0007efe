"""python3 order.py ORDER < card.json: keeps the card of an order as a token. `card.json`: {"cardNumber":"…","expiryMonth":12,…}.

The order's number is the idempotency key: however often this runs, the order has one token.
"""

import json
import sys

from gateway import open_client
from tokenmill_client import HttpError, NoAnswerError

if len(sys.argv) != 2:
    print("usage: python3 order.py ORDER < card.json", file=sys.stderr)
    sys.exit(64)
order = sys.argv[1]
card = json.load(sys.stdin)
with open_client() as client:
    try:
        token = client.create_token({"card": card}, idempotency_key=f"order-{order}")
    except (HttpError, NoAnswerError) as error:
        # It says what to do next.
        sys.exit(str(error))
print(order, token["reuse_token"], token["bin"], "…", token["last_four"])
