#!/usr/bin/env python3
"""Our side of an intersection, on the rows of a query where they lie: no file of them is written in between.

    databases.py duckdb sales.duckdb "select email, plan from customers" --key email ...
    databases.py sqlite sales.sqlite "select email, plan from customers" --key email ...
    databases.py postgres postgresql://user@host/sales "select email, plan from customers" --key email ...
    databases.py excel sales.xlsx Customers --key email ...

What follows says who takes part, for instance `--role receiver --peer hospital-b --listen 0.0.0.0:7000`. The rows that match
are printed as CSV. A query that fails, at whatever row, ends the program before the other party hears from us.

    pip install veilset duckdb                                    # for DuckDB
    pip install veilset adbc-driver-sqlite                        # for SQLite
    pip install veilset adbc-driver-postgresql                    # for Postgres
    pip install veilset polars fastexcel                          # for Excel, and to print
"""

import argparse
import contextlib
import sys

import veilset


@contextlib.contextmanager
def duckdb_rows(file, query):
    import duckdb

    # DuckDB reads Parquet, CSV and other databases by itself; `duckdb.sql(query)` needs no file.
    with duckdb.connect(file, read_only=True) as connection:
        yield connection.query(query)


@contextlib.contextmanager
def sqlite_rows(file, query):
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(f"file:{file}?mode=ro") as connection, connection.cursor() as cursor:
        cursor.execute(query)
        # Batches, which are fetched while veilset reads them.
        yield cursor.fetch_arrow()


@contextlib.contextmanager
def postgres_rows(uri, query):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        yield cursor.fetch_arrow()


@contextlib.contextmanager
def excel_rows(file, sheet):
    import polars

    yield polars.read_excel(file, sheet_name=sheet, engine="calamine")


ROWS = {"duckdb": duckdb_rows, "sqlite": sqlite_rows, "postgres": postgres_rows, "excel": excel_rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=ROWS)
    parser.add_argument("source", help="the file, or the URI of the database")
    parser.add_argument("query", help="the query, or the name of the sheet")
    parser.add_argument("--key", required=True, action="append", help="a column to compare")
    parser.add_argument("--role", required=True, choices=["receiver", "sender"])
    parser.add_argument("--peer", required=True, help="the other party: its name in the address book, or its fingerprint")
    parser.add_argument("--listen", help="HOST:PORT of this machine, for the other party to connect to")
    parser.add_argument("--connect", help="HOST:PORT of the other party")
    parser.add_argument("--identity", help="our identity file, if it is not the default one")
    options = vars(parser.parse_args())
    rows = ROWS[options.pop("kind")](options.pop("source"), options.pop("query"))
    try:
        with rows as data:
            result = veilset.intersect(data, **options)
    except veilset.Error as e:
        print(e, file=sys.stderr)
        return e.exit_code
    print(result, file=sys.stderr)
    if result.frame is not None:
        import polars

        print(polars.DataFrame(result.frame).write_csv(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
