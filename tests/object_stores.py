"""An S3 server of this process, which fails when it is told to, and places on several stores."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headstart._core.places import Remote, as_place

BUCKET = "headstart-tests"


class S3Server:
    """Moto's S3 behind a door that answers some requests with an error.

    Attributes
    ----------
    faults : how many of the next requests that `fits` chooses are to fail
    fits : a function of method and path, which says whether a request may fail
    requests : those that came, as texts
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from moto.moto_server.werkzeug_app import (
                DomainDispatcherApplication,
                create_backend_app,
            )
            from werkzeug.serving import make_server

            self._inner: Any = DomainDispatcherApplication(create_backend_app)
            self._server = make_server("127.0.0.1", 0, self, threaded=True)
        self.faults = 0
        self.fits: Callable[[str, str], bool] = lambda *_: True
        self.requests: list[str] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __call__(self, environ: Any, start_response: Any) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self._lock:
            self.requests.append(f"{method} {path}")
            fails = self.faults > 0 and self.fits(method, path)
            self.faults -= fails
        if not fails:
            return self._inner(environ, start_response)
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start_response("400 Bad Request", [("Content-Type", "application/xml")])
        return [b"<Error><Code>Broken</Code><Message>the disk of the store</Message></Error>"]

    @contextmanager
    def failing(
        self, count: int = 10**9, fits: Callable[[str, str], bool] = lambda *_: True
    ) -> Iterator[None]:
        """Let so many requests fail in a block."""
        self.faults, self.fits = count, fits
        try:
            yield
        finally:
            self.faults = 0

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def place(self, name: str) -> Remote:
        """A place in the bucket, by an address that other processes can use as it is."""
        where = f"endpoint_override={self.address.removeprefix('http://')}&scheme=http"
        return remote(f"s3://me:secret@{BUCKET}/{name}?{where}&region=us-east-1")

    def close(self) -> None:
        self._server.shutdown()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server with a bucket; the environment says where it is, as users would."""
    from pyarrow import fs

    server = S3Server()
    settings = {
        "AWS_ENDPOINT_URL": server.address,
        "AWS_ACCESS_KEY_ID": "me",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        found, name = fs.FileSystem.from_uri(f"s3://{BUCKET}?allow_bucket_creation=true")
        found.create_dir(name)
        yield server
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        server.close()


GOOGLE = """
from threading import Event
from gcp_storage_emulator.server import create_server
server = create_server("localhost", 0, in_memory=True, default_bucket="tests")
server.start()
print(server._api._httpd.server_port, flush=True)
Event().wait()
"""


@contextmanager
def google_store() -> Iterator[Remote]:
    """A place on an emulator of Google's store: a process, since Arrow holds this one's lock."""
    with subprocess.Popen([sys.executable, "-c", GOOGLE], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            where = f"endpoint_override=localhost:{int(process.stdout.readline())}&scheme=http"
            yield remote(f"gs://anonymous@tests/place?{where}&retry_limit_seconds=5")
        finally:
            process.kill()


def remote(address: str) -> Remote:
    """A place that is on an object store."""
    place = as_place(address)
    assert isinstance(place, Remote)
    return place


def upload(folder: Any, place: Remote) -> Remote:
    """The files of a folder, put there."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            (place / str(file.relative_to(folder))).put_file(file)
    return place
