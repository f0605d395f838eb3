// Package emits reads integration events as callers write them, and judges them by their records before anything is staged: the shape of
// the envelope, that the type and version are declared (P2), and that the payload keeps to the schema of its version.
//
// The payload's bytes are never read into numbers or objects and written again; what was given is what is staged (P7).
package emits
