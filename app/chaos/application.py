"""An application beside Posthorn, as the proof of app/chaos needs one: orders and their messages, each in one transaction of its own.

    python3 application.py DATABASE JOURNAL SEED create|resolve|run

It uses the standard library only. Its journal has a line before each transaction and one after it; it is written without a buffer, so that
a kill loses none. `resolve`, and the beginning of `run`, finds out what became of a transaction that a kill interrupted: its order is there, or not.
"""
import hashlib
import json
import os
import random
import sqlite3
import sys
import time

database, journal_path, seed, mode = sys.argv[1:5]
journal = os.open(journal_path, os.O_WRONLY | os.O_APPEND)
# Ten seconds, since the proof may share the machine; a wait for the lock that ends in an error is told as one.
connection = sqlite3.connect(database, timeout=10, isolation_level=None)


def note(**fields):
    os.write(journal, json.dumps(fields).encode() + b"\n")


if mode == "create":
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE orders (id TEXT NOT NULL, tenant TEXT NOT NULL, items INTEGER NOT NULL, PRIMARY KEY (tenant, id))")
    sys.exit()

begun, number = {}, 0
with open(journal_path, "rb") as lines:
    for line in lines:
        if not line.endswith(b"\n"):
            break
        entry = json.loads(line)
        if entry["what"] == "begin":
            begun[entry["key"]], number = entry["tenant"], entry["number"]
        else:
            begun.pop(entry["key"], None)
for key, tenant in begun.items():
    there = connection.execute("SELECT 1 FROM orders WHERE tenant = ? AND id = ?", (tenant, key)).fetchone()
    note(what="committed" if there else "rolled back", key=key, resolved=True)
if mode == "resolve":
    sys.exit()

chance = random.Random("%s %d" % (seed, number))
while True:
    number += 1
    # The other tenant's messages have the ids of the first one's before them.
    tenant, ids = ("other", number - 1) if number % 5 == 0 else ("main", number)
    key, ordering = "p-%d" % number, "key %s.%d" % (tenant, chance.randrange(3)) if number % 4 else None
    messages = []
    for i in range(1 if number % 5 < 3 else chance.randint(2, 5)):
        kind = "doom-sealed" if tenant == "main" and ordering is None and number % 16 == 0 else "order-placed"
        payload = '{"tenant": "%s", "n":%d.%d,"big":12345678901234567890123, "text":"\\u00e4\\/ä","fill":"%s" }' % (tenant, number, i, "x" * chance.randrange(400))
        messages.append((kind, "p-%d-%d" % (ids, i), tenant, ordering, payload if i % 2 else payload.encode()))
    note(what="begin", key=key, tenant=tenant, number=number, messages=[
        {"type": kind, "id": name, "ordering_key": order, "sha256": hashlib.sha256(payload if isinstance(payload, bytes) else payload.encode()).hexdigest()}
        for kind, name, _, order, payload in messages])
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO orders(id, tenant, items) VALUES (?, ?, ?)", (key, tenant, len(messages)))
        for message in messages:
            connection.execute("INSERT INTO outbox_messages(type, id, tenant, ordering_key, payload) VALUES (?, ?, ?, ?, ?)", message)
        if number % 7 == 0:
            connection.execute("ROLLBACK")
            note(what="rolled back", key=key)
        else:
            connection.execute("COMMIT")
            note(what="committed", key=key)
    except sqlite3.Error as err:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        there = connection.execute("SELECT 1 FROM orders WHERE tenant = ? AND id = ?", (tenant, key)).fetchone()
        note(what="committed" if there else "rolled back", key=key, error=str(err))
    time.sleep(chance.random() * 0.02)
