"""What the package offers: names, help and types; what may be copied; and options that would have no effect."""

from __future__ import annotations

import copy
import datetime
import inspect
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import warnings

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest
import veilset
from conftest import free_address
from veilset import _given, _help, _native, _options

ROOT = pathlib.Path(__file__).resolve().parents[3]
OURS = polars.DataFrame({"k": ["a", "b", "c"], "n": [1, 2, 3]})


def refused(pair, data=OURS, operation="intersect", **options):
    """Returns the message about wrong use, before anybody is contacted."""
    with pytest.raises(veilset.UsageError) as raised:
        getattr(veilset, operation)(data, **{**pair.options(0, "127.0.0.1:1"), "key": "k", **options})
    assert raised.value.exit_code == 2
    return str(raised.value)


def test_the_version_is_that_of_the_package():
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert veilset.__version__ == version


def test_a_star_import_hides_no_function_of_python():
    for module in ("veilset", "veilset.aio"):
        found = {}
        exec(f"from {module} import *", found)
        import builtins

        hidden = [name for name in found if hasattr(builtins, name) and name != "__builtins__"]
        assert not hidden and "intersect" in found and "check" in found
    assert callable(veilset.sum) and callable(veilset.id) and veilset.filter.build and veilset.aio.filter.build


def documented():
    """Yields the functions with options, and the commands whose options they have."""
    for command in _options.OF:
        *module, name = command.split()
        for where in (veilset, veilset.aio):
            yield getattr(getattr(where, module[0]) if module else where, name), [command], _options.OF[command]
    for where in (veilset, veilset.aio):
        yield where.check, [name for name, _ in _native.operations()], None


def test_signatures_and_help_have_all_options_and_what_each_does():
    seen = set()
    for function, commands, _ in documented():
        known = {one[0]: one for of in _native.options(commands) for one in of}
        expected = known.keys() - {"quiet"} | {"progress"}
        parameters = inspect.signature(function).parameters
        options = {name: one for name, one in parameters.items() if one.kind is inspect.Parameter.KEYWORD_ONLY}
        assert options.keys() == expected, commands
        lines = dict(re.findall(r"^    (\w+): (.+)$", inspect.getdoc(function), re.MULTILINE))
        assert lines.keys() == expected, commands
        for name, one in options.items():
            assert one.annotation is not inspect.Parameter.empty and not isinstance(one.annotation, str), name
            if name in known and known[name][2] is not None:
                assert str(one.default) == known[name][2], name
        assert not re.search(r"--[a-z]", function.__doc__), function.__doc__
        seen.update(said for said in _help._OTHERWISE.values() if said in function.__doc__)
    # Each text that differs from the program's still occurs.
    assert seen == set(_help._OTHERWISE.values())
    required = {name for name, one in inspect.signature(veilset.prepare).parameters.items() if one.default is one.empty}
    assert required == {"data", "output"}
    text = subprocess.run([sys.executable, "-c", "import veilset; help(veilset.intersect)"], capture_output=True, text=True).stdout
    assert "max_row: int = 64" in text and "    key: The columns to compare\n" in text


def test_the_types_of_options_on_workers_are_those_of_the_operations():
    of_workers = set(_options.OnWorkers.__annotations__)
    assert of_workers < set(_options.Intersect.__annotations__) and of_workers < set(_options.Union_.__annotations__)
    # Each option is either for workers, or refused on them; a new one must be one or the other.
    for operation in ("intersect", "union"):
        for name in _options.OF[operation].__annotations__.keys() - of_workers - {"output"}:
            with pytest.raises(veilset.UsageError, match=f"^{name} (does not apply|says how)"):
                _given.check_on_workers({"shards": 2, name: "x"}, operation)
        _given.check_on_workers(dict.fromkeys(of_workers, True), operation)


SCRIPT = """
import datetime
import pandas
import veilset
import veilset.dask
import veilset.spark
from dask.dataframe import DataFrame

def checks(frame: object) -> None:
    checked = veilset.check("sum", frame, key="k", role="sender", values="n", modulus=128, peer="p", idle_timeout=1.5)
    count: int = checked.items + sum(other.items for other in checked.others)
    learned: list[str] = checked.learned
    veilset.count(frame, key=pandas.Index(["k"]), connect_timeout=datetime.timedelta(minutes=1), role="receiver", peer="p")
    print(count, learned, veilset.__version__, veilset.guide("python"), veilset.filter.info("f").items)

async def later(frame: object) -> str:
    return (await veilset.aio.check("union", frame, key="k", role="sender", peer="p")).protocol

def on_workers(ddf: DataFrame) -> int | None:
    r = veilset.dask.union(ddf, shards=4, key="k", role="receiver", peer="p", listen="0.0.0.0:1", lanes={"w": "0.0.0.0:2"})
    return r.matches
"""
WRONG = [
    'veilset.check("sum", None, key="k", max_row=5)',
    'veilset.check("nothing", None, key="k")',
    'veilset.intersect(None, key="k", connect_timeout="x")',
    'veilset.dask.intersect(None, shards=4, output="x")',
]


def test_a_script_of_a_user_is_checked_by_its_types(tmp_path):
    """mypy reads the package as an installed one, which has types; pyspark need not be there."""

    assert (pathlib.Path(veilset.__file__).parent / "py.typed").exists()
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text("\n".join(["import veilset", "import veilset.dask", *WRONG]) + "\n")
    words = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "script.py", "wrong.py"]
    done = subprocess.run([sys.executable, "-m", "mypy", *words], cwd=tmp_path, capture_output=True, text=True)
    wrong = {(file, int(at)) for file, at in re.findall(r"^(\S+):(\d+): error", done.stdout, re.MULTILINE)}
    assert wrong == {("wrong.py", at) for at in range(3, 3 + len(WRONG))}, done.stdout


def test_a_message_names_no_command_of_the_program():
    """Users of the package need not have the program: messages tell them to type Python."""
    # The commands in strings, apart from tests and documentation.
    literal = re.compile(r'(?:command!|to_type)\((?:format_args!\()?"([^"\n]*)"')
    found = set()
    for source in (file for crate in ("core", "veilset", "app", "cli") for file in ROOT.glob(f"crates/{crate}/src/**/*.rs")):
        if source.name.endswith("tests.rs"):
            continue
        text = "\n".join(line for line in source.read_text().split("#[cfg(test)]")[0].splitlines()
                         if not line.lstrip().startswith("//"))
        # Long strings continue on the next line.
        found.update(f"veilset {words}" for words in literal.findall(re.sub(r"\\\n\s*", "", text)))
    # Messages that only the program has: about its own files, measurements and commands.
    of_the_program = {"veilset run --help", "veilset calibrate --speeds {}"}
    assert len(found) > 15 and "veilset identity show" in found and of_the_program < found, found
    for command in sorted(found - of_the_program):
        typed = command.replace("{typed}", "name").replace("{name}", "name").replace("{other}", "name")
        (text,) = re.findall("`(.*)`", _native.as_python(f"\ufdd0{typed}\ufdd1"))
        if command == "veilset calibrate":
            assert text == "veilset calibrate` of the program `veilset"
            continue
        assert not text.startswith("veilset "), command
        # It names something that exists.
        path = re.search(r"veilset((?:\.\w+)+)", text)[1].strip(".").split(".")
        if path == ["name"]:
            continue
        value = veilset
        for name in path:
            value = getattr(value, name)
    said = _native.as_python("Ask what \ufdd0veilset identity show\ufdd1 prints, and see \ufdd0veilset help policy-and-audit\ufdd1"
                             " or \ufdd0key\ufdd1, and leave `veilset identity show` and --key as they are")
    assert said == ('Ask what `print(veilset.Identity.load().fingerprint)` prints, and see'
                    ' `print(veilset.guide("policy-and-audit"))` or key, and leave `veilset identity show` and --key'
                    ' as they are')


def test_messages_of_a_run_say_what_to_do_in_python(pair, home):
    # In the order in which they occur: about the identity, the address book, the options.
    with pytest.raises(veilset.UsageError, match=r"Make one with `veilset\.Identity\.new\(\)`"):
        veilset.Identity.load()
    assert "`veilset.PeerBook().add(\"nobody\", FINGERPRINT)`" in refused(pair, peer="nobody")
    assert "`help(veilset.intersect)`" in refused(pair, rolle="x")
    with pytest.raises(veilset.UsageError, match=r"`veilset\.PeerBook\(\)\.peers\(\)`"):
        veilset.PeerBook().remove("nobody")
    own = pair.identities[0]
    with pytest.raises(veilset.UsageError, match=r"`print\(veilset\.Identity\.load\(\)\.fingerprint\)`"):
        veilset.PeerBook().add("us", own.fingerprint, identity=own)


def test_files_that_others_could_replace_give_a_warning(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root gives folders to others")
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    identity = veilset.Identity.new(place / "id.pem")
    book = veilset.PeerBook(place / "peers.toml")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert veilset.Identity.load(identity.path) == identity
        book.add("south", veilset.Identity.new(tmp_path / "south.pem").fingerprint)
        assert [peer.name for peer in book.peers()] == ["south"]
    os.chown(place, 54_321, -1)
    with pytest.warns(RuntimeWarning, match=r"the identity .*id\.pem is in the folder .* whose owner \(54321\)") as told:
        assert veilset.Identity.load(identity.path) == identity
    # The warning is attributed to the line that made the call.
    assert [warning.filename for warning in told] == [__file__]
    with pytest.warns(RuntimeWarning, match=r"the address book .*peers\.toml is in the folder"):
        assert [peer.name for peer in book.peers()] == ["south"]


def test_the_guide_is_in_the_package():
    assert "policy-and-audit" in veilset.guide()
    assert veilset.guide("audit").startswith("# ") and veilset.guide("python").startswith("# In Python")
    with pytest.raises(veilset.UsageError, match=r"no page of the guide.*`print\(veilset\.guide\(\)\)` lists them"):
        veilset.guide("intersect")


def test_options_that_would_have_no_effect_are_refused(pair, tmp_path):
    frames = [OURS, OURS.to_pandas(), OURS.to_arrow(), OURS.lazy(), duckdb.connect().from_arrow(OURS.to_arrow())]
    for frame in frames:
        for name, value in {"format": "csv", "delimiter": ";", "no_header": True}.items():
            assert f"{name} says how a file is read" in refused(pair, frame, **{name: value})
    for operation in ("intersect", "union", "id"):
        for name, value in {"output_format": "csv", "for_spreadsheets": True}.items():
            assert f"{name} says how a file is written" in refused(pair, OURS, operation, **{name: value})
    assert "input: the data are the first argument" in refused(pair, input="other.csv")
    assert "quiet: nothing is printed" in refused(pair, quiet=True)
    for operation in ("union", "count"):
        assert "output must be a file" in refused(pair, OURS, operation, output="-")
    # Options with the values that mean "not given" are accepted.
    receiver, _ = pair.both("intersect", (OURS, {"no_header": False, "format": None, "for_spreadsheets": False}), (OURS, {}),
                            {"key": "k"})
    assert receiver.frame.equals(OURS)
    # For a file, these options have an effect.
    (tmp_path / "ours.csv").write_text("a;1\nb;2\n")
    file = {"key": "1", "delimiter": ";", "no_header": True, "output": tmp_path / "out.csv", "output_format": "csv"}
    receiver, _ = pair.both("intersect", (tmp_path / "ours.csv", file), (OURS, {"key": "k"}), {})
    assert receiver.frame is None and (tmp_path / "out.csv").read_text().split() == ["a;1", "b;2"]
    with pytest.raises(veilset.UsageError, match="format says how a file is read"):
        veilset.prepare(OURS, key="k", output=tmp_path / "half", format="csv")
    with pytest.raises(veilset.UsageError, match="delimiter says how a file is read"):
        veilset.filter.build(OURS, key="k", output=tmp_path / "filter", delimiter=";")


def test_a_time_is_a_number_or_a_timedelta(pair):
    for value in (30, 30.0, 29.5, datetime.timedelta(seconds=30), numpy.int64(30), numpy.float32(30), "30",
                  numpy.timedelta64(30, "s"), numpy.timedelta64(30_000, "ms"), numpy.array(30, "m8[s]")):
        both = {"key": "k", "connect_timeout": value, "idle_timeout": value}
        receiver, _ = pair.both("count", (OURS, {}), (OURS, {}), both)
        assert receiver.matches == 3
    for name in ("connect_timeout", "idle_timeout"):
        for value in (True, False, [30], numpy.bool_(True), datetime.time(1), 1j):
            assert f"{name} takes seconds, as a number or as a datetime.timedelta" in refused(pair, **{name: value})
        # As numbers they would have another unit.
        for value in (numpy.timedelta64(5, "ns"), numpy.timedelta64(5), numpy.array(5, "m8[ns]"), numpy.timedelta64(1, "Y"),
                      numpy.timedelta64("NaT"), numpy.datetime64(5, "ns")):
            assert f"{name} takes no numpy." in refused(pair, **{name: value})
        assert "a number of seconds from 1 to" in refused(pair, **{name: numpy.timedelta64(5, "ms")})
        for value in (-1, 0, 0.5, float("nan"), float("inf"), datetime.timedelta(-1), datetime.timedelta(days=3660), "soon"):
            said = refused(pair, **{name: value})
            assert name in said and "a number of seconds from 1 to 31536000, like 90 or 1.5, is needed" in said, said
    # Fractions of a second are kept.
    begun = datetime.datetime.now()
    with pytest.raises(veilset.NetworkError, match=r"within 1.5 seconds \(connect_timeout\)"):
        veilset.count(OURS, **{**pair.options(1, free_address()), "key": "k", "connect_timeout": datetime.timedelta(seconds=1.5)})
    assert datetime.datetime.now() - begun >= datetime.timedelta(seconds=1.5)


def test_words_are_a_list_or_are_separated_by_commas(pair):
    for words in ("trim,casefold", ["trim", "casefold"], ("casefold", "trim"), {"trim", "casefold"}):
        theirs = polars.DataFrame({"k": [" A", "B "]})
        receiver, _ = pair.both("count", (OURS, {}), (theirs, {}), {"key": "k", "normalize": words, "assume": "ddh,lpn"})
        assert receiver.matches == 2
    assert "normalize takes a text or a list of texts" in refused(pair, normalize=[1])
    assert "assume takes a text or a list of texts" in refused(pair, assume=b"ddh")


NAMES = [["k", "n"], ("k", "n"), pandas.Index(["k", "n"]), pandas.Series(["k", "n"]), numpy.array(["k", "n"]),
         polars.Series(["k", "n"]), {"k": 1, "n": 2}.keys()]


@pytest.mark.parametrize("names", NAMES, ids=lambda names: type(names).__module__ + type(names).__name__)
def test_a_key_of_several_columns_is_anything_with_an_order(pair, names):
    for frame in (OURS, OURS.to_pandas(), OURS.to_arrow(), OURS.lazy()):
        receiver, _ = pair.both("count", (frame, {"key": names}), (OURS, {"key": ["k", "n"]}))
        assert receiver.matches == 3


def test_what_names_no_columns_is_refused_without_its_cells(pair):
    frame = pandas.DataFrame({"k": ["cell-1", "cell-2"], "n": [1, 2], 3: ["x", "y"]}, index=["cell-3", "cell-4"])
    wrong = {
        "a series of cells": frame["k"], "an index of rows": frame.index, "a frame": frame[["k"]], "bytes": b"cell-1",
        "a set": {"k", "n"}, "a mapping": {"k": "cell-1"}, "a truth value": True, "a float": 1.5, "nothing in it": [None],
        "nested": [["k"]], "numbers": numpy.array([1.5]), "a polars series": polars.Series(["cell-1"]),
    }
    for what, key in wrong.items():
        for option in ("key", "send_columns"):
            said = refused(pair, frame, **{option: key})
            assert f"{option} " in said and "cell-" not in said, (what, said)
    assert "the order of columns matters. Give a list" in refused(pair, frame, key={"k", "n"})
    for option in ("values", "peer", "max_row", "output"):
        said = refused(pair, frame, "sum" if option == "values" else "intersect", **{option: frame["k"]})
        assert said.startswith(f"{option} takes one value, and this is a pandas.Series"), said
    assert "max_row takes no numpy.timedelta64" in refused(pair, max_row=numpy.timedelta64(5, "ns"))
    # The column names of a file are not known.
    for names in (pandas.Series(["k"]), pandas.Index(["k"]), polars.Series(["k"]), numpy.array(["k"]), {"k": 1}.keys()):
        for option in ("key", "send_columns"):
            assert "may hold cells. Give a list of names" in refused(pair, "ours.csv", **{option: names})
        assert "may hold cells. Give a list of names" in refused(pair, receive_columns=names)
        # Those of a veilset.Frame are.
        receiver, _ = pair.both("count", (frame_of(OURS.to_arrow()), {"key": names}), (OURS, {"key": "k"}))
        assert receiver.matches == 3
    # A label of pandas may be a number.
    receiver, _ = pair.both("count", (frame, {"key": 3}), (frame, {"key": [3]}))
    assert receiver.matches == 2


@pytest.mark.parametrize("theirs", ["a=b", "a,b", 'a"b', '"a"', "a", "=", '"a"="b"', "it's", "a\\b"])
@pytest.mark.parametrize("ours", ["z=1", '"z"', "z,y", "z"])
def test_a_column_that_is_received_may_have_any_name(pair, theirs, ours):
    sent = polars.DataFrame({"k": ["a", "b"], theirs: ["x", "y"]})
    receiver, _ = pair.both("intersect", (OURS, {"receive_columns": {theirs: ours}}), (sent, {"send_columns": [theirs]}),
                            {"key": "k"})
    assert receiver.frame.to_dict(as_series=False) == {"k": ["a", "b"], "n": [1, 2], ours: ["x", "y"]}


def test_names_of_columns_that_are_not_the_same_are_told_alike(pair):
    names = ['c,"d"', "it's", "a\\b", "tab\t"]
    frame = polars.DataFrame({"k": ["a"], **dict.fromkeys(names, "x")})
    address, raised = free_address(), []

    def one(party, options):
        with pytest.raises(veilset.DisagreementError) as error:
            veilset.intersect(frame, key="k", **{**pair.options(party, address), **options})
        raised.append(error.value)

    sides = [(0, {"receive_columns": dict(zip(names, "wxyz"))}), (1, {"send_columns": [*names, "k"]})]
    threads = [threading.Thread(target=one, args=side) for side in sides]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(raised) == 2
    for error in raised:
        (found,) = error.differences
        assert {found["ours"], found["theirs"]} == {(same := '"c,\\"d\\"", "it\'s", "a\\\\b", "tab\\t"'), f'{same}, "k"'}


def checked(pair, operation="intersect", **options):
    address, found = free_address(), [None, None]

    def one(party):
        found[party] = veilset.check(operation, OURS, key="k", **{**pair.options(party, address), **options})

    threads = [threading.Thread(target=one, args=(party,)) for party in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return found


def test_a_check_has_fields(pair):
    receiver, sender = checked(pair)
    assert (receiver.operation, receiver.role, sender.role) == ("intersect", "receiver", "sender")
    assert (receiver.protocol, receiver.group) == (sender.protocol, sender.group) and receiver.protocol in str(receiver)
    assert (receiver.items, receiver.padded) == (3, False)
    assert receiver.others == [veilset.Party(None, pair.identities[1].fingerprint, 3, False)]
    assert receiver.terms["operation"] == "intersect" and receiver.terms["max_row"] == "0"
    assert all(sentence in str(receiver) for sentence in receiver.learned) and len(receiver.learned) == 2
    assert receiver.sent == sender.received > 0 and f"about {receiver.sent} bytes to the peer" in str(receiver)
    assert receiver.rounds > 0 and receiver.memory > 0 and receiver.rests_on == sender.rests_on != []
    assert receiver.seconds > 0 and isinstance(receiver.their_seconds, float)
    with pytest.raises(AttributeError):
        receiver.items = 4


def copies(value):
    yield pickle.loads(pickle.dumps(value))
    yield copy.copy(value)
    yield copy.deepcopy(value)


def test_results_and_frames_are_pickled_and_copied(pair, tmp_path):
    empty = {"k": [], "n": []}
    for kind in (OURS, OURS.to_arrow(), OURS.to_pandas(), duckdb.connect().from_arrow(OURS.to_arrow())):
        receiver, sender = pair.both("intersect", (kind, {}), (OURS[1:], {}), {"key": "k"})
        for result in copies(receiver):
            assert type(result.frame) is type(receiver.frame) and result.report == receiver.report
            assert polars.DataFrame(result.frame).equals(OURS[1:]) and repr(result) == repr(receiver)
            assert (result.matches, result.learned) == (receiver.matches, receiver.learned)
        assert all(result.frame is None and result.report == sender.report for result in copies(sender))
    receiver, sender = pair.both("share", (OURS, {}), (OURS, {}), {"key": "k"})
    for result in copies(sender):
        assert result.map.equals(sender.map)
    receiver, _ = pair.both("id", (OURS.to_arrow(), {}), (OURS, {}), {"key": "k"})
    frame = receiver.ids
    assert isinstance(frame, veilset.Frame) and len(frame) == 3
    for one in copies(frame):
        assert one == frame and one.columns == frame.columns and pyarrow.table(one).equals(pyarrow.table(frame))
    assert frame != pyarrow.table(frame) and frame != frame_of(pyarrow.table({"veilset_id": ["a"]}))
    one = pyarrow.table({"k": ["a", None, "c"], "n": [[1], [], None]})
    parts = pyarrow.concat_tables([one[:1], one[1:1], one[1:]])
    assert frame_of(one) == frame_of(parts) == pickle.loads(pickle.dumps(frame_of(parts)))
    assert frame_of(one) != frame_of(one[1:]) and frame_of(one[:2]) != frame_of(one[1:])
    assert frame_of(one[:1]) != frame_of(one.rename_columns(["k", "m"])[:1])
    assert pickle.loads(pickle.dumps(frame_of(pyarrow.table(empty)))) == frame_of(pyarrow.table(empty))
    with pytest.raises(TypeError, match="unhashable"):
        hash(frame)
    with pytest.raises(ValueError, match="no pickled veilset.Frame"):
        _native.frame_of(b"something else")


def frame_of(table):
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return _native.frame_of(sink.getvalue().to_pybytes())


def test_what_else_a_user_has_is_pickled_and_copied(pair, tmp_path, home):
    filter = veilset.filter.build(OURS, key="k", output=tmp_path / "filter", identity=pair.identities[0])
    values = [checked(pair)[0], veilset.filter.info(filter, identity=pair.identities[0]), pair.identities[0],
              veilset.PeerBook(), veilset.PeerBook(tmp_path / "book"), veilset.Policy(tmp_path / "policy"),
              veilset.Peer("a", "b", None), veilset.Doing("reading", 1, 2, 3, 4, "items", 0.5)]
    for value in values:
        for one in copies(value):
            assert one == value and str(one) == str(value) and type(one) is type(value)
    # An identity has the path of its file, but no key.
    key = (pair.identities[0].path).read_text().split("-----")[2].strip()
    assert len(key) > 40 and key.encode() not in pickle.dumps(pair.identities[0])


def test_errors_are_pickled_with_what_they_know(pair):
    with pytest.raises(veilset.InputError) as raised:
        veilset.count(polars.DataFrame({"k": ["a", None]}), **{**pair.options(0, "127.0.0.1:1"), "key": "k"})
    disagreed, _ = pair.run("union", (OURS, {"max_row": 64}), (OURS, {"max_row": 128}), {"key": "k"})
    refused, told = pair.run("intersect", (OURS, {}), (OURS, {"allow_small": False}), {"key": "k"})
    # One side refuses, and the other is told so.
    assert {type(refused), type(told)} == {veilset.PeerError, veilset.RefusedError}
    gave_up = refused if isinstance(refused, veilset.PeerError) else told
    assert gave_up.reason and gave_up.fault and gave_up.exit_code == 5
    for error in (raised.value, disagreed, refused, told, veilset.BugError("x"), veilset.CancelledError("y")):
        for one in copies(error):
            assert type(one) is type(error) and str(one) == str(error) and vars(one) == vars(error)
    # The same holds in another process.
    script = "import pickle, sys; e = pickle.load(sys.stdin.buffer); print(type(e).__name__, e.row, e.column, e.exit_code)"
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(raised.value), capture_output=True)
    assert done.stdout.split() == [b"InputError", b"2", b"k", b"3"], done.stderr


def test_what_goes_on_is_not_copied(pair):
    options = {name: getattr(value, "path", value) for name, value in pair.options(0, "127.0.0.1:1").items()}
    run = _native.Run("count", {**options, "connect_timeout": "30", "input": "the frame", "format": "arrow", "key": ["k"]}, OURS)
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot pickle 'veilset._native.Run' object"):
            act(run)
    run.cancel()
    assert run.wait(10)


def test_a_relation_of_duckdb_comes_back_as_a_frame_for_any_connection(pair):
    with duckdb.connect() as connection:
        connection.sql("create table t as select * from (values ('a', 1), ('b', 2), ('z', 3)) v(k, n)")
        receiver, _ = pair.both("intersect", (connection.table("t"), {}), (OURS, {}), {"key": "k"})
        found = receiver.frame
        assert isinstance(found, veilset.Frame)
        assert connection.sql("select k, t.n from found join t using (k) order by k").fetchall() == [("a", 1), ("b", 2)]
    # The relation's own connection is closed, and nothing is lost.
    assert sorted(duckdb.from_arrow(found).fetchall()) == [("a", 1), ("b", 2)]


def test_the_extra_of_spark_is_what_it_is_tested_with():
    """Spark refuses other versions of its dependencies, or does not know them."""
    (extra,) = re.findall(r"^spark = \[(.*)\]$", (ROOT / "crates/python/pyproject.toml").read_text(), re.MULTILINE)
    tested = (ROOT / "crates/python/tests_spark/requirements.txt").read_text().split()
    wanted = re.findall(r'"(.*?)"', extra)
    assert set(wanted) <= set(tested) and {re.split("[<>]", one)[0] for one in wanted} == {"numpy", "pandas", "pyarrow", "pyspark"}
