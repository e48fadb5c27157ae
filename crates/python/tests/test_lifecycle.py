"""How runs end: by interrupts, with Python, in copies of the process; and what threads share."""

from __future__ import annotations

import os
import re
import signal
import threading
import time

import polars
import pyarrow
import pytest
import veilset
from conftest import free_address, process

OURS = polars.DataFrame({"k": ["a", "b", "c"]})
#: The seconds until an interrupted process must have ended; on an idle machine, one is enough.
SOON = 3


def interrupted(party):
    """Interrupts a process, which must end soon, and returns what it printed on standard error."""
    begun = time.monotonic()
    party.send_signal(signal.SIGINT)
    _, err = party.communicate(timeout=60)
    assert time.monotonic() - begun < SOON, err
    return err


def test_an_interrupt_ends_a_run_that_waits(pair):
    party = process("""
        import sys, veilset, polars
        _, address, peer, identity = sys.argv
        veilset.count(polars.DataFrame({"k": ["a"]}), key="k", role="receiver", listen=address, peer=peer, identity=identity,
                      progress=lambda doing: print(doing.what, flush=True))
    """, address=free_address(), peer=pair.identities[1].fingerprint, identity=pair.identities[0].path)
    for line in party.stdout:
        if line == "waiting for the other party\n":
            break
    assert "KeyboardInterrupt" in interrupted(party)


def test_an_interrupt_in_the_middle_of_a_computation_is_told_to_the_peer(pair):
    address = free_address()
    party = process("""
        import sys, veilset, polars
        _, address, peer, identity = sys.argv
        veilset.union(polars.DataFrame({"k": [str(i) for i in range(100_000)]}), key="k", role="receiver", listen=address,
                      peer=peer, identity=identity, threads=1,
                      progress=lambda doing: print("computes" if doing.stage and doing.done else "", flush=True))
    """, address=address, peer=pair.identities[1].fingerprint, identity=pair.identities[0].path)
    outcome = []

    def other():
        try:
            veilset.union(polars.DataFrame({"k": [str(i) for i in range(100_000)]}), key="k", **pair.options(1, address))
        except veilset.Error as e:
            outcome.append(e)

    thread = threading.Thread(target=other)
    thread.start()
    for line in party.stdout:
        if line == "computes\n":
            break
    assert "KeyboardInterrupt" in interrupted(party)
    thread.join()
    (error,) = outcome
    assert type(error) is veilset.PeerError and error.fault == "gave-up" and error.reason == "cancelled" and error.exit_code == 5, error
    assert "stopped" in str(error), error


def test_an_interrupt_while_a_frame_is_read(pair):
    party = process("""
        import sys, time, veilset, pyarrow
        _, peer, identity = sys.argv
        schema = pyarrow.schema([("k", pyarrow.string())])
        def batches():
            for i in range(10_000):
                print("reads" if i else "", flush=True)
                time.sleep(0.05)
                yield pyarrow.record_batch({"k": [str(i)]}, schema=schema)
        veilset.count(pyarrow.RecordBatchReader.from_batches(schema, batches()), key="k", role="receiver",
                      listen="127.0.0.1:0", peer=peer, identity=identity)
    """, peer=pair.identities[1].fingerprint, identity=pair.identities[0].path)
    for line in party.stdout:
        if line == "reads\n":
            break
    assert "KeyboardInterrupt" in interrupted(party)


def test_python_may_end_while_a_run_goes_on(pair):
    party = process("""
        import sys, threading, time, veilset, polars
        _, address, peer, identity = sys.argv
        waits = threading.Event()
        def run():
            veilset.count(polars.DataFrame({"k": ["a"]}), key="k", role="receiver", listen=address, peer=peer,
                          identity=identity, progress=lambda doing: waits.set())
        threading.Thread(target=run, daemon=True).start()
        waits.wait()
        time.sleep(0.3)
    """, address=free_address(), peer=pair.identities[1].fingerprint, identity=pair.identities[0].path)
    out, err = party.communicate(timeout=60)
    assert (party.returncode, out) == (0, ""), err
    # The thread may still say that its run was stopped.
    assert "Fatal" not in err and "panicked" not in err, err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_copy_of_the_process_leaves_runs_alone_and_may_have_its_own(pair):
    party = process("""
        import os, sys, threading, time, warnings, veilset, pyarrow
        from veilset import _run
        warnings.simplefilter("ignore", DeprecationWarning)
        _, address, other, *identities = sys.argv
        us = [veilset.Identity.load(path) for path in identities]
        def options(party, address):
            return dict(key="k", role=("receiver", "sender")[party], peer=us[1 - party].fingerprint, identity=us[party],
                        audit_log=None, threads=1, allow_small=True, **{("listen", "connect")[party]: address})
        frame = pyarrow.table({"k": ["a", "b"]})
        started = _run.start("count", frame, options(0, address))
        child = os.fork()
        if child == 0:
            try:
                started.wait()
            except RuntimeError as e:
                print(e, flush=True)
            results = []
            def run(party):
                results.append(_run.run("count", frame, options(party, other)))
            threads = [threading.Thread(target=run, args=(party,)) for party in range(2)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            del started
            print("child", [result.matches for result in results if result.matches is not None], flush=True)
            sys.exit()
        os.waitpid(child, 0)
        sender = _run.start("count", frame, options(1, address))
        for run in (started, sender):
            run.wait_for_the_end()
        print("parent", started.result().matches)
    """, address=free_address(), other=free_address(), receiver=pair.identities[0].path, sender=pair.identities[1].path)
    out, err = party.communicate(timeout=120)
    assert party.returncode == 0, err
    assert re.fullmatch(r"this run goes on in another process.*\nchild \[2\]\nparent 2\n", out), out


def test_what_progress_raises_in_the_end_takes_no_result(pair):
    def fail_once_over(doing):
        if doing.stage:
            time.sleep(1)
            over.append(doing)
            raise LookupError("enough")

    over = []
    with pytest.warns(RuntimeWarning, match="its progress could not be told: LookupError: enough"):
        started = []
        address = free_address()
        threads = [threading.Thread(target=lambda: started.append(
            veilset.count(OURS, key="k", **pair.options(1, address))))]
        threads[0].start()
        # The sets are small, so the run is over when its first stage is reported.
        from veilset import _run
        receiver = _run.start("count", OURS, {"key": "k", "progress": fail_once_over, **pair.options(0, address)})
        assert receiver._run.wait(30)
        receiver.wait_for_the_end()
    threads[0].join()
    assert receiver.result().matches == 3 and over


def test_a_warning_is_given_each_time_where_the_caller_is(pair):
    import warnings

    frames = [polars.DataFrame({"k": [str(i) for i in range(n)]}) for n in (3, 4, 5)]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for frame in frames:
            address = free_address()
            other = threading.Thread(target=veilset.count, args=(OURS,),
                                     kwargs={"key": "k", "audit_log": None, **pair.options(1, address)})
            other.start()
            veilset.count(frame, key="k", **pair.options(0, address))
            other.join()
    ours = [warning for warning in seen if "our set has changed" in str(warning.message)]
    assert len(ours) == 2 and all(warning.filename == __file__ for warning in ours), seen


def test_two_threads_with_one_half_use_it_once(pair, tmp_path):
    half = veilset.prepare(OURS, key="k", output=tmp_path / "half", identity=pair.identities[0])
    outcomes = []
    together = threading.Barrier(2)

    def one():
        address = free_address()
        theirs = threading.Thread(target=peer, args=(address,))
        theirs.start()
        together.wait()
        try:
            outcomes.append(veilset.count(OURS, key="k", prepared=half, **pair.options(0, address)))
        except veilset.Error as e:
            outcomes.append(e)
        theirs.join()

    def peer(address):
        try:
            veilset.count(OURS, key="k", **{**pair.options(1, address), "connect_timeout": 5})
        except veilset.Error:
            # This run was refused on our side.
            pass

    threads = [threading.Thread(target=one) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    results = [outcome for outcome in outcomes if isinstance(outcome, veilset.Result)]
    (error,) = [outcome for outcome in outcomes if isinstance(outcome, veilset.Error)]
    assert [result.matches for result in results] == [3]
    assert type(error) is veilset.InputError and str(half) in str(error), error
    assert not half.exists()


def test_two_threads_that_listen_at_one_address_are_told(pair):
    address = free_address()
    outcomes = []

    def one():
        try:
            outcomes.append(veilset.count(OURS, key="k", **pair.options(0, address)))
        except veilset.Error as e:
            outcomes.append(e)

    threads = [threading.Thread(target=one) for _ in range(2)]
    [thread.start() for thread in threads]
    while not outcomes:
        time.sleep(0.01)
    (error,) = outcomes
    assert error.exit_code == 2 and address in str(error) and "in use" in str(error), error
    # The other run is unharmed.
    veilset.count(OURS, key="k", **pair.options(1, address))
    [thread.join() for thread in threads]
    assert outcomes[1].matches == 3


def test_two_threads_that_read_one_stream_are_told(pair, listener):
    schema = pyarrow.schema([("k", pyarrow.string())])

    def batches():
        for i in range(40):
            time.sleep(0.01)
            yield pyarrow.record_batch({"k": [str(i)]}, schema=schema)

    reader = pyarrow.RecordBatchReader.from_batches(schema, batches())
    outcomes = []

    def one():
        with pytest.raises(veilset.Error) as raised:
            veilset.count(reader, key="k", **{**pair.options(1, listener.address), "connect_timeout": 1})
        outcomes.append(raised.value)

    threads = [threading.Thread(target=one) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    # The thread that has the reader continues with the rows that it got.
    assert any(isinstance(error, veilset.InputError) for error in outcomes), outcomes


def test_a_result_may_be_read_by_many_threads(pair):
    n = 3000
    frame = pyarrow.table({"k": [str(i) for i in range(n)], "n": range(n)})

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return frame.__arrow_c_stream__(requested_schema)

    receiver, _ = pair.both("intersect", (Stream(), {}), (frame, {}), {"key": "k"})
    sums = []

    def read():
        for _ in range(20):
            sums.append(sum(pyarrow.table(receiver.frame).column("n").to_pylist()))

    threads = [threading.Thread(target=read) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sums == [n * (n - 1) // 2] * 80


def test_columns_that_stay_are_not_copied(pair):
    party = process("""
        import resource, sys, threading, numpy, pyarrow, veilset
        _, address, *identities = sys.argv
        us = [veilset.Identity.load(path) for path in identities]
        n, width = 1 << 14, 1 << 14
        # Touched, or the pages would not be there.
        wide = pyarrow.FixedSizeBinaryArray.from_buffers(pyarrow.binary(width), n, [None, pyarrow.py_buffer(
            numpy.ones(n * width, dtype=numpy.uint8))])
        frame = pyarrow.table({"k": [str(i) for i in range(n)], "wide": wide})
        theirs = pyarrow.table({"k": ["7", "x"]})
        def run(party):
            results[party] = veilset.intersect((frame, theirs)[party], key="k", role=("receiver", "sender")[party],
                peer=us[1 - party].fingerprint, identity=us[party], audit_log=None, threads=1, protocol="vole",
                **{("listen", "connect")[party]: address})
        results = [None, None]
        held = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        before = held()
        threads = [threading.Thread(target=run, args=(party,)) for party in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert results[0].frame.column("k").to_pylist() == ["7"] and len(results[0].frame.column("wide")[0].as_py()) == width
        print(before, held() - before)
    """, address=free_address(), receiver=pair.identities[0].path, sender=pair.identities[1].path)
    out, err = party.communicate(timeout=120)
    assert party.returncode == 0, err
    before, more = map(int, out.split())
    # The column has 256 MiB.
    assert before > 256 and more < 64, out
