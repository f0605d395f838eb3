"""A shop that tells others what it commits. All that it needs is the sqlite3 module and the outbox in its database."""

import json
import sqlite3


def connect(path):
    return sqlite3.connect(path, timeout=5)


def pay(db, order):
    """Marks an order as paid and stages the fact, in one transaction: both are committed, or neither. Returns the message's id."""
    with db:  # commits, or rolls back when something raises
        db.execute("UPDATE orders SET paid = 1 WHERE id = ?", (order,))
        cursor = db.execute(
            "INSERT INTO outbox_messages(type, payload) VALUES (?, ?)",
            ("order-paid", json.dumps({"order": order})),
        )
        return db.execute("SELECT id FROM outbox_messages WHERE seq = ?", (cursor.lastrowid,)).fetchone()[0]


def state(db, message):
    """Returns how a message stands, for the shop's own screens: pending, processing, dispatched or dead-letter."""
    row = db.execute("SELECT state FROM outbox_status WHERE tenant = 'main' AND id = ?", (message,)).fetchone()
    return row[0] if row else None
