"""The paper in ten lines: LTL against ITL and MEAN on its synthetic regression tasks."""

import numpy as np

from headstart import select_online, select_reg
from headstart.environments import RegressionEnvironment

tasks, rng, grid = RegressionEnvironment(), np.random.default_rng(0), np.geomspace(1e-6, 1e3, 10)
train = tasks.draw(1000, 10, rng).tasks
valid, test = (tasks.draw(T, 110, rng).tasks.split_rows(10) for T in (100, 200))
alone = select_reg(valid, test, np.zeros(30), grid).test_loss
oracle = select_reg(valid, test, tasks.oracle_bias, grid).test_loss
learned = select_online(train, valid, test, grid, grid, every=100)
print(f"each task alone {alone:.3f}, the oracle's bias {oracle:.3f}; a learned bias after")
for seen, loss in zip(learned.tasks, learned.test_loss, strict=True):
    print(f"{seen:5} tasks {loss:.3f}")
# sphinx_gallery_thumbnail_path = 'synthetic-regression.png'
