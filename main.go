// Posthorn delivers what an application commits: durably to the outside world, and live to open screens.
package main

import (
	"context"
	_ "embed"
	"os"

	"github.com/posthorn/posthorn/app"
)

//go:embed schema.sql
var schema string

// Set by the linker.
var (
	version = "dev"
	built   = "" // when, as RFC 3339
)

func main() {
	build := app.Build{Schema: schema, Version: version, Built: built}
	os.Exit(app.Main(context.Background(), build, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
