"""What the client repeats, what it doesn't, and what its errors say, against a scripted gateway."""

from __future__ import annotations

import json
import pickle
import socket
import threading
import unittest
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from unittest import mock

from scripted import FILE, HANGS_UP, SILENT, Gateway, scripted_gateway
from tokenmill_client import BatchError, ClosedError, HttpError, NoAnswerError, RefusedError, WaitError, connect_http

VECTORS = Path(__file__).parents[2] / "vectors"
DONE = {"status": 200, "body": {"reuse_token": "t1"}}
REQUEST = {"encrypted_card": "a.b.c.d.e", "public_key_alias": "cards"}


class TransportTest(unittest.TestCase):
    def setUp(self) -> None:
        opened = ExitStack()
        self.addCleanup(opened.close)
        self.gateway: Gateway = opened.enter_context(scripted_gateway())

    def write(self, timeout: float = 60.0) -> dict[str, Any]:
        with self.gateway.client(timeout) as client:
            return client.create_token(REQUEST, idempotency_key="order-1")

    def test_repeats_after_answers_as_the_vectors_say(self) -> None:
        for case in json.loads((VECTORS / "answers.json").read_text())["writes"]:
            with self.subTest(case["name"]):
                self.gateway.seen.clear()
                self.gateway.script = [case["answer"], DONE]
                if case["repeats"]:
                    self.assertEqual(self.write(), DONE["body"])
                    self.assertEqual([one["key"] for one in self.gateway.seen], ["order-1", "order-1"])
                    self.assertEqual(self.gateway.seen[0], self.gateway.seen[1])
                else:
                    self.assertRaises(HttpError, self.write)
                    self.assertEqual(len(self.gateway.seen), 1)

    def test_says_what_to_do_as_the_vectors_say(self) -> None:
        for case in json.loads((VECTORS / "answers.json").read_text())["writes"]:
            with self.subTest(case["name"]):
                # Later than the client waits, so that nothing is repeated.
                headers = {**case["answer"].get("headers", {}), "retry-after": "3600"}
                self.gateway.script = [{**case["answer"], "headers": headers}]
                with self.assertRaises(HttpError) as raised:
                    self.write()
                self.assertEqual(str(raised.exception), case["says"])
                self.assertEqual(raised.exception.idempotency_key, "order-1")
                answer = case["answer"]
                reversal = answer["body"].get("reversal_status") if answer["status"] == 500 else None
                self.assertEqual(raised.exception.reversal_status, reversal)

    def test_repeats_a_write_after_a_connection_that_broke(self) -> None:
        self.gateway.script = [HANGS_UP, {**DONE, "length": 1000}, DONE]
        self.assertEqual(self.write(), DONE["body"])
        self.assertEqual([one["key"] for one in self.gateway.seen], ["order-1"] * 3)

    def test_has_the_error_of_the_vectors_for_what_is_no_answer(self) -> None:
        for case in json.loads((VECTORS / "answers.json").read_text())["broken"]:
            with self.subTest(case["name"]):
                self.gateway.seen.clear()
                self.gateway.script = [case["bytes"].encode("latin-1")]
                with self.assertRaises((NoAnswerError, HttpError)) as raised:
                    self.write(0.4)
                self.assertEqual(str(raised.exception), case["says"])
                self.assertEqual(len(self.gateway.seen) > 1, case["repeats"])

    def test_has_the_error_of_the_vectors_for_results_that_break_off(self) -> None:
        for case in json.loads((VECTORS / "answers.json").read_text())["lines"]:
            with self.subTest(case["name"]), self.gateway.client() as client:
                self.gateway.script = [case["bytes"].encode("latin-1")]
                seen = []
                with self.assertRaises(NoAnswerError) as raised:
                    for line in client.batch_results("b"):
                        seen.append(line)
                self.assertEqual([seen, str(raised.exception)], [case["yields"], case["says"]])

    def test_says_that_nothing_was_sent_where_no_gateway_is_reached(self) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            origin = f"http://127.0.0.1:{closed.getsockname()[1]}"
            says = json.loads((VECTORS / "answers.json").read_text())["unreachable"]["says"]
            with connect_http(base_url=origin, credentials={"file": FILE}, timeout=0.4) as client:
                with self.assertRaises(NoAnswerError) as raised:
                    client.create_token(REQUEST, idempotency_key="order-1")
                self.assertEqual(str(raised.exception), says.replace("ORIGIN", origin))

    def test_tries_to_connect_for_a_short_time_until_it_was_answered_once(self) -> None:
        with self.gateway.client() as client:
            self.gateway.script = [DONE]
            client.get_token("t1")
            transport = client._transport
            transport._connect = lambda timeout: HTTPConnection("127.0.0.1", 1, timeout=timeout)
            with mock.patch("tokenmill_client.transport._CONNECT_SECONDS", 0.01):
                with self.assertRaisesRegex(NoAnswerError, "within 0.5 s"):
                    client.get_token("t1", timeout=0.5)
                transport._was_answered = False
                with self.assertRaisesRegex(NoAnswerError, "within 0.01 s"):
                    client.get_token("t1", timeout=60)

    def test_sends_no_card_with_an_unknown_member_and_no_list_without_a_name(self) -> None:
        with self.gateway.client() as client:
            with self.assertRaisesRegex(RefusedError, "not sent: body.card.expiry: field_unknown. A card has cardNumber"):
                client.create_token({"card": {"cardNumber": "4111111111111111", "expiry": "12/34"}})
            nameless: Any = None
            with self.assertRaisesRegex(BatchError, "batch_id: name the list"):
                client.batch([], kind="token-create", batch_id=nameless)
            mistyped: Any = "token-crate"
            with self.assertRaisesRegex(BatchError, "kind: it is one of token-create, token-update"):
                client.batch([], kind=mistyped, batch_id="b")
        self.assertEqual(self.gateway.seen, [])

    def test_says_of_a_write_without_an_answer_that_it_may_have_had_an_effect(self) -> None:
        self.gateway.script = [SILENT]
        with self.assertRaisesRegex(NoAnswerError, "no answer within 0.3 s. It may have had an effect.* key order-1 to"):
            self.write(0.3)

    def test_repeats_a_read_that_failed_inside_three_times_at_most(self) -> None:
        headers = {"x-request-id": "r-1"}
        self.gateway.script = [{"status": 500, "body": {"message": "Unexpected error."}, "headers": headers}]
        with self.gateway.client() as client:
            with self.assertRaisesRegex(HttpError, "tell the operator the request id r-1"):
                client.get_token("t1")
        self.assertEqual(len(self.gateway.seen), 3)

    def test_says_which_credentials_are_wrong(self) -> None:
        described = {"www-authenticate": 'Bearer error="invalid_token", error_description="The JWT has expired."'}
        self.gateway.script = [{"status": 401, "body": {"message": "Valid ones."}, "headers": described}]
        with self.gateway.client() as client:
            self.assertRaisesRegex(HttpError, "401 The JWT has expired. The installation", client.get_token, "t1")

    def test_sends_lists_as_the_vectors_say(self) -> None:
        for case in json.loads((VECTORS / "lists.json").read_text())["lists"]:
            with self.subTest(case["name"]), self.gateway.client() as client:
                self.gateway.seen.clear()
                # Refused, so that nothing is waited for.
                self.gateway.script = [{"status": 400, "body": {"message": "Enough."}}]
                with self.assertRaises((BatchError, HttpError)) as raised:
                    policy = case.get("policy")
                    list(client.batch(case["records"], kind=case["kind"], batch_id="list", policy=policy))
                if "says" in case:
                    self.assertEqual(str(raised.exception), case["says"])
                    continue
                [seen] = self.gateway.seen
                self.assertIn("batch_id=list-0", seen["path"])
                self.assertEqual([json.loads(line) for line in seen["body"].splitlines()], case["rows"])

    def test_waits_for_no_part_of_a_list_whose_source_broke(self) -> None:
        self.gateway.script = [{"status": 200, "body": {"batch_id": "l-0", "finished": False}}]

        def records() -> Iterator[dict[str, Any]]:
            yield from [{"card": {"cardNumber": "4111111111111111"}}] * 10_001
            raise ValueError("the source broke")

        with self.gateway.client() as client:
            with self.assertRaisesRegex(ValueError, "the source broke"):
                list(client.batch(records(), kind="token-create", batch_id="l"))
            for thread in threading.enumerate():
                if thread.name.startswith("tokenmill-batch"):
                    thread.join()

    def test_has_errors_that_pass_between_processes(self) -> None:
        self.gateway.script = [{"status": 403, "body": {"message": "No."}}]
        with self.gateway.client() as client:
            with self.assertRaises(HttpError) as raised:
                client.get_token("t1")
        errors = [raised.exception, NoAnswerError("GET /x", "no answer", "key"), WaitError("batch b", 5), ClosedError()]
        for error in errors:
            passed = pickle.loads(pickle.dumps(error))
            self.assertEqual([type(passed), str(passed)], [type(error), str(error)])
            self.assertEqual(vars(passed), vars(error))

    def test_cancels_a_batch(self) -> None:
        self.gateway.script = [{"status": 204}]
        with self.gateway.client() as client:
            client.cancel_batch("list/1")
        [seen] = self.gateway.seen
        self.assertEqual([seen["method"], seen["path"]], ["DELETE", "/oidc/api/v2/batches/list%2F1"])
        self.assertIsNotNone(seen["key"])

    def test_follows_no_redirect(self) -> None:
        self.gateway.script = [{"status": 302, "headers": {"location": "/elsewhere"}}]
        with self.gateway.client() as client:
            self.assertRaises(HttpError, client.get_token, "t1")
        self.assertEqual(len(self.gateway.seen), 1)

    def test_names_what_it_waited_for(self) -> None:
        self.gateway.script = [{"status": 200, "body": {"receipt_id": "r", "status": "PENDING"}}]
        with self.gateway.client() as client:
            with self.assertRaisesRegex(WaitError, "operation r has not ended within 0.5 s. It goes on"):
                client.operation_end("r", timeout=0.5)

    def test_raises_what_a_stored_write_came_to(self) -> None:
        error = {"message": "Refused.", "details": {"body.encrypted_card": {"message": "No.", "code": "pan_luhn"}}}
        body = {"receipt_id": "r", "status": "FAILED", "code": 400, "error": error}
        self.gateway.script = [{"status": 200, "body": body}]
        with self.gateway.client() as client:
            self.assertRaisesRegex(HttpError, "operation r: 400 body.encrypted_card: pan_luhn.", client.operation_end, "r")

    def test_ends_its_repeats_when_it_is_closed(self) -> None:
        self.gateway.script = [{"status": 429, "headers": {"retry-after": "50"}}]
        client = self.gateway.client()
        threading.Timer(0.05, client.close).start()
        self.assertRaises(ClosedError, client.get_token, "t1")
        self.assertRaises(ClosedError, client.get_token, "t1")


if __name__ == "__main__":
    unittest.main()
