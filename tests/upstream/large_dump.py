"""A dump with as many providers and consumers as asked for, made of one by sqlite3 or mysqldump: its tables, classes and traits.

usage: large_dump.py DUMP PROVIDERS CONSUMERS > LARGE_DUMP
"""
import itertools
import re
import sys

TIME = "'2026-11-27 09:22:48',NULL"
CLASSES = range(3)
ROWS_IN_STATEMENT = 5000


def tables(providers: int, consumers: int) -> dict:
    """Yields the rows of each table, without their times. Every fourth provider is a child of the
    one before it."""
    hosts, claims = range(1, providers + 1), range(1, consumers + 1)

    def place(i: int) -> str:
        return f"{i - 1},{i - 1}" if i % 4 == 0 else f"{i},NULL"

    def consumer(i: int) -> str:
        return f"'{i:08x}-1111-4000-8000-000000000000'"

    return {
        "resource_providers": (f"{i},'{i:08x}-0000-4000-8000-000000000000','host-{i}',{i % 7},{place(i)}" for i in hosts),
        "inventories": (f"{i * 3 + c},{i},{c},{1000 + i % 90},{i % 5},1,1000,1,{1 + i % 16}.5" for i in hosts for c in CLASSES),
        "resource_provider_traits": (f"{trait},{i}" for i in hosts for trait in range(10 + i % 10, 40)),
        "resource_provider_aggregates": (f"{i},{1 + i % 2}" for i in hosts),
        "consumers": (f"{i},{consumer(i)},{i % 3 + 1},{i % 4 + 1},{i % 5},{('NULL', 1, 2)[i % 3]}" for i in claims),
        "allocations": (f"{i * 3 + c},{i % providers + 1},{consumer(i)},{c},{1 + i % 4}" for i in claims for c in CLASSES),
    }


def statements(table: str, rows):
    rows = iter(rows)
    while some := list(itertools.islice(rows, ROWS_IN_STATEMENT)):
        yield f"INSERT INTO {table} VALUES\n" + ",\n".join(f"({TIME},{row})" for row in some) + ";\n"


def main(dump: str, providers: str, consumers: str) -> None:
    with open(dump, encoding="utf-8", newline="") as file:
        text = file.read()
    rows = tables(int(providers), int(consumers))
    # Name of a table, as that dump quotes it, and its rows.
    inserts = re.compile(rf'INSERT INTO (["`]({"|".join(rows)})["`]) VALUES.*?\);\n', re.DOTALL)
    written = 0
    for insert in inserts.finditer(text):
        sys.stdout.write(text[written:insert.start()])
        written = insert.end()
        sys.stdout.writelines(statements(insert[1], rows.pop(insert[2], ())))
    sys.stdout.write(text[written:])


if __name__ == "__main__":
    main(*sys.argv[1:])
