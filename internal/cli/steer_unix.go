//go:build !windows

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

func notifySteer(to chan<- os.Signal) { signal.Notify(to, syscall.SIGUSR1) }
