"""The server of `examples/serve.py`, asked by threads while newer models are saved."""

from __future__ import annotations

import http.client
import json
import runpy
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from headstart import MetaRegressor

SERVE = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "serve.py"))
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"who": np.repeat(np.arange(40), 6), "km": RNG.uniform(1.0, 9.0, 240), "kg": RNG.random(240)}
)
PACE = RNG.normal(5.0, 1.0, 40)[TABLE["who"]] * TABLE["km"] + RNG.normal(0.0, 1.0, 240)
ROW = {"km": 5.0, "kg": 0.5}


def model_of(level: float) -> MetaRegressor:
    return MetaRegressor(group="who").fit(TABLE, PACE + level)


def expected(model: MetaRegressor, who: object) -> float:
    return float(model.predict(pd.DataFrame([{"who": who, **ROW}]))[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model_of(0.0).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    with SERVE["server"](folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def ask(port: int, question: Any) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = question if isinstance(question, str) else json.dumps(question)
    connection.request("POST", "/", body)
    response = connection.getresponse()
    found = json.loads(response.read())
    connection.close()
    return response.status, found


def test_threads_are_answered_while_models_are_saved(folder: Path, port: int) -> None:
    models = [model_of(100.0 * k) for k in range(4)]
    right = {round(expected(model, 7), 6) for model in models}

    def many(_: int) -> set[float]:
        return {
            round(ask(port, {"id": 7, "rows": [ROW]})[1]["prediction"][0], 6) for _ in range(25)
        }

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(many, k) for k in range(8)]
        for model in models * 5:
            model.save(folder)
        found = set().union(*(future.result() for future in asked))
    assert found <= right
    status, last = ask(port, {"id": 7, "rows": [ROW]})
    assert status == 200
    assert last["prediction"][0] == pytest.approx(expected(models[-1], 7))


def test_strangers_have_wider_intervals(port: int) -> None:
    known = ask(port, {"id": 7, "rows": [ROW, ROW]})[1]
    stranger = ask(port, {"id": 999, "rows": [ROW]})[1]
    assert len(known["prediction"]) == 2
    width = [answer["high"][0] - answer["low"][0] for answer in (known, stranger)]
    assert width[0] < width[1]
    assert stranger["low"][0] < stranger["prediction"][0] < stranger["high"][0]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("no json", "Expecting value"),
        ({"id": 7}, "rows"),
        ({"id": 7, "rows": [{"km": 5.0}]}, "kg"),
        ({"id": 7, "rows": [{**ROW, "kg": "heavy"}]}, "kg"),
        ({"id": 7, "rows": []}, "at least one"),
    ],
)
def test_a_wrong_question_is_told(port: int, question: Any, says: str) -> None:
    status, found = ask(port, question)
    assert status == 400
    assert says in found["error"]
