"""What an application notices of Posthorn beside it, and whether anything is lost.

    python3 beside.py POSTHORN [--count 100000] [--rate 0] [--keys 100] [--to file|webhook] [--folder FOLDER]

It commits small transactions in turn, a few hundred at a time, to four databases. `plain` only changes a row of the application's. `own` writes its
event besides, to a table of its own with an index of what is unsent: what it would do without Posthorn. `staged` stages it, with nobody
who delivers; what `served` stages, `posthorn serve --db` delivers meanwhile. While the others are measured the server is stopped (SIGSTOP), so
that they are what the application would be without it, on the same machine at the same time. A rate bounds the transactions a second; 0 is as
fast as they go. At the end every message must have arrived, those of one key in order.
"""
import argparse
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser()
arguments.add_argument("posthorn")
arguments.add_argument("--count", type=int, default=100_000, help="messages to stage")
arguments.add_argument("--rate", type=float, default=0, help="transactions a second; 0: as fast as they go")
arguments.add_argument("--per", type=int, default=1, help="messages that a transaction stages")
arguments.add_argument("--keys", type=int, default=100)
arguments.add_argument("--concurrency", type=int, default=64, help="of the destination")
arguments.add_argument("--to", choices=["file", "webhook"], default="file")
arguments.add_argument("--turn", type=int, default=500, help="transactions in a turn")
arguments.add_argument("--folder", default=None, help="where the databases are made; a disk, no memory")
args = arguments.parse_args()

folder = pathlib.Path(tempfile.mkdtemp(prefix="posthorn-beside-", dir=args.folder))
posthorn = os.path.abspath(args.posthorn)


def database(name):
    db = sqlite3.connect(folder / f"{name}.db", timeout=30, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT NOT NULL, paid INTEGER NOT NULL DEFAULT 0)")
    return db


def run(*command):
    return subprocess.run([posthorn, *map(str, command)], check=True, capture_output=True, text=True).stdout


databases = {name: database(name) for name in ["plain", "own", "staged", "served"]}
databases["own"].executescript("""
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL UNIQUE, type TEXT NOT NULL, key TEXT NOT NULL, payload TEXT NOT NULL, sent_at TEXT);
CREATE INDEX events_unsent ON events(key, id) WHERE sent_at IS NULL;
""")
for name in ["staged", "served"]:
    run("install", "--db", folder / f"{name}.db", "--yes")
    run("records", "new", "integration-event", "order-paid", "--db", folder / f"{name}.db")
served, staged = folder / "served.db", folder / "staged.db"
(folder / "served.db.posthorn" / "posthorn.yaml").write_text('egress: {allow: ["127.0.0.0/8"]}\n')
arrived = folder / "served.db.posthorn" / "files" / "arrived.jsonl"
sink = None
if args.to == "file":
    run("destinations", "create", "till", "--db", served, "--kind", "file", "--file", "arrived.jsonl", "--concurrency", args.concurrency)
else:
    arrived = folder / "journal.jsonl"
    log = open(folder / "sink.log", "w")
    sink = subprocess.Popen([posthorn, "sink", "--listen", "127.0.0.1:7991", "--journal", arrived], stderr=log, stdout=subprocess.DEVNULL)
    run("destinations", "create", "till", "--db", served, "--url", "http://127.0.0.1:7991/", "--concurrency", args.concurrency)
run("destinations", "create", "till", "--db", staged, "--kind", "pull")
log = open(folder / "serve.log", "w")
server = subprocess.Popen([posthorn, "serve", "--db", served, "--listen", "127.0.0.1:0", "--ready-file", folder / "ready.json"], stderr=log)
while not (folder / "ready.json").exists():
    if server.poll() is not None:
        sys.exit((folder / "serve.log").read_text())
    time.sleep(0.01)

parts = ["whole", "begin", "statements", "commit"]
took = {name: {part: [] for part in parts} for name in databases}
insert = {
    "own": "INSERT INTO events(event, type, key, payload) VALUES (?, 'order-paid', ?, ?)",
    "staged": "INSERT INTO outbox_messages(id, type, ordering_key, payload) VALUES (?, 'order-paid', ?, ?)",
}
insert["served"] = insert["staged"]
number = {name: 0 for name in databases}


def transaction(name):
    """Commits one transaction and notes how long the application waited for it and for its parts."""
    db, n = databases[name], number[name]
    times = [time.perf_counter()]
    db.execute("BEGIN IMMEDIATE")
    times.append(time.perf_counter())
    db.execute("INSERT INTO orders(note, paid) VALUES (?, 1)", ("an order of some length, with a note",))
    if name in insert:
        db.executemany(insert[name], [(f"m-{m}", f"orders/{m % args.keys}", json.dumps({"order": m})) for m in range(n, n + args.per)])
    times.append(time.perf_counter())
    db.execute("COMMIT")
    times.append(time.perf_counter())
    took[name]["whole"].append(times[3] - times[0])
    for part, start, end in zip(parts[1:], times, times[1:]):
        took[name][part].append(end - start)
    number[name] = n + args.per
    if args.rate:
        time.sleep(max(0, 1 / args.rate - (time.perf_counter() - times[0])))


def of(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


def unfinished():
    return databases["served"].execute("SELECT count(*) FROM outbox_deliveries WHERE completed_at IS NULL").fetchone()[0]


turns, begun = 0, time.monotonic()
while number["served"] < args.count:
    if len(took["plain"]["whole"]) < 100_000:  # enough to compare with
        server.send_signal(signal.SIGSTOP)
        for name in ["plain", "own", "staged"]:
            for _ in range(args.turn):
                transaction(name)
        server.send_signal(signal.SIGCONT)
        time.sleep(0.05)  # what it was to do meanwhile it does at once
    for _ in range(min(args.turn, -(-(args.count - number["served"]) // args.per))):
        transaction("served")
    if (turns := turns + 1) % 20 == 0:
        print(f"\r{number['served']} staged, {unfinished()} to deliver", end="", file=sys.stderr, flush=True)
written = time.monotonic()
while (left := unfinished()) > 0:
    print(f"\r{number['served']} staged, {left} to deliver   ", end="", file=sys.stderr, flush=True)
    time.sleep(0.5)
done = time.monotonic()
print(file=sys.stderr)
server.send_signal(signal.SIGINT)
server.wait()
if sink:
    sink.send_signal(signal.SIGINT)
    sink.wait()

seen, last, disordered, repeated = set(), {}, 0, 0
for line in open(arrived, "rb"):
    entry = json.loads(line)
    name = entry.get("id")
    if not name or not name.startswith("m-"):
        continue
    n = int(name[2:])
    if n in seen:
        repeated += 1
        continue
    seen.add(n)
    key = n % args.keys
    disordered += n < last.get(key, -1)
    last[key] = n
lost = number["served"] - len(seen)

print(f"{number['served']} messages staged in {written - begun:.0f} s, the last delivered {done - written:.0f} s later; lost {lost}, repeated {repeated}, out of order {disordered}")
print(f"{'':10}{'':12}" + "".join(f"{q:>10}" for q in ["p50", "p90", "p99", "p99.9", "worst"]) + "   ms that the application waited")
for part in parts:
    for name in took:
        print(f"{part:12}{name:10}" + "".join(f"{of(took[name][part], share):10.3f}" for share in [0.5, 0.9, 0.99, 0.999, 1]))
for part in ["whole", "commit"]:
    ratios = [f"{of(took['served'][part], 0.99) / of(took[name][part], 0.99):.2f}× of {name}" for name in ["plain", "own", "staged"]]
    print(f"p99 of served, {part}: {', '.join(ratios)}")
for path in folder.glob("*.db*"):
    if path.is_file():
        path.unlink()
sys.exit(1 if lost or disordered else 0)
