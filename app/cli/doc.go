// Package cli is the command line: one file a command.
//
// A command is a client of the HTTP API. It reaches a running process over the unix socket in the data folder, or with --server and an
// API token over TCP; when no process runs it opens the data folder itself, under the same lock that the process would hold, and
// speaks to the same handler in memory. So there is one way in, with one set of rules.
//
// Flags may stand anywhere in a command line: arrange moves them forward, since urfave/cli stops at the first argument. Results go to
// the standard output, as a table or with --json as one JSON value (one a line for streams); everything else goes to the standard
// error. Exit codes are those of Failure and of errors with an ExitCode method.
package cli
