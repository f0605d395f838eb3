// Package live turns what was committed into notifications for open screens: the adapter between what the product does and package realtime,
// which knows nothing of it (P55).
package live
