"""Newcomers who have shown nothing yet: they start from what is known of them.

Machines wear with their hours, and how fast depends on how old they are and on where they stand.
`side` names the columns that describe the machine; the others describe the row.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from headstart import MetaRegressor

MACHINES, READINGS = 300, 6
DESCRIPTION = ["age", "outdoors"]


def readings(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    """What was read at the machines, and the wear."""
    machine = np.repeat(np.arange(MACHINES), READINGS)
    age, outdoors = rng.uniform(0.0, 20.0, MACHINES), rng.integers(0, 2, MACHINES)
    rate = 0.02 + 0.002 * age + 0.01 * outdoors + rng.normal(0.0, 0.004, MACHINES)
    table = pd.DataFrame({"machine": machine, "hours": rng.uniform(0.0, 1000.0, machine.size)})
    table["age"], table["outdoors"] = age[machine], outdoors[machine]
    wear = 5.0 + rate[machine] * table["hours"] + rng.normal(0.0, 2.0, machine.size)
    return table, wear


def main() -> None:
    """Errors for machines that were held out, with and without their descriptions."""
    table, wear = readings(np.random.default_rng(0))
    old = table["machine"] < 200
    plain = MetaRegressor(group="machine")
    plain.fit(table[old].drop(columns=DESCRIPTION), wear[old])
    described = MetaRegressor(group="machine", side=DESCRIPTION).fit(table[old], wear[old])

    new, truth = table[~old], wear[~old]
    starts = {
        "from the common start": plain.predict(new.drop(columns=DESCRIPTION)),
        "from their description": described.predict(new),
    }
    print("machines without any reading")
    for name, predicted in starts.items():
        print(f"  {name:24} error {np.abs(np.subtract(predicted, truth)).mean():.2f}")

    rows = new[new["machine"] == 250]
    two, rest = rows[:2], rows[2:]
    task = described.adapt(two, wear[two.index])  # the description is in the rows
    mean, std = task.predict(rest[["hours"]], return_std=True)
    print("machine 250 after two readings: predicted, its standard deviation, and the truth")
    for line in zip(mean, std, wear[rest.index], strict=True):
        print("  " + " ".join(f"{value:6.1f}" for value in line))

    print("how the wear of an hour depends on the description")
    effects = np.asarray(described.prior_.side_effects)[0]  # a row for each weight, hours first
    for name, effect in zip(DESCRIPTION, effects, strict=True):
        print(f"  {name:10} {effect:+.4f}")


if __name__ == "__main__":
    main()
