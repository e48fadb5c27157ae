"""Halves and filters that are made in advance from frames."""

from __future__ import annotations

import asyncio
import pathlib

import pandas
import polars
import pyarrow
import pytest
import veilset
from veilset import aio

OURS = {"email": ["ann@a", "bob@b", "cy@c", "bob@b"], "n": [1, 2, 3, 4]}
THEIRS = {"mail": ["bob@b", "cy@c", "dan@d"]}


def found(result):
    return sorted(polars.DataFrame(result.frame)["email"].to_list())


def test_a_half_is_made_of_a_frame_and_used_once(pair, tmp_path, caplog):
    ours, theirs = polars.DataFrame(OURS), pandas.DataFrame(THEIRS)
    seen = []
    with caplog.at_level("INFO", logger="veilset"):
        half = veilset.prepare(ours, key="email", output=tmp_path / "r.half", identity=pair.identities[0],
                               threads=1, progress=seen.append)
    assert half == tmp_path / "r.half" and half.exists()
    assert "the frame: 4 rows, 3 items, 1 row with a repeated key omitted" in caplog.text
    assert f"for one run with the same input and prepared {half}" in caplog.text
    assert seen and all(doing.what != "waiting for the other party" for doing in seen)
    # The half is made from the same rows in another kind of frame, and in a file.
    path = tmp_path / "theirs.csv"
    theirs.to_csv(path, index=False)
    other = veilset.prepare(path, key=["mail"], output=str(tmp_path / "s.half"), identity=pair.identities[1].path)
    copy = tmp_path / "copy"
    copy.write_bytes(half.read_bytes())
    receiver, sender = pair.both("intersect", (pyarrow.table(OURS), {"key": "email", "prepared": half}),
                                 (theirs, {"key": "mail", "prepared": other}))
    assert found(receiver) == ["bob@b", "cy@c"]
    assert receiver.report["prepared"] and sender.report["prepared"]
    assert not half.exists() and not other.exists()
    # The ledger knows of the copy.
    with pytest.raises(veilset.InputError, match="was used") as raised:
        veilset.intersect(ours, **pair.options(0, "127.0.0.1:1"), key="email", prepared=copy)
    assert raised.value.file == str(copy)


def test_what_a_half_is_not_for_is_refused_and_nothing_is_sent(pair, tmp_path, listener):
    def run(frame, **options):
        given = {**pair.options(1, listener.address), "key": "email", "prepared": half, **options}
        with pytest.raises(veilset.Error) as raised:
            veilset.count(frame, **given)
        assert half.exists() and not listener.heard()
        return raised.value

    ours = polars.DataFrame(OURS)
    half = veilset.prepare(ours, key="email", output=tmp_path / "half", identity=pair.identities[1])
    error = run(ours[1:])
    assert type(error) is veilset.InputError and "it was prepared for 3 keys" in str(error)
    error = run(ours, key="n")
    assert type(error) is veilset.InputError and error.exit_code == 3
    error = run(ours, normalize="trim")
    assert "keys normalised as utf8" in str(error)
    error = run(ours, identity=pair.identities[0])
    assert type(error) is veilset.InputError
    error = run(ours, protocol="vole")
    assert type(error) is veilset.UsageError


def test_errors_of_making_say_where_and_leave_no_file(pair, tmp_path):
    ours = polars.DataFrame(OURS)
    cases = [
        ((ours,), {"key": "nokey"}, veilset.InputError, "column \"nokey\": there is no such column"),
        ((ours.with_columns(email=None),), {}, veilset.InputError, "the key is empty"),
        ((7,), {}, veilset.UsageError, "a builtins.int cannot be read"),
        ((ours,), {"key": None}, veilset.UsageError, "key is missing"),
        ((ours,), {"output": None}, veilset.UsageError, "output <FILE>"),
        ((ours,), {"output": "-"}, veilset.UsageError, "it must be a file"),
        ((ours,), {"rolle": "x"}, veilset.UsageError, "prepare has no such option"),
        ((ours,), {"pad_to": 2}, veilset.UsageError, "pad_to=2 is less than our 3 items"),
        ((ours,), {"identity": tmp_path / "none.pem"}, veilset.UsageError, "none.pem"),
    ]
    for data, options, kind, words in cases:
        given = {"key": "email", "output": tmp_path / "half", "identity": pair.identities[0], **options}
        before = set(tmp_path.rglob("*"))
        with pytest.raises(veilset.Error) as raised:
            veilset.prepare(*data, **given)
        assert type(raised.value) is kind and words in str(raised.value), raised.value
        assert set(tmp_path.rglob("*")) - before <= {tmp_path / "state" / "veilset"}, words
    with pytest.raises(veilset.UsageError, match=r"filter build has no such option.*`help\(veilset.filter.build\)` lists its options"):
        veilset.filter.build(ours, key="email", output=tmp_path / "filter", role="receiver")


def test_making_a_half_can_be_stopped(pair, tmp_path):
    frame = polars.DataFrame({"k": [str(i) for i in range(200_000)]})

    def stop(doing):
        if doing.what == "preparing" and doing.done:
            raise LookupError("enough")

    with pytest.raises(LookupError):
        veilset.prepare(frame, key="k", output=tmp_path / "half", identity=pair.identities[0], threads=1, progress=stop)
    assert not (tmp_path / "half").exists()


def test_a_filter_serves_many_runs(pair, tmp_path):
    ours, theirs = polars.DataFrame(OURS), pandas.DataFrame(THEIRS)
    us = {"identity": pair.identities[0]}
    made = veilset.filter.build(ours, key="email", output=tmp_path / "ours.filter", capacity=9, for_=8, **us)
    public = veilset.filter.export(made, output=tmp_path / "ours.public", **us)
    assert (made, public) == (tmp_path / "ours.filter", tmp_path / "ours.public")
    receiver = (pyarrow.table(OURS), {"key": "email", "filter": made})
    for theirs_too in ({"filter": public}, {"protocol": "dc17"}):
        result, _ = pair.both("intersect", receiver, (theirs, {"key": "mail", **theirs_too}))
        assert found(result) == ["bob@b", "cy@c"] and result.report["protocol"] == "dc17"
    info = veilset.filter.info(made, **us)
    assert (info.items, info.capacity, info.queries, info.key_columns) == (3, 9, 8, 1)
    assert (info.owner, info.cipher, info.normalisation) == (pair.identities[0].fingerprint, "elgamal", "utf8")
    assert "a filter of 3 items, with room for 9" in str(info) and info.digest in repr(info)
    # Anybody may inspect the public part.
    shown = veilset.filter.info(public, identity=pair.identities[1])
    assert (shown.items, shown.digest) == (None, info.digest)
    new = pandas.DataFrame({"email": ["dan@d", "cy@c"], "n": [5, 6]})
    assert veilset.filter.update(made, new, key="email", **us) == 1
    assert veilset.filter.info(made, **us).items == 4
    more = polars.concat([ours, polars.DataFrame(new)])
    result, _ = pair.both("count", (more, {"key": "email", "filter": made}), (theirs, {"key": "mail", "protocol": "dc17"}))
    assert result.matches == 3
    # The public part is that of the old filter.
    for result in pair.run("count", (more, {"key": "email", "filter": made}), (theirs, {"key": "mail", "filter": public})):
        assert type(result) is veilset.DisagreementError, result


def test_a_filter_that_was_interrupted_goes_on(pair, tmp_path, caplog):
    # There are so many items that even the fastest machine is not done before progress is first shown.
    frame = polars.DataFrame({"k": [str(i) for i in range(3000)]})
    options = {"key": "k", "output": tmp_path / "filter", "identity": pair.identities[0], "threads": 1, "for_": 8}

    def stop(doing):
        if doing.what == "encrypting" and doing.done:
            raise LookupError("enough")

    with caplog.at_level("INFO", logger="veilset"), pytest.raises(LookupError):
        veilset.filter.build(frame, **options, progress=stop)
    part = tmp_path / "filter.part"
    assert part.exists() and not (tmp_path / "filter").exists()
    seen = []
    veilset.filter.build(frame, **options, progress=seen.append)
    assert not part.exists() and veilset.filter.info(tmp_path / "filter", identity=pair.identities[0]).items == 3000
    # An existing filter is not overwritten.
    with pytest.raises(veilset.OutputError, match="force"):
        veilset.filter.build(frame[1:], **options)


def test_coroutines_make_the_same(pair, tmp_path):
    ours = polars.DataFrame(OURS)
    us = {"identity": pair.identities[0]}

    async def all_of_it():
        made, half = await asyncio.gather(
            aio.filter.build(ours, key="email", output=tmp_path / "filter", capacity=9, for_=8, **us),
            aio.prepare(ours, key="email", output=tmp_path / "half", **us),
        )
        inserted = await aio.filter.update(made, pandas.DataFrame({"email": ["new"]}), key="email", **us)
        public = await aio.filter.export(made, output=tmp_path / "public", **us)
        return half, inserted, (await aio.filter.info(public)).capacity

    assert asyncio.run(all_of_it()) == (tmp_path / "half", 1, 9)
    assert pathlib.Path(tmp_path / "half").exists()
