// Package databasesql is a shop that tells others what it commits, with nothing but database/sql: the outbox is in its database, and no
// package of ours in its program.
package databasesql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// Pay marks an order as paid and stages the fact, in one transaction: both are committed, or neither. It returns the message's id.
//
// The database is opened with _txlock=immediate (modernc.org/sqlite and mattn/go-sqlite3 know it), so that a transaction waits for another
// writer instead of failing at its first write.
func Pay(ctx context.Context, db *sql.DB, order int64) (message string, err error) {
	payload, err := json.Marshal(map[string]int64{"order": order})
	if err != nil {
		return "", err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }() // nothing, after a commit
	if _, err := tx.ExecContext(ctx, `UPDATE orders SET paid = 1 WHERE id = ?`, order); err != nil {
		return "", err
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO outbox_messages(type, payload) VALUES ('order-paid', ?) RETURNING id`, string(payload)).Scan(&message)
	if err != nil {
		return "", err
	}
	return message, tx.Commit()
}

// State returns how a message stands, for the shop's own screens: pending, processing, dispatched or dead-letter; empty when there is none.
func State(ctx context.Context, db *sql.DB, message string) (state string, err error) {
	err = db.QueryRowContext(ctx, `SELECT state FROM outbox_status WHERE tenant = 'main' AND id = ?`, message).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return state, err
}
