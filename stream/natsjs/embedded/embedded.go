// Package embedded runs a JetStream server of NATS inside the process. It is the only package that links nats-server.
//
// Steps: [Start], [Server.Connect] as often as needed, and when those connections are closed [Server.Shutdown].
package embedded

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// Defaults of Config.
const (
	defaultMaxMemory = 256 << 20
	defaultMaxStore  = 4 << 30
)

const (
	startTimeout = 30 * time.Second
	tlsTimeout   = 10 * time.Second // of a handshake
)

// Config configures a JetStream server inside the process.
type Config struct {
	// StoreDir is the folder of the streams. The server does not lock it: the caller holds a lock that keeps other
	// processes out. Required.
	StoreDir string
	// Listen is host:port of a loopback listener, port 0 for a free one. Empty: connections inside the process only.
	// There are no accounts, so other addresses are refused; every local user can reach a loopback listener.
	Listen string
	// TLSCert and TLSKey are files of the listener's certificate and its key; empty: no TLS. With TLSCA, the file of an
	// authority, clients need a certificate of it, so that not every local user gets in.
	TLSCert, TLSKey, TLSCA string

	MaxMemory int64 // bytes of memory streams; 0: 256 MiB
	MaxStore  int64 // bytes of file streams; 0: 4 GiB
	// SyncAlways syncs every write to disk before it is acknowledged. Without it a power loss takes acknowledged
	// rounds and batches, and with them the guarantee that a round is released once: for simulations only.
	SyncAlways bool
	Log        *slog.Logger // nil: discard
}

func (c *Config) options() (*server.Options, error) {
	if c.StoreDir == "" {
		return nil, errors.New("store dir: missing")
	}
	if c.MaxMemory < 0 || c.MaxStore < 0 {
		return nil, fmt.Errorf("max memory %d, max store %d: want no negative limit", c.MaxMemory, c.MaxStore)
	}
	o := &server.Options{
		ServerName: "panlearn", NoSigs: true, DontListen: c.Listen == "", DisableJetStreamBanner: true,
		JetStream: true, StoreDir: c.StoreDir, SyncAlways: c.SyncAlways,
		JetStreamMaxMemory: cmp.Or(c.MaxMemory, defaultMaxMemory), JetStreamMaxStore: cmp.Or(c.MaxStore, defaultMaxStore),
		MaxPayload: natsjs.DefaultMaxPayload,
	}
	if (c.TLSCert == "") != (c.TLSKey == "") || (c.TLSCert == "" && c.TLSCA != "") || (c.TLSCert != "" && c.Listen == "") {
		return nil, errors.New("tls: want the files of a certificate and of its key, and a listener that uses them")
	}
	if c.Listen == "" {
		return o, nil
	}
	if c.TLSCert != "" {
		config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: c.TLSCert, KeyFile: c.TLSKey, CaFile: c.TLSCA,
			Verify: c.TLSCA != ""})
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		config.MinVersion = tls.VersionTLS13
		o.TLS, o.TLSVerify, o.TLSConfig, o.TLSTimeout = true, c.TLSCA != "", config, tlsTimeout.Seconds()
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen %q: want host:port", c.Listen)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen %q: the embedded server has no accounts and listens on a loopback address only: "+
			"use 127.0.0.1, or run a nats-server and give its URL", c.Listen)
	}
	o.Host = host
	if o.Port, err = strconv.Atoi(port); err != nil || o.Port < 0 || o.Port > 65535 {
		return nil, fmt.Errorf("listen %q: want a port from 0 to 65535", c.Listen)
	}
	o.Port = cmp.Or(o.Port, server.RANDOM_PORT)
	return o, nil
}

// A Server is a JetStream server inside the process.
type Server struct {
	server *server.Server
	secure bool // the listener speaks TLS
	log    *slog.Logger
}

// Start starts a server and returns when it takes connections. It installs no signal handlers and writes to
// the given log only.
func Start(c Config) (*Server, error) {
	o, err := c.options()
	if err != nil {
		return nil, &natsjs.ConfigError{Err: fmt.Errorf("embedded server: %w", err)}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	e := &Server{server: s, secure: o.TLS, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler))}
	l := &serverLog{log: e.log}
	s.SetLoggerV2(l, false, false, false)
	s.Start()
	ready := false
	for end := time.Now().Add(startTimeout); !ready && l.fatal() == "" && time.Now().Before(end); {
		ready = s.ReadyForConnections(50 * time.Millisecond)
	}
	if fatal := l.fatal(); fatal != "" || !ready || !s.JetStreamEnabled() {
		e.Shutdown()
		return nil, fmt.Errorf("embedded server in %s did not start: %s", c.StoreDir, cmp.Or(fatal, "not ready within "+
			startTimeout.String()))
	}
	return e, nil
}

// URL returns the listener's address for Connect; empty without one.
func (e *Server) URL() string {
	if a, ok := e.server.Addr().(*net.TCPAddr); ok && a != nil {
		if e.secure {
			return "tls://" + a.String()
		}
		return "nats://" + a.String()
	}
	return ""
}

// Connect connects inside the process; the URL and credentials of the config are not used.
func (e *Server) Connect(c natsjs.ConnectConfig) (*natsjs.Conn, error) {
	return natsjs.ConnectInProcess(c, e.server)
}

// Shutdown stops the server and waits until its streams are closed on disk. It may be called again.
func (e *Server) Shutdown() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// ErrLatched means that an embedded server could not write a stream, and refuses writes until it is started again.
var ErrLatched = errors.New("the embedded broker cannot write, and refuses writes until it is started again")

// Failed returns an ErrLatched with its cause once the server could not write a stream, or has disabled JetStream; nil
// while it works. It uses nats-server's health check, which looks at each stream.
func (e *Server) Failed() error {
	if !e.server.Running() {
		return nil // it was shut down
	}
	for _, one := range e.server.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if one.Type == server.HealthzErrorJetStream || strings.Contains(one.Error, "write error") {
			return fmt.Errorf("%w: %s", ErrLatched, one.Error)
		}
	}
	return nil
}

// Clients counts the connections of the server, ours inside the process included.
func (e *Server) Clients() int { return e.server.NumClients() }

// serverLog hands the server's log lines to slog. The server's own logger exits the process on Fatalf; this one
// remembers the line for Start.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	first string // line of Fatalf
}

func (l *serverLog) line(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, fmt.Sprintf(format, v...), "from", "nats-server")
	}
}

func (l *serverLog) Noticef(format string, v ...any) { l.line(slog.LevelInfo, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.line(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.line(slog.LevelError, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.line(slog.LevelDebug, format, v) }

// Tracef drops protocol traces: they would carry payloads.
func (l *serverLog) Tracef(string, ...any) {}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.line(slog.LevelError, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == "" {
		l.first = fmt.Sprintf(format, v...)
	}
}

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}
