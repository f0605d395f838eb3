// Package guest brings the outbox into a database that belongs to another program, and takes it away again.
//
// Guarantees:
//   - Nothing is changed before everything was looked at, and nothing but what the contract names is ever touched. Tables of the program's own that
//     bear one of those names are a refusal.
//   - Before the first change there is a copy of the database that was checked and is on the disk.
//   - A change is one transaction; a second run finds nothing to do.
//   - What the outbox could not work with is refused: another journal mode than WAL, UTF-16, a network share, a file that is encrypted or no database,
//     a newer contract.
package guest
