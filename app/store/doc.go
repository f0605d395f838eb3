// Package store opens Posthorn's SQLite files, and only opens them as the product needs them.
//
// Guarantees:
//   - Every setting that durability or safety rests on is read back on every connection; a connection that lacks one is refused, since
//     SQLite ignores a pragma that it does not understand.
//   - All writes pass one outbox.Writer. Readers are query-only and no more than GOMAXPROCS, since more of them starve the writer. A third
//     connection keeps house: checkpoints, backup, vacuum.
//   - A file that is created here is for its owner alone (0600, its folder 0700), and it is on the disk, with its folder, before Open
//     answers.
//   - A file that was moved, removed or replaced while it is open is noticed: by Verify, and by each new connection.
//   - One process delivers for a file: it holds the Lock beside it.
//
// Caveat: nothing in the process may open the database files except through SQLite. Closing any descriptor of them drops the locks that
// SQLite holds. Look at them with os.Stat, and copy them with VACUUM INTO.
package store
