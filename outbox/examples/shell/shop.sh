#!/bin/sh
# A shop that tells others what it commits, from a shell script. Source it, with SHOP_DB naming the database.

# sql runs statements of the standard input; it waits for other writers and ends at the first error.
sql() { sqlite3 -bail -cmd '.timeout 5000' "$SHOP_DB"; }

# pay marks an order as paid and stages the fact, in one transaction: both are committed, or neither. It prints the message's id.
pay() {
  sql <<SQL
BEGIN IMMEDIATE;
UPDATE orders SET paid = 1 WHERE id = $1;
INSERT INTO outbox_messages(type, payload) VALUES ('order-paid', json_object('order', $1)) RETURNING id;
COMMIT;
SQL
}

# state prints how a message stands: pending, processing, dispatched or dead-letter.
state() { echo "SELECT state FROM outbox_status WHERE tenant = 'main' AND id = '$1';" | sql; }
