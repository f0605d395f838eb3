// A shop that tells others what it commits. All that it needs is better-sqlite3 and the outbox in its database.
import Database from "better-sqlite3";

export const connect = (path) => new Database(path, { timeout: 5000, fileMustExist: true });

// pay marks an order as paid and stages the fact, in one transaction: both are committed, or neither. It returns the message's id.
export function pay(db, order) {
  return db.transaction(() => {
    db.prepare("UPDATE orders SET paid = 1 WHERE id = ?").run(order);
    return db
      .prepare("INSERT INTO outbox_messages(type, payload) VALUES (?, ?) RETURNING id")
      .get("order-paid", JSON.stringify({ order })).id;
  }).immediate();
}

// state returns how a message stands, for the shop's own screens: pending, processing, dispatched or dead-letter.
export const state = (db, message) =>
  db.prepare("SELECT state FROM outbox_status WHERE tenant = 'main' AND id = ?").get(message)?.state;
