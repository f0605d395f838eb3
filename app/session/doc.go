// Package session signs browsers in and out.
//
// A browser is let in by a one-time setup link, which the running program hands to whoever started it, or by an API token. It then holds a
// cookie that stands for a session: stored as a hash, so that it outlives a restart of the program; ended by log-out, by idleness, by age, by the
// revocation of the API token that opened it, or by another session of the same person.
package session
