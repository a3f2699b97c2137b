"""When not to share: three worlds that look alike in a table, and the diagnosis of each.

Where entities have nothing in common each does best alone; where all are the same one model for
all does; only in between does sharing a start pay. `diagnose` tells which it is, and the picture,
``pictures/when_not_to_share.png``, shows by how much.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from headstart import diagnose, plot
from headstart.environments import RegressionEnvironment

WAYS = ["each task alone", "all tasks pooled", "headstart"]  # of five: these decide
PICTURE = Path(__file__).parent / "pictures" / "when_not_to_share.png"


def main() -> None:
    """Print what was found in each world, and draw it."""
    worlds = {
        "nothing in common": RegressionEnvironment(10, center=0.0, task_std=3.0),
        "all the same": RegressionEnvironment(10, task_std=0.0),
        "around a common center": RegressionEnvironment(10, task_std=2.0),
    }
    figure = Figure(figsize=(14.0, 4.2), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    axes[0].set_ylim(0.0, 4.0)
    for (name, world), ax in zip(worlds.items(), axes, strict=True):
        tasks = world.draw(100, 16, np.random.default_rng(0)).tasks
        found = diagnose(tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes))
        print(f"{name}\n{found}\n")
        plot.few_shot_curve({way: found.curves[way] for way in WAYS}, ax=ax)
        ax.set_title(f"{name.capitalize()}: {found.verdict}", loc="left")
        ax.label_outer()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
