//go:build unix

package app

import (
	"io/fs"
	"os"
	"os/signal"
	"syscall"
)

// hardenProcess has every file that the process makes be its owner's alone.
func hardenProcess() { syscall.Umask(0o077) }

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// notifyReload sends on the channel when an operator asks for the records to be read again.
func notifyReload(to chan<- os.Signal) { signal.Notify(to, syscall.SIGHUP) }

var stopSignals = []os.Signal{syscall.SIGTERM, os.Interrupt}
