"""A gateway that answers as a test says, and a client of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tokenmill_client import Client, connect_http

SILENT = "is silent"
HANGS_UP = "hangs up"
FILE = {
    "user_id": "6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b",
    "entity_id": "6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b",
    "token_scope": "6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b",
    "api_key": "an-api-key",
    "audience": "tokenmill",
    "base_url": "http://127.0.0.1:1",
    "capture_keys": {},
    "installation_keys": {"keys": []},
}


@dataclass
class Gateway:
    url: str
    script: list[Any] = field(default_factory=list)
    """The answers, one after the other; the last stays. Bytes are sent as they are."""
    seen: list[dict[str, Any]] = field(default_factory=list)
    """Method, path, idempotency key and body of each request."""

    def client(self, timeout: float = 60.0) -> Client:
        return connect_http(base_url=self.url, credentials={"file": FILE}, timeout=timeout)


@contextmanager
def scripted_gateway() -> Iterator[Gateway]:
    gateway = Gateway("")
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            text = self.rfile.read(int(self.headers.get("content-length", 0)))
            key = self.headers.get("idempotency-key")
            gateway.seen.append({"method": self.command, "path": self.path, "key": key, "body": text})
            answer = gateway.script.pop(0) if len(gateway.script) > 1 else gateway.script[0]
            self.close_connection = True
            if answer == SILENT:
                ended.wait()
            elif isinstance(answer, bytes):
                self.wfile.write(answer)
            elif answer != HANGS_UP:
                self._send(answer)

        def _send(self, answer: Mapping[str, Any]) -> None:
            body = json.dumps(answer.get("body", {})).encode()
            self.send_response(answer["status"])
            for name, value in answer.get("headers", {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(answer.get("length", len(body))))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_PATCH = do_POST = do_DELETE = _answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    gateway.url = f"http://127.0.0.1:{server.server_address[1]}"
    serving = threading.Thread(target=server.serve_forever, args=(0.01,))
    serving.start()
    try:
        yield gateway
    finally:
        ended.set()
        server.shutdown()
        serving.join()
        server.server_close()
