#!/bin/sh
set -eu
here=$(dirname "$0")
. "$here/shop.sh"

fail() { echo "FAIL: $*" >&2; exit 1; }

wait_for() {
  tries=0
  until [ "$(state "$1")" = "$2" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 1200 ] || fail "$1 is $(state "$1"), not $2"
    sleep 0.1
  done
}

sql <<'SQL'
BEGIN IMMEDIATE;
INSERT INTO outbox_messages(id, type, payload) VALUES
  ('text', 'order-paid', '{"order": 1001, "note": "schön 📯"}'),
  ('bytes', 'order-paid', x'00fffe807f220d0a'),
  ('nul', 'order-paid', CAST(x'610062' AS TEXT)),
  ('empty', 'order-paid', ''),
  ('no-bytes', 'order-paid', x''),
  ('huge', 'order-paid', printf('%.*c', 2097152, 'x')),
  ('no-json', 'order-shipped', 'on its way'),
  ('breaks', 'order-shipped', '{"order": "1001"}');
INSERT INTO orders(id) VALUES (1);
COMMIT;
SQL
paid=$(pay 1)
for message in text bytes nul empty no-bytes huge "$paid"; do wait_for "$message" dispatched; done
for message in no-json breaks; do
  wait_for "$message" dead-letter
  echo "SELECT last_error FROM outbox_status WHERE id = '$message';" | sql | grep -Eq 'must be JSON|/order' || fail "$message does not say why"
done

# A rollback stages nothing; nor does what comes before an error.
sql <<'SQL'
BEGIN IMMEDIATE;
INSERT INTO outbox_messages(id, type, payload) VALUES ('rolled-back', 'order-paid', '{}');
ROLLBACK;
SQL
[ -z "$(state rolled-back)" ] || fail "a rollback stages something"
if sql 2>/dev/null <<'SQL'
BEGIN IMMEDIATE;
INSERT INTO outbox_messages(id, type, payload) VALUES ('before-the-error', 'order-paid', '{}');
INSERT INTO outbox_messages(id, type, payload) VALUES ('refused', 'order-lost', '{}');
COMMIT;
SQL
then fail "an undeclared type is not refused"; fi
[ -z "$(state before-the-error)" ] || fail "an error stages something"

# Each refusal says what to do.
sqlite3 :memory: "SELECT json_extract(value, '\$.says') || '|' || json_extract(value, '\$.sql') FROM json_each(readfile('$here/../refusals.json'))" |
  while IFS='|' read -r says statement; do
    said=$(echo "$statement;" | sql 2>&1) && fail "not refused: $statement"
    case $said in *"$says"*) ;; *) fail "$statement: $said" ;; esac
  done
echo ok
