// Package file delivers messages to a file, one JSON object a line:
//
//	{"id":"…","type":"order-placed","schema_version":1,"tenant":"main","occurred_at":"2026-07-01T12:00:00Z","attempt":1,"fence":7,
//	 "content_type":"application/json","payload":{"order":1001}}
//
// (on one line). A message is accepted when its line is in the file and the file is synced; deliveries that arrive together share one
// sync. Lines may repeat and, after a crash, a line may be torn: a reader skips what is no JSON and suppresses repeats by id.
// The next line after a torn one starts on a fresh line, always.
//
// # The payload's exact bytes
//
// The payload is the last member of the object, in one of two forms.
//
//   - "payload": the stored bytes as they are, when they are one valid JSON value in valid UTF-8 without a line break and without white
//     space around it. Nothing is re-encoded, so the exact bytes are those between the first `,"payload":` of the line — which no
//     string before it can hold, since a quote inside a string is escaped — and the object's closing brace; a JSON library that keeps
//     raw values (json.RawMessage) returns the same.
//   - "payload_base64": standard base64 of the stored bytes, for everything else: text, binary, indented JSON, an empty payload.
//
// # Where files may be
//
// A destination names a path, and tenants write destinations, so a path must lie inside a folder that the operator allows (files:
// {allow: [...]} in posthorn.yaml). Links that lead out of that folder are not followed, and a file that has
// another name, a hard link, is not written to. An allowed folder is never made, since an absent
// one may be a medium that is not mounted; folders below it are. Only .jsonl, .ndjson, .json, .log and .txt files are written, so
// that no path reaches a database.
//
// A file may be rotated by renaming it; the next delivery starts a new one.
package file
