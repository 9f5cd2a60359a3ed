package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/obs"
)

// Listen listens for HTTP at the address that a flag names. A bare port, 9090 or :9090, is one of this machine's
// loopback address: what the endpoints say is for the operator, so all interfaces have to be asked for by name, as
// 0.0.0.0:9090. An address that is taken is worth trying again (exit code 75): who has it may be about to end.
func Listen(flag, address string) (net.Listener, error) {
	host, port := "", address
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return nil, Usagef("%s %q: want host:port, or a port of this machine", flag, address)
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, Usagef("%s %q: want host:port with a port from 0 to 65535", flag, address)
	}
	host = cmp.Or(host, "127.0.0.1")
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	switch {
	case taken(err):
		return nil,
			Transient(fmt.Errorf(
				"%s: %w: another process listens there, perhaps of another task: name another address, here or in %s",
				flag, err, variable(strings.TrimPrefix(flag, "--"))))
	case err != nil:
		return nil, Usagef("%s: %w", flag, err)
	}
	return listener, nil
}

// wsaAddressInUse is Windows' EADDRINUSE.
const wsaAddressInUse = syscall.Errno(10048)

// taken reports whether another process listens at the address: a predecessor that still ends, or another
// task's process.
func taken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaAddressInUse)
}

// Profiles serves profiles of a command's time and memory; without an address it serves none.
type Profiles struct{ Address string }

// Flags adds the flag of the profiles.
func (p *Profiles) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&p.Address, "pprof", "",
		"loopback `ADDR` for profiles of this process, such as 6060; they hold stacks and sizes, and need no authentication")
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
