"""Values of the published figures, beside which a run's own are set.

They were read off the authors' plots, which drew the rows of a task with replacement
(``--order resample``). They are texts, with the digits that could be read. None
stands for any number of tasks, where a method learns from none.
"""

from __future__ import annotations

PUBLISHED: dict[str, list[tuple[str, int | None, str]]] = {
    "synthetic-regression": [
        ("itl-sgd", None, "3.34"),
        ("itl-erm", None, "2.96"),
        ("mean-sgd", None, "1.30"),
        ("mean-erm", None, "1.285"),
        ("ltl-sgd-sgd", 50, "1.55"),
        ("ltl-sgd-sgd", 100, "1.40"),
        ("ltl-sgd-sgd", 500, "1.31"),
        ("ltl-erm-erm", 20, "1.55"),
        ("ltl-erm-erm", 100, "1.36"),
        ("ltl-erm-erm", 500, "1.29"),
    ],
    "synthetic-classification": [
        ("itl-sgd", None, "0.856"),
        ("mean-sgd", None, "0.102"),
        ("ltl-sgd-sgd", 1000, "0.111"),
    ],
    "lenk-regression": [
        ("itl-sgd", None, "4.42"),
        ("itl-erm", None, "3.17"),
        ("ltl-sgd-sgd", 100, "1.90"),
        ("ltl-erm-erm", 100, "1.74"),
    ],
}
