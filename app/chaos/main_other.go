//go:build !linux

// Chaos is the black-box proof of Posthorn's delivery. It breaks things by what Linux offers, and runs there only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "chaos: the proof runs on Linux only")
	os.Exit(2)
}
