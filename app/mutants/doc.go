// Package mutants changes the program's own source on its way to the compiler, and nowhere else: for builds that are wrong in one place, which
// the tests have to notice, and for builds as an older release was.
package mutants
