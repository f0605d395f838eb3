package demo

import "syscall"

// attributes gives the child a process group of its own, so that Ctrl-C reaches the supervisor alone, which drains the child; and has the
// kernel stop the child in good order when the supervisor is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
