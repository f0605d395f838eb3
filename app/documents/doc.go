// Package documents keeps JSON documents for programs that bring no database of their own, and stages what they say happened: one
// transaction changes documents and emits integration events, together or not at all (P1).
//
// A document's body is kept byte for byte as it came: valid JSON in UTF-8, otherwise unread. Its version counts its changes from 1 and
// goes on counting over a deletion, so that no two contents ever had one version.
package documents
