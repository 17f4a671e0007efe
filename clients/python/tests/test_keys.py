"""Signatures and capture keys, as the vectors that all clients share say."""

from __future__ import annotations

import json
import stat
import tempfile
import unittest
from pathlib import Path
from typing import Any

from tokenmill_client.capture_keys import newest_key
from tokenmill_client.errors import ConfigError
from tokenmill_client.jwe import encrypt
from tokenmill_client.jws import decode, import_public, import_signing, import_verifying, open_signed, sign, thumbprint
from tokenmill_client.trusted_keys import TrustedKeys

VECTORS = Path(__file__).parents[2] / "vectors"
KEYS = json.loads((VECTORS / "keys.json").read_text())
CAPTURE = json.loads((VECTORS / "capture-keys.json").read_text())


def trusted_keys(file: Path | None = None) -> TrustedKeys:
    keys = [import_verifying(jwk) for jwk in CAPTURE["installation_keys"]["keys"]]
    return TrustedKeys(CAPTURE["audience"], keys, file)


def taken(document: Any, trusted: TrustedKeys) -> str | None:
    try:
        return newest_key(document, CAPTURE["entity_id"], trusted, CAPTURE["now"]).kid
    except ConfigError:
        return None


class KeysTest(unittest.TestCase):
    def test_signs_and_verifies_by_each_algorithm(self) -> None:
        for alg, private_jwk in KEYS["signing_keys"].items():
            with self.subTest(alg):
                signing = import_signing(private_jwk)
                public = {name: private_jwk[name] for name in private_jwk if name in ("kty", "crv", "x", "y", "n", "e", "alg")}
                verifying = import_verifying(public)
                self.assertEqual([verifying.kid, verifying.alg], [private_jwk["kid"], alg])
                keys = {verifying.kid: verifying}
                given = KEYS["signed"][alg]
                for jws in (given, sign(signing, "JWT", KEYS["claims"])):
                    self.assertEqual(open_signed(jws, "JWT", keys), KEYS["claims"])
                    self.assertIsNone(open_signed(jws, "at+jwt", keys))
                    self.assertIsNone(open_signed(jws, "JWT", {}))
                head, payload, signature = given.split(".")
                self.assertIsNone(open_signed(f"{head}.{payload}.{signature[:-8]}AAAAAAAA", "JWT", keys))
                self.assertIsNone(open_signed(f"{head}.{payload}.", "JWT", keys))
                self.assertIsNone(open_signed(f"{head}.{payload}A.{signature}", "JWT", keys))

    def test_refuses_keys_that_are_none(self) -> None:
        private_jwk = KEYS["signing_keys"]["EdDSA"]
        self.assertRaisesRegex(ConfigError, "private half", import_verifying, private_jwk)
        self.assertRaisesRegex(ConfigError, "not a private JWK", import_signing, {**private_jwk, "d": "AAAA"})
        self.assertRaisesRegex(ConfigError, "not a public JWK", import_verifying, {"kty": "EC", "crv": "P-521"})
        rsa = {name: value for name, value in KEYS["signing_keys"]["PS256"].items() if name in ("kty", "n", "e")}
        self.assertRaisesRegex(ConfigError, "alg PS256 or RS256", import_verifying, rsa)
        self.assertRaisesRegex(ConfigError, "not a public JWK", import_verifying, {**rsa, "e": "AQ"})

    def test_encrypts_in_the_form_of_the_vectors(self) -> None:
        for name, key in CAPTURE["keys"].items():
            with self.subTest(name):
                public_key = import_public(key["public_jwk"])
                self.assertEqual(thumbprint(public_key), key["thumbprint"])
                parts = encrypt(CAPTURE["card"].encode(), public_key, key["thumbprint"]).split(".")
                given = key["jwe"].split(".")
                self.assertEqual([len(decode(part)) for part in parts[1:]], [len(decode(part)) for part in given[1:]])
                header, expected = json.loads(decode(parts[0])), json.loads(decode(given[0]))
                for member in ("x", "y"):
                    header.get("epk", {}).pop(member, None)
                    expected.get("epk", {}).pop(member, None)
                self.assertEqual(header, expected)

    def test_takes_the_capture_keys_that_the_vectors_name(self) -> None:
        for case in CAPTURE["documents"]:
            with self.subTest(case["name"]):
                self.assertEqual(taken(case["document"], trusted_keys()), case["takes"])

    def test_remembers_announced_keys_beside_the_client_s_file(self) -> None:
        [announced] = [case for case in CAPTURE["documents"] if "announced key of" in case["name"]]
        [forged] = [case for case in CAPTURE["documents"] if "a stranger announces" in case["name"]]
        without = {**announced["document"], "new_keys": []}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "client.new-keys.json"
            self.assertIsNone(taken(forged["document"], trusted_keys(file)))
            self.assertFalse(file.exists())
            self.assertIsNone(taken(without, trusted_keys(file)))
            self.assertEqual(taken(announced["document"], trusted_keys(file)), announced["takes"])
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
            self.assertEqual(taken(without, trusted_keys(file)), announced["takes"])
            file.write_text("[]")
            self.assertRaisesRegex(ConfigError, "not as this library writes it", trusted_keys, file)


if __name__ == "__main__":
    unittest.main()
