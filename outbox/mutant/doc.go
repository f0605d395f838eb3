// Package mutant holds seeded bugs: each is one way to get durable delivery wrong, and the proof in app/chaos has to catch it.
//
// A normal build has none of them: they are constants, false, and the compiler leaves out what stands behind them. A build with the tag
// "mutants" has those that the environment variable POSTHORN_MUTANT names, and must never be used for anything but that proof.
package mutant
