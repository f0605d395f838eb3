// Package destinations manages the handlers that somebody creates at run time: webhooks and files, each with routes, a lane and, for a
// webhook, signing secrets.
//
// A change passes the mediator. Its row, its routes, its hold and its audit row stand in one commit; the running lane follows by the
// dispatcher, whose registration is idempotent, so that a crash in between is healed by the next start ([Service.Restore]). A deletion
// leaves a marker in its commit, which stays until every delivery is settled as cancelled.
//
// A destination belongs to one tenant and its routes to that tenant's messages. Its name is its handler's, so names are unique across tenants.
//
// Secrets are sealed with XChaCha20-Poly1305 under a [Key] that lives in a file of its own beside the database, so that a copy of the database
// alone signs nothing. A secret is shown once, in the answer to its creation.
//
// A destination that cannot be built, because its address is no longer allowed or its secret cannot be opened, is held with the reason; the
// others start.
package destinations
