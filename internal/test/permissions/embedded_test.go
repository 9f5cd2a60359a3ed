package permissions

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestEmbeddedTLS: the listener of the embedded server takes who has a certificate; the process itself needs none.
func TestEmbeddedTLS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	if err := devca.Write(devca.Config{Dir: dir, Publishers: 1, Lifetime: time.Hour, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	config := embedded.Config{StoreDir: t.TempDir(), Listen: "127.0.0.1:0", TLSCert: at("server.pem"),
		TLSKey: at("server-key.pem"), TLSCA: at("ca.pem")}
	for what, change := range map[string]func(*embedded.Config){
		"a certificate without its key":  func(c *embedded.Config) { c.TLSKey = "" },
		"another's key":                  func(c *embedded.Config) { c.TLSKey = at("stage-key.pem") },
		"a file that is not there":       func(c *embedded.Config) { c.TLSCA = at("no.pem") },
		"no listener":                    func(c *embedded.Config) { c.Listen = "" },
		"an authority alone":             func(c *embedded.Config) { c.TLSCert, c.TLSKey = "", "" },
		"all interfaces, even with them": func(c *embedded.Config) { c.Listen = "0.0.0.0:0" },
	} {
		wrong := config
		wrong.StoreDir = t.TempDir()
		change(&wrong)
		if e, err := embedded.Start(wrong); err == nil {
			t.Errorf("%s: started", what)
			e.Shutdown()
		}
	}
	e, err := embedded.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	inside, err := e.Connect(natsjs.ConnectConfig{})
	if err != nil {
		t.Fatalf("inside the process: %v", err)
	}
	t.Cleanup(inside.Close)
	if err := natsadmin.Provision(t.Context(), inside, task, natsadmin.Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(e.URL(), "tls://") {
		t.Errorf("the listener is %s", e.URL())
	}
	login := natsjs.ConnectConfig{URL: e.URL(), TLSCA: at("ca.pem"), TLSCert: at("stage.pem"), TLSKey: at("stage-key.pem")}
	c, err := natsjs.Connect(login)
	if err != nil {
		t.Fatalf("with a certificate: %v", err)
	}
	t.Cleanup(c.Close)
	if err := natsadmin.Present(t.Context(), c, task); err != nil {
		t.Error(err)
	}
	login.TLSCert, login.TLSKey = "", ""
	if c, err := natsjs.Connect(login); err == nil {
		t.Error("connected without a certificate")
		c.Close()
	}
	login.URL, login.TLSCA = strings.Replace(e.URL(), "tls://", "nats://", 1), ""
	if c, err := natsjs.Connect(login); err == nil {
		t.Error("connected without TLS")
		c.Close()
	}
}
