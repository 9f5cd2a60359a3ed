package permissions

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// TestCertificatesAreRenewed: the next connection uses certificates, keys and an authority that were replaced
// on disk; only the server has to be restarted.
func TestCertificatesAreRenewed(t *testing.T) {
	dir, renewed, store := filepath.Join(t.TempDir(), "site"), filepath.Join(t.TempDir(), "renewed"), t.TempDir()
	now := time.Now().Truncate(time.Second)
	const first, second = time.Hour, 30 * 24 * time.Hour
	for d, lifetime := range map[string]time.Duration{dir: first, renewed: second} {
		// two authorities, neither of which trusts the other's certificates
		if err := devca.Write(devca.Config{Dir: d, Publishers: 1, Lifetime: lifetime, Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(port int) *server.Server {
		t.Helper()
		o, err := server.ProcessConfigFile(filepath.Join(dir, "panlearn.conf"))
		if err != nil {
			t.Fatal(err)
		}
		o.Host, o.Port, o.StoreDir, o.NoSigs, o.NoLog = "127.0.0.1", port, store, true, true
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(patience) {
			t.Fatal("the server does not start")
		}
		return s
	}
	s := serve(server.RANDOM_PORT)
	at := func(name string) string { return filepath.Join(dir, name) }
	again, warned := make(chan struct{}, 1), make(chan struct{}, 1)
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: "nats://" + s.Addr().String(), NKey: at("stage.nk"),
		TLSCA:   at("ca.pem"),
		TLSCert: at("stage.pem"), TLSKey: at("stage-key.pem"),
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(herald{"connected to the broker again", again},
			herald{"a certificate ends soon", warned}), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ends := func(own, server time.Duration) {
		t.Helper()
		e, err := c.Certificates().Expiry()
		if err != nil || !e.Own.Equal(now.Add(own)) || !e.Authority.Equal(now.Add(own)) || !e.Server.Equal(now.Add(server)) {
			t.Errorf("certificates end %v, %v; want own and authority %v, the server's %v", e, err, now.Add(own),
				now.Add(server))
		}
	}
	ends(first, first)
	select {
	case <-warned:
	default:
		t.Error("no warning of certificates that end within an hour")
	}
	for len(warned) > 0 {
		<-warned
	}
	port := s.Addr().(*net.TCPAddr).Port
	s.Shutdown()
	s.WaitForShutdown()
	for _, name := range []string{"ca.pem", "server.pem", "server-key.pem", "stage.pem", "stage-key.pem"} {
		if err := os.Rename(filepath.Join(renewed, name), at(name)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := c.Certificates().Expiry()
	if err != nil || !e.Own.Equal(now.Add(second)) {
		t.Errorf("what is on disk now ends %v (%v)", e.Own, err)
	}
	s = serve(port)
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	select {
	case <-again:
	case <-time.After(patience):
		t.Fatal("no connection with the renewed certificates")
	}
	ends(second, second)
	if len(warned) > 0 {
		t.Error("a warning of certificates that end in a month")
	}
	if err := os.Remove(at("stage.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Certificates().Expiry(); err == nil {
		t.Error("a certificate that is gone is not missed")
	}
}

// A herald waits for one line of the log.
type herald struct {
	line  string
	heard chan struct{}
}

func (h herald) Write(p []byte) (int, error) {
	if strings.Contains(string(p), h.line) {
		select {
		case h.heard <- struct{}{}:
		default:
		}
	}
	return len(p), nil
}
