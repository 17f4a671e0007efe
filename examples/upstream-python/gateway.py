"""Opens the client that the programs here share."""

import os

from tokenmill_client import Client, connect_http


def open_client() -> Client:
    client_file = os.environ.get("CLIENT_FILE", "client.json")
    return connect_http(base_url=os.environ.get("BASE_URL"), client_file=client_file)
