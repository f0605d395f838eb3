// Package access says who a caller is and what they may do: principals, roles, API tokens, and the owner of a unix socket's other end.
//
// A [Principal] is established where a request enters, by an API token ([Tokens.Verify]) or by the kernel's word for the user at the
// other end of the unix socket ([PeerPrincipal]), and travels in the context ([With], [From]). What needs it asks [Require].
//
// An API token is 256 random bits, shown once; only its SHA-256 is stored. A hash without salt is enough, since nobody can guess such a
// token, and it lets a token be found by an index. Verified tokens are kept in memory, so that a request costs no query; a revocation
// empties that memory before it is acknowledged. What somebody changes in the store by hand is believed within a minute.
//
// Every principal belongs to one tenant. The machine's own user (an actor "os:…") is the one who may act for another.
package access
