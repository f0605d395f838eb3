import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, pay, state } from "./shop.js";

const refusals = JSON.parse(readFileSync(new URL("../refusals.json", import.meta.url)));
const STAGE = "INSERT INTO outbox_messages(id, type, payload) VALUES (?, ?, ?)";
let db;

before(() => {
  db = connect(process.env.SHOP_DB);
  db.transaction(() => {
    for (const message of [
      ["text", "order-paid", '{"order": 1001, "note": "schön 📯"}'],
      ["bytes", "order-paid", Buffer.from([0, 255, 254, 128, 127, 34, 13, 10])],
      ["nul", "order-paid", "a\0b"],
      ["empty", "order-paid", ""],
      ["no-bytes", "order-paid", Buffer.alloc(0)],
      ["huge", "order-paid", "x".repeat(2 << 20)],
      ["no-json", "order-shipped", "on its way"],
      ["breaks", "order-shipped", '{"order": "1001"}'],
    ]) db.prepare(STAGE).run(...message);
  }).immediate();
});

after(() => db.close());

async function wait(message, wanted) {
  const deadline = Date.now() + 120_000;
  while (state(db, message) !== wanted) {
    assert.ok(Date.now() < deadline, `${message} is ${state(db, message)}, not ${wanted}`);
    await sleep(50);
  }
}

const refused = (says, work) => assert.throws(work, (err) => err.name === "SqliteError" && err.message.startsWith(says));

test("what is staged is delivered", async () => {
  for (const message of ["text", "bytes", "nul", "empty", "no-bytes", "huge"]) await wait(message, "dispatched");
});

test("paying tells others", async () => {
  db.prepare("INSERT INTO orders(id) VALUES (1)").run();
  await wait(pay(db, 1), "dispatched");
  assert.equal(db.prepare("SELECT paid FROM orders WHERE id = 1").get().paid, 1);
});

test("what breaks its schema is given up", async () => {
  for (const message of ["no-json", "breaks"]) {
    await wait(message, "dead-letter");
    assert.match(db.prepare("SELECT last_error FROM outbox_status WHERE id = ?").get(message).last_error, /must be JSON|\/order/);
  }
});

test("a rollback stages nothing", () => {
  const failing = db.transaction(() => {
    db.prepare(STAGE).run("rolled-back", "order-paid", "{}");
    throw new RangeError();
  });
  assert.throws(() => failing(), RangeError);
  assert.equal(state(db, "rolled-back"), undefined);
});

test("refusals say what to do", () => {
  for (const { sql, says } of refusals) refused(says, () => db.exec(sql));
});

test("values of the wrong type", () => {
  for (const payload of [null, 7, 7.5, 7n]) refused("posthorn[bad-payload]: ", () => db.prepare(STAGE).run("wrong", "order-paid", payload));
});
