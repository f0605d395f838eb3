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

var version = "dev" // set by the linker

func main() {
	build := app.Build{Schema: schema, Version: version}
	os.Exit(app.Main(context.Background(), build, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
