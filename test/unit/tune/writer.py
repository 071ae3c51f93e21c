"""A process that stores results until it is killed, and says of each when it is committed."""

import sys
from pathlib import Path

from prism.tune.database import Database
from prism.tune.records import LOCAL, Build, Key, Measurement, Result


def key(writer: str, number: int) -> Key:
    return Key("0" * 64, f"n={number}", "f16", "sm_80", writer, "test")


def result(writer: str, number: int) -> Result:
    text = f"graph of {writer} {number}" * 50
    return Result(key(writer, number), "g0", text, "1" * 64, {"warps": 4}, 1e-6, LOCAL, number)


def main() -> None:
    path, writer = sys.argv[1:]
    with Database(Path(path)) as database:
        number = 0
        while True:
            build = Build("2" * 64, "{}", "{}", {"a.ptx": b"x" * 5000, "a.cubin": bytes(3000)})
            database.put(result(writer, number), build)
            measurement = Measurement("g", "n=1", "f16", "sm_80", "sim", str(number), writer)
            database.put_measurement(measurement.with_outcome("ok", 1.0, "", number))
            print(number, flush=True)
            number += 1


if __name__ == "__main__":
    main()
