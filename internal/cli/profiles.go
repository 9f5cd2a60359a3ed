package cli

import (
	"context"
	"log/slog"
	"net"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/obs"
)

// Profiles is where a command shows how it spends time and memory: nowhere, unless asked.
type Profiles struct{ Address string }

// Flags adds the flag of the profiles.
func (p *Profiles) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&p.Address, "pprof", "", "loopback `ADDR` for profiles of this process, such as 6060; they are of stacks and sizes, without authentication")
}

// Serve serves the profiles, if the flag says so, until stop is called, which waits for the end.
func (p *Profiles) Serve(ctx context.Context, log *slog.Logger) (stop func(), err error) {
	if p.Address == "" {
		return func() {}, nil
	}
	listener, err := Listen("--pprof", p.Address)
	if err != nil {
		return nil, err
	}
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		listener.Close()
		return nil, Usagef("--pprof %q: want a loopback address, such as 127.0.0.1:6060: it has no authentication", p.Address)
	}
	log.Info("serving profiles", "pprof", "http://"+listener.Addr().String()+"/debug/pprof/heap")
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := obs.Serve(ctx, listener, obs.Profiles()); err != nil {
			log.Warn("profiles are not served any more", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}, nil
}
