package permissions

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// A serverLog keeps the lines about violations in a server's log.
type serverLog struct {
	mu         sync.Mutex
	violations []string
}

func (l *serverLog) note(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := fmt.Sprintf(format, v...); strings.Contains(text, "iolation") {
		l.violations = append(l.violations, text)
	}
}

func (l *serverLog) Noticef(format string, v ...any) { l.note(format, v...) }
func (l *serverLog) Warnf(format string, v ...any)   { l.note(format, v...) }
func (l *serverLog) Fatalf(format string, v ...any)  { l.note(format, v...) }
func (l *serverLog) Errorf(format string, v ...any)  { l.note(format, v...) }
func (l *serverLog) Debugf(string, ...any)           {}
func (l *serverLog) Tracef(string, ...any)           {}

// TestStartsAreQuiet: what a role asks at its start about the task's streams is no violation of its permissions in
// the server's log, where one means that somebody tries what he may not.
func TestStartsAreQuiet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	if err := devca.Write(devca.Config{Dir: dir, Publishers: 1, Lifetime: time.Hour, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(filepath.Join(dir, "panlearn.conf"))
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Port, o.StoreDir, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, t.TempDir(), true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	log := &serverLog{}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	as := func(role string) *natsjs.Conn {
		t.Helper()
		at := func(name string) string { return filepath.Join(dir, role+name) }
		c, err := natsjs.Connect(natsjs.ConnectConfig{URL: "nats://" + s.Addr().String(), NKey: at(".nk"),
			TLSCA:   filepath.Join(dir, "ca.pem"),
			TLSCert: at(".pem"), TLSKey: at("-key.pem")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	if err := natsadmin.Provision(t.Context(), as(admin), task, natsadmin.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{learner, stage, helper, publisher} {
		c := as(role)
		if role == learner { // which makes the streams where it may
			if err := natsadmin.Provision(t.Context(), c, task, natsadmin.Options{}); !errors.Is(err, natsjs.ErrDenied) {
				t.Errorf("%s may provision: %v", role, err)
			}
		}
		if err := natsadmin.WaitStreams(t.Context(), c, task, time.Second); err != nil {
			t.Errorf("%s: %v", role, err)
		}
		if !c.Permissions().Forbidden(t.Context(), "$JS.API.STREAM.CREATE.x") ||
			c.Permissions().Forbidden(t.Context(), "$JS.API.DIRECT.GET.PANLEARN_t_ROUNDS."+task.Task()) {
			t.Errorf("%s: does not know what it may", role)
		}
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.violations) > 0 {
		t.Errorf("%d violations:\n%s", len(log.violations), strings.Join(log.violations, "\n"))
	}
}
