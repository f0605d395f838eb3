// Package outbox delivers what a program commits.
//
// A program stages a message in the transaction that changes its data. If that transaction commits, every handler that a route names
// receives the message at least once, whatever crashes; if it rolls back, nobody ever sees it.
//
//	err := writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
//		if _, err := tx.ExecContext(ctx, `UPDATE orders SET paid = 1 WHERE id = ?`, id); err != nil {
//			return err
//		}
//		_, err := outbox.Stage(ctx, tx, outbox.Message{Type: "order-paid", Payload: payload})
//		return err
//	})
//
// # What it guarantees
//
//   - A message and the change that it tells of share one commit (P1, P6, P11).
//   - Every handler has its own delivery, with its own attempts and dead letter (P20).
//   - The id and the bytes of a message are the same on every attempt (P33).
//   - A delivery is dispatched only after its target accepted the message, under the lease and the fence of that attempt (P16, P21).
//   - An attempt is counted in the database before the handler is called.
//   - An InTx handler takes effect exactly once; an Outside handler at least once, and its target suppresses repeats by message id.
//
// # What it asks for
//
//   - SQLite in WAL mode with synchronous=FULL, opened by the caller; this package opens no file.
//   - One delivering process for each database file. Others may stage.
//   - Commands and InTx handlers that do nothing but their own SQL: the writer may run one twice before it answers.
//   - A lock, where another program might deliver too: posthorn serve takes flock on the database's name with .posthorn.lock behind it.
//
// The programs in examples/library are built against this package from a module of their own; the other examples stage from other languages.
//
// # Stability
//
// From version 1.0 of the module on, what is exported here changes only by addition, the database contract only by numbered migrations, which
// [Install] carries out, and a stored class or state keeps its name and meaning. Before it, the changelog names what breaks.
package outbox
