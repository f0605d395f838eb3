import json
import os
import pathlib
import re
import sqlite3
import time
import unittest

import shop

REFUSALS = json.loads((pathlib.Path(__file__).parent.parent / "refusals.json").read_text())
STAGE = "INSERT INTO outbox_messages(id, type, payload) VALUES (?, ?, ?)"


class ShopTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.db = shop.connect(os.environ["SHOP_DB"])
        with cls.db:
            for message in [
                ("text", "order-paid", '{"order": 1001, "note": "schön 📯"}'),
                ("bytes", "order-paid", bytes([0, 255, 254, 128, 127, 34, 13, 10])),
                ("nul", "order-paid", "a\0b"),
                ("empty", "order-paid", ""),
                ("no-bytes", "order-paid", b""),
                ("huge", "order-paid", "x" * (2 << 20)),
                ("no-json", "order-shipped", "on its way"),
                ("breaks", "order-shipped", '{"order": "1001"}'),
            ]:
                cls.db.execute(STAGE, message)

    @classmethod
    def tearDownClass(cls):
        cls.db.close()

    def wait(self, message, wanted):
        deadline = time.monotonic() + 120
        while (state := shop.state(self.db, message)) != wanted:
            self.assertLess(time.monotonic(), deadline, f"{message} is {state}, not {wanted}")
            time.sleep(0.05)

    def test_what_is_staged_is_delivered(self):
        for message in ["text", "bytes", "nul", "empty", "no-bytes", "huge"]:
            self.wait(message, "dispatched")

    def test_paying_tells_others(self):
        with self.db:
            self.db.execute("INSERT INTO orders(id) VALUES (1)")
        message = shop.pay(self.db, 1)
        self.wait(message, "dispatched")
        self.assertEqual(self.db.execute("SELECT paid FROM orders WHERE id = 1").fetchone(), (1,))

    def test_what_breaks_its_schema_is_given_up(self):
        for message in ["no-json", "breaks"]:
            self.wait(message, "dead-letter")
            (error,) = self.db.execute("SELECT last_error FROM outbox_status WHERE id = ?", (message,)).fetchone()
            self.assertRegex(error, "must be JSON|/order")

    def test_a_rollback_stages_nothing(self):
        with self.assertRaises(ZeroDivisionError), self.db:
            self.db.execute(STAGE, ("rolled-back", "order-paid", "{}"))
            1 / 0
        self.assertIsNone(shop.state(self.db, "rolled-back"))

    def test_refusals_say_what_to_do(self):
        for refusal in REFUSALS:
            with self.subTest(**refusal):
                with self.assertRaisesRegex(sqlite3.Error, re.escape(refusal["says"])), self.db:
                    self.db.execute(refusal["sql"])

    def test_a_refusal_leaves_the_transaction_to_the_program(self):
        with self.db:
            self.db.execute("INSERT INTO orders(id) VALUES (2)")
            with self.assertRaises(sqlite3.Error):
                self.db.execute(STAGE, ("refused", "order-lost", "{}"))
        self.assertEqual(self.db.execute("SELECT count(*) FROM orders WHERE id = 2").fetchone(), (1,))

    def test_values_of_the_wrong_type(self):
        for payload in [None, 7, 7.5]:
            with self.assertRaisesRegex(sqlite3.Error, r"posthorn\[bad-payload\]"):
                self.db.execute(STAGE, ("wrong", "order-paid", payload))
            self.db.rollback()


if __name__ == "__main__":
    unittest.main()
