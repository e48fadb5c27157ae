"""Runs of several parties."""

from __future__ import annotations

import threading

import pandas
import polars
import polars.testing
import pyarrow
import pytest
import veilset
from conftest import free_address

NAMES = ["north", "south", "east"]
DATA = [
    polars.DataFrame({"k": ["a", "b", "c", "d"], "n": [1, 2, 3, 4]}),
    pandas.DataFrame({"key": ["b", "c", "x"]}),
    pyarrow.table({"id": ["c", "b", "y", "z"]}),
]


class Three:
    def __init__(self, folder):
        self.identities = [veilset.Identity.new(folder / f"{name}.pem") for name in NAMES]
        self.parties = folder / "parties.toml"
        text = "leader = \"north\"\n"
        for name, identity in zip(NAMES, self.identities):
            text += f"\n[[party]]\nname = \"{name}\"\nfingerprint = \"{identity.fingerprint}\"\n"
            if name != "east":
                text += f"address = \"{free_address()}\"\n"
        self.parties.write_text(text)

    def run(self, operation, data=DATA, *more):
        """Returns each party's result or exception. `more` has the further options of each."""
        results = [None] * 3

        def one(party):
            options = {"key": list(data[party].columns)[0] if party < 2 else data[party].column_names[0],
                       "parties": self.parties, "me": NAMES[party], "identity": self.identities[party], "threads": 1,
                       "connect_timeout": 30, "allow_small": True, **(more[party] if more else {})}
            try:
                results[party] = getattr(veilset, operation)(data[party], **options)
            except Exception as e:
                results[party] = e

        threads = [threading.Thread(target=one, args=(party,)) for party in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return results


@pytest.fixture
def three(tmp_path):
    return Three(tmp_path)


def test_the_leader_gets_the_result_as_its_frame(three):
    leader, *others = three.run("intersect")
    polars.testing.assert_frame_equal(leader.frame, DATA[0][1:3])
    assert leader.matches == 2 and [other.frame for other in others] == [None, None]
    assert [party["items"] for party in leader.report["parties"]] == [3, 4]
    leader, *_ = three.run("union")
    assert sorted(leader.frame["k"].to_list()) == ["a", "b", "c", "d", "x", "y", "z"]
    seen = []
    leader, *_ = three.run("count", DATA, {"progress": seen.append}, {}, {})
    assert leader.matches == 2 and any(doing.what == "computing with 2 others" for doing in seen)


def test_an_error_names_the_party_that_it_is_about(three):
    results = three.run("count", DATA, {}, {"normalize": "trim"}, {})
    differ = [result for result in results if isinstance(result, veilset.DisagreementError)]
    assert differ and all("normalisation of keys" in str(error) for error in differ), results
    # A party that first learns that another gave up no longer compares.
    assert all(isinstance(error, veilset.PeerError) and error.party for error in results if error not in differ), results
    leader, south, east = three.run("count", [*DATA[:2], pyarrow.table({"id": [1.5]})], *[{"connect_timeout": 2}] * 3)
    assert type(east) is veilset.InputError
    # That party never connected; the others say who is missing.
    for error in (leader, south):
        assert error.exit_code in (5, 6) and "east" in str(error), error


def test_what_does_not_go_with_a_list_is_refused(three):
    for option in ({"role": "receiver"}, {"peer": "south"}, {"both": True}):
        with pytest.raises(veilset.UsageError, match=f"{next(iter(option))} does not go with parties"):
            veilset.count(DATA[0], key="k", parties=three.parties, me="north", identity=three.identities[0], **option)
