//go:build !unix

package app

import (
	"io/fs"
	"os"
)

func hardenProcess() {}

func ownedByUs(fs.FileInfo) bool { return true }

func notifyReload(chan<- os.Signal) {}

var stopSignals = []os.Signal{os.Interrupt}
