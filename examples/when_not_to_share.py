"""When not to share: three worlds that look alike in a table, and the diagnosis of each."""

from __future__ import annotations

import numpy as np

from headstart import diagnose
from headstart.environments import RegressionEnvironment


def main() -> None:
    """Print what was found in each world."""
    worlds = {
        "tasks that have nothing in common": RegressionEnvironment(10, center=0.0, task_std=3.0),
        "tasks that are all the same": RegressionEnvironment(10, task_std=0.0),
        "tasks around a common center": RegressionEnvironment(10, task_std=2.0),
    }
    for name, world in worlds.items():
        tasks = world.draw(100, 16, np.random.default_rng(0)).tasks
        ids = np.repeat(tasks.ids, tasks.sizes)
        print(f"{name}\n{diagnose(tasks.X, tasks.y, ids)}\n")


if __name__ == "__main__":
    main()
