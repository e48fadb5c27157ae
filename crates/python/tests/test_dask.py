"""Jobs on Dask: two companies with a cluster of two workers each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import veilset
from conftest import Pair, free_address

dask = pytest.importorskip("dask")
import dask.dataframe  # noqa: E402
import pandas  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from veilset import dask as on_dask  # noqa: E402


@pytest.fixture(scope="module")
def clients() -> Iterator[list[Client]]:
    with dask.config.set({"distributed.worker.daemon": False}):
        clusters = [
            LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None, protocol="tcp") for _ in range(2)
        ]
        clients = [Client(cluster, set_as_default=False) for cluster in clusters]
        yield clients
        for of in [*clients, *clusters]:
            of.close()


def keys(numbers: range) -> pandas.DataFrame:
    return pandas.DataFrame({"k": [f"k{i}" for i in numbers], "n": [i * i for i in numbers]})


def run(
    pair: Pair,
    clients: list[Client],
    operation: str,
    tables: list[Any],
    both: dict[str, Any] | None = None,
    sides: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
    before: Any = None,
) -> list[Any]:
    """What each side's call returned or raised."""
    address, places = free_address(), [free_address() for _ in range(2)]
    results: list[Any] = [None, None]
    lanes: list[Any] = [dict(zip(["0", "1"], places)), places]

    def one(party: int) -> None:
        options = {**pair.options(party, address), "shards": 5, "lanes": lanes[party], **(both or {}), **sides[party]}
        options["key"] = options.get("key", "k")
        try:
            results[party] = getattr(on_dask, operation)(tables[party], client=clients[party], **options)
        except Exception as e:
            results[party] = e

    threads = [threading.Thread(target=one, args=(party,)) for party in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def done(results: list[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def test_intersect_gives_what_one_run_gives(pair: Pair, clients: list[Client]) -> None:
    ours, theirs = keys(range(100)), keys(range(60, 200))
    tables = [dask.dataframe.from_pandas(ours, npartitions=3), dask.dataframe.from_pandas(theirs, npartitions=4)]
    r, s = done(run(pair, clients, "intersect", tables))
    got = r.frame.compute().reset_index(drop=True)
    pandas.testing.assert_frame_equal(got, ours[60:].reset_index(drop=True))
    assert r.matches == 40 and s.frame is None
