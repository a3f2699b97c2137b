"""When not to share: three worlds that look alike in a table, and the diagnosis of each.

Writes ``when_not_to_share.png`` beside this file, or where ``HEADSTART_PICTURES`` says.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from headstart import diagnose, plot
from headstart.environments import RegressionEnvironment


def main() -> None:
    """Print what was found in each world, and draw it."""
    worlds = {
        "nothing in common": RegressionEnvironment(10, center=0.0, task_std=3.0),
        "all the same": RegressionEnvironment(10, task_std=0.0),
        "around a common center": RegressionEnvironment(10, task_std=2.0),
    }
    figure = Figure(figsize=(15.0, 4.2), layout="constrained")
    for (name, world), ax in zip(worlds.items(), figure.subplots(1, 3), strict=True):
        tasks = world.draw(100, 16, np.random.default_rng(0)).tasks
        found = diagnose(tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes))
        print(f"{name}\n{found}\n")
        plot.few_shot_curve(found.curves, ax=ax)
        ax.set_title(f"{name}: {found.verdict}", loc="left")
    folder = Path(os.environ.get("HEADSTART_PICTURES", Path(__file__).parent))
    figure.savefig(folder / "when_not_to_share.png", dpi=110)


if __name__ == "__main__":
    main()
