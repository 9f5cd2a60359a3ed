package procs

import "syscall"

// attributes makes the kernel kill a process whose test died without its cleanup, and keeps a terminal's
// interrupt from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
