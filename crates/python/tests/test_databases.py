"""The example of databases: queries of DuckDB, SQLite and a real Postgres, and a sheet of Excel."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import sqlite3
import subprocess
import sys
import threading

import adbc_driver_postgresql.dbapi as postgres
import duckdb
import openpyxl
import polars
import pytest
import veilset
from conftest import free_address
from postgres import server

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "databases.py"
ROWS = [("ann@a", 1), ("bob@b", 2), ("cy@c", 3)]
UNHAD = r"^the frame: the next rows could not be obtained\. What its library says"
QUERY = "select email, n from customers where n > 0"


@pytest.fixture(scope="module")
def database():
    with server() as uri:
        with postgres.connect(uri) as connection, connection.cursor() as cursor:
            cursor.execute("create table customers (email text, n integer)")
            cursor.executemany("insert into customers values ($1, $2)", [*ROWS, ("zoe@z", -1)])
            connection.commit()
        yield uri


def example():
    spec = importlib.util.spec_from_file_location("databases", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(kind, folder, database):
    """Returns the arguments of the example for this kind: a source and a query."""
    if kind == "postgres":
        return database, QUERY
    path = str(folder / f"customers.{kind}")
    if kind == "excel":
        book = openpyxl.Workbook()
        sheet = book.create_sheet("Customers")
        for row in [("email", "n"), *ROWS]:
            sheet.append(row)
        book.save(path + ".xlsx")
        return path + ".xlsx", "Customers"
    connection = (duckdb if kind == "duckdb" else sqlite3).connect(path)
    connection.execute("create table customers (email text, n integer)")
    connection.executemany("insert into customers values (?, ?)", [*ROWS, ("zoe@z", -1)])
    connection.commit()
    connection.close()
    return path, QUERY


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres", "excel"])
def test_the_example_runs_on_rows_where_they_lie(pair, tmp_path, database, kind):
    address = free_address()
    words = [sys.executable, str(EXAMPLE), kind, *made(kind, tmp_path, database), "--key=email", "--role=receiver",
             f"--listen={address}", f"--peer={pair.identities[1].fingerprint}", f"--identity={pair.identities[0].path}"]
    receiver = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # The other side is the same example as a module, with the rows of Postgres.
    other = "select email as mail from (values ('bob@b'), ('cy@c'), ('dan@d')) as t(email)"
    with example().postgres_rows(database, other) as rows:
        veilset.intersect(rows, key="mail", **pair.options(1, address))
    out, err = receiver.communicate(timeout=60)
    assert receiver.returncode == 0 and out == "email,n\nbob@b,2\ncy@c,3\n", err
    assert "Matches: 2" in err


@pytest.mark.parametrize("query, cell", [
    ("select 1 / (g - 500) as k from generate_series(1, 1000) g", "500"),
    ("select case when g < 90000 then g::text else (g::text || 'x')::int::text end as k"
     " from generate_series(1, 100000) g", "90000x"),
])
def test_a_query_that_fails_half_way_is_an_error_of_the_input(pair, database, listener, query, cell):
    with pytest.raises(veilset.InputError, match=UNHAD) as raised:
        with example().postgres_rows(database, query) as rows:
            veilset.count(rows, key="k", **pair.options(1, listener.address))
    # The message of Postgres contains a cell.
    assert cell not in str(raised.value) and raised.value.exit_code == 3
    assert not listener.heard()


def test_a_connection_that_is_dropped_is_an_error_of_the_input(pair, database, listener):
    slow = "select g::text as k, repeat('x', 100000) as wide, pg_sleep(0.01) from generate_series(1, 100000) g"

    def drop():
        with postgres.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(0.01)%'"
                           " and pid <> pg_backend_pid()")
            cursor.fetchall()

    timer = threading.Timer(1, drop)
    timer.start()
    with pytest.raises(veilset.InputError, match=UNHAD):
        with example().postgres_rows(database, slow) as rows:
            veilset.count(rows, key="k", **pair.options(1, listener.address))
    timer.join()
    assert not listener.heard()


def test_the_example_says_what_failed_and_exits_with_its_code(pair, database, listener):
    words = [sys.executable, str(EXAMPLE), "postgres", database, "select 1 / (g - 5) as k from generate_series(1, 9) g",
             "--key=k", "--role=sender", f"--connect={listener.address}", f"--peer={pair.identities[1].fingerprint}",
             f"--identity={pair.identities[0].path}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and re.match(UNHAD, done.stderr), done.stderr
    assert not listener.heard()


def test_types_of_a_database_keep_their_text(pair, database):
    query = ("select '00ab'::text as t, 12345678901::bigint as b, date '2024-01-31' as d, true as f,"
             " timestamptz '2024-01-31 12:00:00+01' as z")
    theirs = polars.DataFrame({"t": ["00ab"], "b": ["12345678901"], "d": ["2024-01-31"], "f": ["true"],
                               "z": ["2024-01-31T11:00:00Z"]})
    key = ["t", "b", "d", "f", "z"]
    with example().postgres_rows(database, query) as rows:
        receiver, _ = pair.both("intersect", (rows, {}), (theirs, {}), {"key": key})
    assert len(receiver.frame) == 1
