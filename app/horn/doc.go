// Package horn holds the tests of the horn from end to end: the real program, a real browser, and what happens between them. A commit made
// elsewhere is seen on open screens without a reload; and whatever is cut, killed, repeated, reordered or revoked, every screen is right again
// by itself, where right means what the query answers.
//
// It needs Chromium, and fails without one.
package horn
