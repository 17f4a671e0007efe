"""Each method of the client against a real gateway: GATEWAY_URL and CLIENT_FILE in the environment say which."""

from __future__ import annotations

import json
import os
import unittest
from pathlib import Path
from typing import Any

from tokenmill_client import (
    BatchCheckpoint,
    BatchError,
    Card,
    Client,
    ConfigError,
    GivenCredentials,
    HttpError,
    RefusedError,
    connect_http,
)
from tokenmill_client.client_file import Credentials, read_credentials

VECTORS = Path(__file__).parents[2] / "vectors"
URL = os.environ["GATEWAY_URL"]
CLIENT_FILE = Path(os.environ["CLIENT_FILE"])
FILE = json.loads(CLIENT_FILE.read_text())


def key_of(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((CLIENT_FILE.parent / name).read_text())
    return content


def test_pan(index: int) -> str:
    """A number of a published range, with its Luhn digit."""
    body = f"411111{index:09}"
    doubled = (int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(body)))
    return body + str(-sum(value - 9 if value > 9 else value for value in doubled) % 10)


def card(index: int) -> Card:
    return {"cardNumber": test_pan(index), "expiryMonth": 12, "expiryYear": 2034}


class GatewayTest(unittest.TestCase):
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = connect_http(base_url=URL, client_file=CLIENT_FILE, timeout=200)
        cls.addClassCleanup(cls.client.close)

    def opened(self, credentials: GivenCredentials) -> Client:
        client = connect_http(base_url=URL, credentials=credentials, timeout=200)
        self.addCleanup(client.close)
        return client

    def create(self, index: int) -> str:
        return str(self.client.create_token({"card": card(index)})["reuse_token"])

    def test_makes_reads_changes_suspends_activates_and_deletes_a_token(self) -> None:
        token = self.create(1)
        found = self.client.get_token(token)
        self.assertEqual([found["token_status"], found["expiry_year"]], ["ACTIVE", 2034])
        changed = self.client.update_token(token, {"card": {**card(1), "expiryYear": 2035}})
        self.assertEqual(changed["expiry_year"], 2035)
        self.client.suspend_token(token)
        self.assertEqual(self.client.get_token(token)["token_status"], "SUSPENDED")
        self.client.activate_token(token)
        self.assertEqual(self.client.get_token(token)["token_status"], "ACTIVE")
        self.client.delete_token(token)
        with self.assertRaises(HttpError) as raised:
            self.client.get_token(token)
        self.assertEqual(raised.exception.status, 404)

    def test_a_key_is_the_same_request_as_the_vectors_say(self) -> None:
        for case in json.loads((VECTORS / "idempotency.json").read_text())["cases"]:
            with self.subTest(case["name"]):
                key = f"python-{case['name']}".replace(" ", "-")
                first = self.client.create_token(case["first"], idempotency_key=key)
                if case["same"]:
                    self.assertEqual(self.client.create_token(case["second"], idempotency_key=key), first)
                    continue
                with self.assertRaisesRegex(HttpError, "jti_reused .*Nothing was done: change what is named"):
                    self.client.create_token(case["second"], idempotency_key=key)

    def test_signs_in_by_the_client_s_own_key(self) -> None:
        file = {name: value for name, value in FILE.items() if name != "api_key"}
        capture_key = key_of(FILE["capture_keys"]["jwe"]["public_key_file"])
        signing_key = key_of(FILE["signing_key_file"])
        client = self.opened({"file": file, "signing_key": signing_key, "capture_key": capture_key})
        token = client.create_token({"card": card(4)})["reuse_token"]
        self.assertEqual(client.get_token(token)["reuse_token"], token)

    def test_says_that_a_key_or_a_password_is_wrong(self) -> None:
        says = "401 .* The installation doesn’t accept these credentials: compare the client’s file"
        wrong_password = self.opened({"file": {**FILE, "api_key": "another"}})
        self.assertRaisesRegex(HttpError, says, wrong_password.get_token, "t1")
        file = {name: value for name, value in FILE.items() if name != "api_key"}
        other = json.loads((VECTORS / "keys.json").read_text())["signing_keys"]["EdDSA"]
        wrong_key = self.opened({"file": file, "signing_key": other})
        self.assertRaisesRegex(HttpError, says, wrong_key.get_token, "t1")

    def test_encrypts_to_no_key_that_somebody_put_in_the_place_of_the_installation_s(self) -> None:
        others = json.loads((VECTORS / "capture-keys.json").read_text())["keys"]
        genuine = key_of(FILE["capture_keys"]["jwe"]["public_key_file"])
        swapped = {**others["RSA"]["public_jwk"], "kid": genuine["kid"], "statement": genuine["statement"]}
        with self.assertRaisesRegex(ConfigError, "not the one that the installation signed"):
            connect_http(base_url=URL, credentials={"file": FILE, "capture_key": swapped})

    def test_takes_the_newest_capture_key_from_the_gateway(self) -> None:
        client = self.opened({"file": FILE})
        self.assertIn("reuse_token", client.create_token({"card": card(5)}))

    def test_waits_for_a_write_that_the_gateway_answers_at_once(self) -> None:
        receipts: list[str] = []
        made = self.client.create_token({"card": card(6)}, respond_async=True, on_accepted=receipts.append)
        ended = self.client.operation_end(receipts[0])
        self.assertEqual([ended["status"], ended["record"]], ["SUCCEEDED", made])
        self.assertEqual(self.client.operation(receipts[0])["status"], "SUCCEEDED")
        with self.assertRaisesRegex(HttpError, "400 body.encrypted_card: pan_luhn .*Nothing was done"):
            self.client.create_token({"card": {**card(7), "cardNumber": "4111111111111112"}}, respond_async=True)

    def test_refuses_a_cvv_and_sends_nothing(self) -> None:
        with self.assertRaisesRegex(RefusedError, "not sent: body.cvv: cvv_not_allowed"):
            self.client.create_token({"card": {**card(8), "cvv": "123"}})

    def test_adds_owners_lists_them_and_finds_tokens_by_them(self) -> None:
        token = self.create(9)
        owner = {"provider": "acme", "customer_id": "c-9", "card_id": "k-9"}
        self.assertEqual(self.client.put_owner(token, owner)["reference_outcome"], "ADDED")
        self.assertEqual(list(self.client.owners(token)), [owner])
        references = [owner, {"provider": "acme", "card_id": "none"}]
        found = self.client.look_up_owners({"token_scope": FILE["token_scope"], "references": references})
        self.assertEqual([one["found"] for one in found], [True, False])
        self.assertEqual(found[0]["reuse_token"], token)

    def test_submits_a_batch_waits_for_its_end_and_streams_its_results(self) -> None:
        def rows() -> list[str]:
            return [
                json.dumps({"reference": f"r-{row}", "card_number": test_pan(100 + row), "expiry": "12/34"}) + "\n"
                for row in range(40)
            ]

        def submit() -> dict[str, Any]:
            return self.client.submit_batch(rows, token_scope=FILE["token_scope"], batch_id="from-python")

        accepted = submit()
        self.assertEqual([accepted["batch_id"], accepted["records"]], ["from-python", 40])
        self.assertEqual(submit(), accepted)
        seen: list[int] = []
        ended = self.client.batch_end("from-python", on_progress=lambda batch: seen.append(batch["records_done"]))
        self.assertEqual([ended["state"], ended["counts"]["CREATED"], seen[-1]], ["FINISHED", 40, 40])
        self.assertTrue(self.client.batch_state("from-python")["finished"])
        results = list(self.client.batch_results("from-python"))
        self.assertEqual([one["reference"] for one in results], [f"r-{row}" for row in range(40)])
        with self.assertRaisesRegex(HttpError, "404"):
            self.client.cancel_batch("nothing")

    def test_sends_a_list_and_goes_on_from_a_checkpoint(self) -> None:
        size = 20_050
        records = [{"reference": f"card-{row}", "card": card(1_000 + row)} for row in range(size)]
        checkpoints: list[Any] = []

        def send(checkpoint: Any = None) -> list[Any]:
            batch = self.client.batch(
                iter(records),
                kind="token-create",
                batch_id="python-list",
                checkpoint=checkpoint,
                on_checkpoint=checkpoints.append,
            )
            return list(batch)

        ended = send()
        self.assertEqual([one.record for one in ended], records)
        self.assertEqual([one.result["line"] for one in ended], list(range(1, size + 1)))
        self.assertEqual({one.result["outcome"] for one in ended}, {"CREATED"})
        last: BatchCheckpoint = {"batch_id": "python-list", "records": size, "parts": 3}
        self.assertEqual([len(checkpoints), checkpoints[-1]], [3, last])
        self.assertEqual([one.result["line"] for one in send(checkpoints[1])], list(range(20_001, size + 1)))
        self.assertEqual(send(last), [])
        with self.assertRaisesRegex(BatchError, "isn't the one of the checkpoint"):
            other: BatchCheckpoint = {"batch_id": "l", "records": size, "parts": 1}
            list(self.client.batch(records, kind="token-create", batch_id="l", checkpoint=other))
        with self.assertRaisesRegex(BatchError, "record 1: on_file .* can't be said over HTTP"):
            list(self.client.batch([{"card": card(1), "on_file": {}}], kind="token-create", batch_id="l"))
        with self.assertRaisesRegex(BatchError, "policy.relink: this can't be said over HTTP"):
            self.client.batch(records, kind="token-create", batch_id="l", policy={"relink": "true"})
        predicted = self.client.batch([{"card": card(30_000)}], kind="token-create", batch_id="l", dry_run=True)
        self.assertEqual([one.result["outcome"] for one in predicted], ["CREATED"])

    def test_raises_what_a_batch_is_refused_for(self) -> None:
        rows = json.dumps({"reference": "r", "card_number": test_pan(1), "expiry": "12/34"}) + "\n"
        with self.assertRaisesRegex(HttpError, "POST /api/v2/batches: 400 .* Nothing was done"):
            self.client.submit_batch(lambda: iter([rows] * 20_000), batch_id="no-scope")

    def test_asks_for_a_report_waits_for_its_file_and_checks_it(self) -> None:
        order = {
            "reportType": "MERCHANT_SETTLEMENT_REPORT",
            "reportEntityUid": FILE["entity_id"],
            "reportParameter": {"clearingDate": "2026-01-05"},
            "mimeType": "text/csv",
        }
        report = self.client.order_report(order)
        text = b"".join(self.client.report_file(report["reportUid"])).decode()
        self.assertIn(",", text.splitlines()[0])
        with self.assertRaisesRegex(HttpError, "404"):
            self.client.report_file("7b1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b")

    def test_reads_the_client_file_with_its_keys(self) -> None:
        credentials: Credentials = read_credentials(CLIENT_FILE)
        self.assertEqual(credentials.capture_key and credentials.capture_key.alias, FILE["capture_keys"]["jwe"]["alias"])
        with self.assertRaisesRegex(ConfigError, "nowhere.json is not there"):
            connect_http(client_file="nowhere.json")


if __name__ == "__main__":
    unittest.main()
