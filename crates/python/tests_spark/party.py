"""One company: a Spark cluster of its own on this machine, and its side of a job. Reads a JSON object, and prints one."""

import json
import os
import sys

import pyspark
import veilset
from pyspark.sql import SparkSession
from veilset import spark as on_spark


def main() -> None:
    given = json.loads(sys.argv[1])
    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    spark = (
        SparkSession.builder.master(given["master"])
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    if "sql" in given:
        table = spark.sql(given["sql"]).repartition(3)
    else:
        first, last = given["keys"]
        table = spark.createDataFrame([(f"k{i}", i * i) for i in range(first, last)], "k string, n long").repartition(3)
    if given.get("twice"):
        table = table.union(table)
    options = {name: value for name, value in given["options"].items()}
    options["identity"] = veilset.Identity.load(options["identity"])
    try:
        result = getattr(on_spark, given["operation"])(table, key="k", **options)
    except Exception as e:
        print(json.dumps({"error": f"{type(e).__name__}: {e}"}))
        return
    rows = None if result.frame is None else [list(row) for row in result.frame.collect()]
    columns = None if result.frame is None else result.frame.columns
    ours = None if "sql" not in given else [list(row) for row in table.collect()]
    types = None if result.frame is None else [kind for _, kind in result.frame.dtypes]
    outcome = {"rows": rows, "ours": ours, "columns": columns, "types": types, "matches": result.matches, "learned": result.learned}
    print(json.dumps(outcome, default=repr))


if __name__ == "__main__":
    main()
