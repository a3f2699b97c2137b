"""Real data: read from a folder of the user's, or fetched once and checked.

The files are not part of the project. `HEADSTART_DATA` may name a folder that has them;
otherwise they are downloaded into the user's cache, with pooch (``headstart[data]``).
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from headstart._core.checks import check_number
from headstart.tasks import TaskSet

LENK = "lenk_data.mat"
LENK_SHA256 = "e6cc1029fa15ba8135dfca0f6a4bfa75599b4d43fe77224ce6b07bf9cdeb3e0b"
LENK_REPOSITORY = "https://github.com/prolearner/onlineLTL"
PEOPLE, TRAINING, TESTING, SHOTS = 180, 16, 4, 8


class DataUnavailableError(OSError):
    """A data file is missing and cannot be downloaded; the message says where to put it."""


def load_lenk(threshold: float | None = None) -> tuple[TaskSet, TaskSet]:
    """The computer survey of Lenk et al. (1996): 180 people rating 20 computers from 0 to 10.

    Each person is a task. A computer is described by a constant and 13 attributes of
    -1 and +1. As in the paper, the first 8 of the 16 training computers are the shots and
    the 4 test computers the queries.

    Parameters
    ----------
    threshold : float, optional
        Make it a classification: label +1 for ratings of at least this, else -1. The
        published experiment used 5, though its text says "above 5".

    Returns
    -------
    shots, queries : TaskSet
        180 tasks of 8 and of 4 rows, 14 features.
    """
    tables = lenk_tables()
    shots = _tasks(tables["Traindata"], TRAINING, SHOTS, threshold)
    return shots, _tasks(tables["Testdata"], TESTING, TESTING, threshold)


def _tasks(table: np.ndarray, rows: int, first: int, threshold: float | None) -> TaskSet:
    people = table.reshape(PEOPLE, rows, 15)[:, :first].astype(np.float64).reshape(-1, 15)
    y = people[:, -1]
    if threshold is not None:
        y = np.where(y >= check_number("threshold", threshold), 1.0, -1.0)
    return TaskSet.from_arrays(people[:, :-1], y, np.repeat(np.arange(PEOPLE), first))


def lenk_tables() -> dict[str, Any]:
    """The tables of the survey's file as they are: "Traindata" and "Testdata", row by row."""
    path = _lenk_file()
    found = sha256(path.read_bytes()).hexdigest()
    if found != LENK_SHA256:
        raise DataUnavailableError(
            f"{path}: not the file of the published experiments (SHA-256 {found[:12]}..., "
            f"expected {LENK_SHA256[:12]}...); put data/{LENK} of {LENK_REPOSITORY} there"
        )
    return dict(loadmat(path))


def _lenk_file() -> Path:
    folder = os.environ.get("HEADSTART_DATA")
    if folder:
        path = Path(folder) / LENK
        if path.is_file():
            return path
        why = f"HEADSTART_DATA is {folder}, which has no such file"
    else:
        try:
            return _fetched()
        except ImportError:
            why = "pooch, which would download it, is not installed (headstart[data])"
        except Exception as error:  # whatever a download can fail with
            why = f"it could not be downloaded ({type(error).__name__})"
    raise DataUnavailableError(
        f"{LENK}: {why}; put data/{LENK} of {LENK_REPOSITORY} into a folder and set "
        "HEADSTART_DATA to that folder"
    )


def _fetched() -> Path:
    import pooch

    return Path(
        pooch.retrieve(
            f"{LENK_REPOSITORY}/raw/master/data/{LENK}",
            known_hash=f"sha256:{LENK_SHA256}",
            fname=LENK,
            path=pooch.os_cache("headstart"),
        )
    )
