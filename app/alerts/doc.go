// Package alerts says when a delivery target is missed (P31). Its thresholds are setting records that use cases name beside their target; what
// is measured is the backlog, the store and the room on disk. An alert is raised when its threshold is breached for a while and cleared
// when the value stayed well below it for a while, so that one on the edge does not flutter.
//
// Whoever is to be told is told by a [Notifier], which shares nothing with the lanes that are watched: not their queue, not their breaker, and
// not the store, since a store that fails is one of the things to tell of. What it has to tell is held in memory. A restart forgets it, and
// finds what is still wrong again.
package alerts
