package permissions

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestEmbeddedTLS: the listener of the embedded server takes who has a certificate; the process itself needs none.
func TestEmbeddedTLS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	if err := devca.Write(devca.Config{Dir: dir, Publishers: 1, Lifetime: time.Hour, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	config := natsjs.EmbeddedConfig{StoreDir: t.TempDir(), Listen: "127.0.0.1:0", TLSCert: at("server.pem"),
		TLSKey: at("server-key.pem"), TLSCA: at("ca.pem")}
	for what, change := range map[string]func(*natsjs.EmbeddedConfig){
		"a certificate without its key":  func(c *natsjs.EmbeddedConfig) { c.TLSKey = "" },
		"another's key":                  func(c *natsjs.EmbeddedConfig) { c.TLSKey = at("stage-key.pem") },
		"a file that is not there":       func(c *natsjs.EmbeddedConfig) { c.TLSCA = at("no.pem") },
		"no listener":                    func(c *natsjs.EmbeddedConfig) { c.Listen = "" },
		"an authority alone":             func(c *natsjs.EmbeddedConfig) { c.TLSCert, c.TLSKey = "", "" },
		"all interfaces, even with them": func(c *natsjs.EmbeddedConfig) { c.Listen = "0.0.0.0:0" },
	} {
		wrong := config
		wrong.StoreDir = t.TempDir()
		change(&wrong)
		if e, err := natsjs.StartEmbedded(wrong); err == nil {
			t.Errorf("%s: started", what)
			e.Shutdown()
		}
	}
	e, err := natsjs.StartEmbedded(config)
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
