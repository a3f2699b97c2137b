"""Hypothesis: no deadline, since a first call may compile; the same examples in every CI run.

And one cluster of processes for all tests that need one.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two workers of one thread, each a process, which come back when they are killed."""
    import dask
    from distributed import LocalCluster

    # So long after a worker was lost (15 s, unless told) the cluster looks whether it is back, and
    # if not gives it up for good: also one that came back and was killed again a moment before.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    with (
        patient,
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as running,
    ):
        yield running


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """A client of the cluster, all of whose workers are there."""
    from clusters import STARTING
    from distributed import Client

    with Client(cluster, set_as_default=False) as found:  # type: ignore[no-untyped-call]
        found.wait_for_workers(2, timeout=STARTING)
        yield found
