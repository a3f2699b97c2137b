"""How sure is it? Intervals that are wide for strangers and shrink with every row.

A third of the sensors is new. The 90 % intervals of those that are known, of strangers, and of
strangers after three of their readings should each hold nine labels of ten.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from headstart import MetaRegressor

SENSORS, READINGS = 300, 10


def readings(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Readings of sensors that drift with temperature, each in its own way."""
    sensor = np.repeat(np.arange(SENSORS), READINGS)
    table = pd.DataFrame({"sensor": sensor, "celsius": rng.normal(15.0, 8.0, sensor.size)})
    offset, drift = rng.normal(2.0, 3.0, SENSORS), rng.normal(0.1, 0.3, SENSORS)
    label = offset[sensor] + drift[sensor] * table["celsius"].to_numpy()
    return table, label + rng.normal(0.0, 1.0, sensor.size)


def report(name: str, ends: np.ndarray, label: np.ndarray) -> None:
    """How often labels are inside, and how wide the intervals are."""
    low, high = ends.T
    inside = np.mean((low <= label) & (label <= high))
    print(f"{name:34} {inside:6.0%} inside, width {np.mean(high - low):5.1f}")


def main() -> None:
    """Learn from two thirds of the sensors, and from all but the last three readings of each."""
    table, label = readings(np.random.default_rng(0))
    known, turn = table["sensor"] < 200, np.tile(np.arange(READINGS), SENSORS)
    seen = known & (turn < 7)
    model = MetaRegressor(group="sensor").fit(table[seen], label[seen])

    asked = known & (turn >= 7)
    report("known sensors", model.predict_interval(table[asked]), label[asked])
    report("strangers", model.predict_interval(table[~known]), label[~known])
    ends, labels = [], []
    for _, rows in table[~known].groupby("sensor"):
        first, rest = rows.index[:3], rows.index[3:]
        task = model.adapt(rows.loc[first], label[first])
        ends.append(task.predict_interval(table.loc[rest, ["celsius"]]))
        labels.append(label[rest])
    report("strangers after three readings", np.concatenate(ends), np.concatenate(labels))
    print(f"a reading is noisy by {model.prior_.noise**0.5:.1f}: no interval is narrower than 3.3")


if __name__ == "__main__":
    main()
