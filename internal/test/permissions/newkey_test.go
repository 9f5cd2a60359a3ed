package permissions

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestNewKeyOfAUser follows docs/how-to/runbook.md on new keys: the server's configuration names the new one
// and is loaded again; the process with the old key is disconnected and keeps trying, a process with the new
// one goes on with the same streams, and no other user notices.
func TestNewKeyOfAUser(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "site"), filepath.Join(t.TempDir(), "other")
	for _, d := range []string{dir, other} {
		if err := devca.Write(devca.Config{Dir: d, Publishers: 1, Lifetime: time.Hour, Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	edit := func(name string, change func(string) string) {
		t.Helper()
		text, err := os.ReadFile(at(name))
		if err == nil {
			err = os.WriteFile(at(name), []byte(change(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ports, err := procs.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	edit("panlearn.conf", func(text string) string { return strings.Replace(text, "127.0.0.1:4222", address, 1) })
	o, err := server.ProcessConfigFile(at("panlearn.conf"))
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	connect := func(role, seed string) (*natsjs.Conn, error) {
		return natsjs.Connect(natsjs.ConnectConfig{URL: "nats://" + address, NKey: seed, TLSCA: at("ca.pem"),
			TLSCert: at(role + ".pem"), TLSKey: at(role + "-key.pem"),
			Reconnect: 50 * time.Millisecond})
	}
	must := func(role, seed string) *natsjs.Conn {
		t.Helper()
		c, err := connect(role, seed)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	administrator, device := must(admin, at("admin.nk")), must(publisher, at(publisher+".nk"))
	if err := natsadmin.Provision(t.Context(), administrator, task, natsadmin.Options{}); err != nil {
		t.Fatal(err)
	}
	old := must(stage, at("stage.nk"))
	first, err := old.Swap(t.Context(), task.Lease(), 0, []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(other, "stage.nk")
	if c, err := connect(stage, fresh); err == nil {
		c.Close()
		t.Fatal("a key that no configuration names is let in")
	}
	value := func(text, name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `: *(\S+)`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in site.conf", name)
		}
		return m[1]
	}
	theirs, err := os.ReadFile(filepath.Join(other, "site.conf"))
	if err != nil {
		t.Fatal(err)
	}
	edit("site.conf", func(text string) string {
		for _, name := range []string{"STAGE", "STAGE_INBOX"} {
			text = strings.Replace(text, value(text, name), value(string(theirs), name), 1)
		}
		return text
	})
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	renewed := must(stage, fresh)
	if _, err := renewed.Swap(t.Context(), task.Lease(), first, []byte("second")); err != nil {
		t.Errorf("the new key: %v", err)
	}
	gone := time.After(patience)
	for tick := time.Tick(10 * time.Millisecond); old.Connected(); {
		select {
		case <-tick:
		case <-gone:
			t.Fatal("the old key is still let in")
		}
	}
	if _, err := device.Get(t.Context(), task.Task()); !errors.Is(err, stream.ErrNotFound) || !device.Connected() {
		t.Errorf("another user: %v", err)
	}
}
