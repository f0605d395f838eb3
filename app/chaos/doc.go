//go:build linux

// Chaos is the black-box proof of Posthorn's delivery: it runs the real binary, as another user and on a mount of its own where it may, drives
// it over HTTP, receives its webhooks itself, breaks what can be broken under it, and holds what it sees against a model that it keeps
// outside that mount.
//
//	go run ./app/chaos                 the profile `make chaos`, within ten minutes
//	go run ./app/chaos --profile long  `make chaos-long`
//	go run ./app/chaos --fault kill    one fault
//	go run ./app/chaos --mutants       each seeded bug against the faults that should catch it
//
// It is no part of the product's binary, imports none of its packages, and knows it only by its command line, its HTTP API and its schema.
//
// A cycle of a fault counts only when load ran and the fault fired. What a machine cannot do — mounts, tracing — is reported as not run, never
// as passed. It ends nothing but what it started, and listens on loopback only.
package main
