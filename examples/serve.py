"""A model behind a small web server, which takes over every newer model that is saved.

Run ``python examples/serve.py model --port 8000`` and ask:

    curl localhost:8000 -d '{"id": 7, "rows": [{"km": 5.0, "kilos": 10.0}]}'

The folder may be saved to at any time, by another process too. Requests that have begun go on
with the model they began with; the next one sees the new model.
"""

from __future__ import annotations

import argparse
import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa

from headstart import MetaRegressor

LONGEST = 1 << 20  # bytes of a question


class Newest:
    """The newest model in a folder."""

    def __init__(self, folder: Path) -> None:
        self._page = folder / "model.json"  # put there in one step when all else is complete
        self._lock = threading.Lock()
        self._stamp, self._model = self._page.stat(), MetaRegressor.load(folder)

    def model(self) -> MetaRegressor:
        """The model, loaded again if another was saved; many threads may ask."""
        stamp = self._page.stat()
        if (stamp.st_mtime_ns, stamp.st_ino) != (self._stamp.st_mtime_ns, self._stamp.st_ino):
            with self._lock:
                self._model, self._stamp = MetaRegressor.load(self._page.parent), stamp
        return self._model


def answer(model: MetaRegressor, question: dict[str, Any]) -> dict[str, Any]:
    """Predictions and 90 % intervals for rows of one entity; one that is not known gets the start.

    The columns are made those of the model: what else a row holds is left aside, and what it
    lacks is told by the model.
    """
    if not question["rows"]:
        raise ValueError("rows: expected at least one, found none")
    rows = pa.Table.from_pylist([dict(row) for row in question["rows"]])
    known = [name for name in map(str, model.feature_names_in_) if name in rows.column_names]
    table = rows.select(known)
    if model.group is not None:
        table = table.append_column(str(model.group), pa.array([question.get("id")] * len(rows)))
    low, high = model.predict_interval(table).T.tolist()
    return {"prediction": model.predict(table).tolist(), "low": low, "high": high}


def server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the newest model in a folder, on this machine; port 0 is any that is free."""
    newest = Newest(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                size = min(int(self.headers.get("Content-Length", 0)), LONGEST)
                found = answer(newest.model(), json.loads(self.rfile.read(size)))
                status = HTTPStatus.OK
            except (ValueError, TypeError, KeyError) as error:  # the question is at fault
                found, status = {"error": str(error)}, HTTPStatus.BAD_REQUEST
            body = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing of single requests."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    """Serve until stopped."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("folder", type=Path, help="a folder that MetaRegressor.save made")
    arguments.add_argument("--port", type=int, default=8000)
    chosen = arguments.parse_args()
    with server(chosen.folder, chosen.port) as serving:
        print(f"serving {chosen.folder} on port {serving.server_port}")
        serving.serve_forever()


if __name__ == "__main__":
    main()
