//go:build !linux

package demo

import "syscall"

// attributes: elsewhere the kernel does not watch over the child.
func attributes() *syscall.SysProcAttr { return nil }
