package runrelay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relayclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return l
}

// site writes a site's files and returns its folder and the authority's certificate.
func site(t *testing.T) (dir string, roots *x509.CertPool) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "site")
	must(t, devca.Write(devca.Config{Dir: dir, Publishers: 1, Lifetime: time.Hour, Now: time.Now()}))
	text, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	must(t, err)
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return dir, roots
}

// TestRelayOverTLS: a relay with a certificate and a token serves its broker's records and takes reports, says how it is,
// and leaves nothing when it ends.
func TestRelayOverTLS(t *testing.T) {
	const task, token = stream.Task("churn"), "token-of-the-relay"
	e, err := embedded.Start(embedded.Config{Listen: "127.0.0.1:0", StoreDir: t.TempDir()})
	must(t, err)
	defer e.Shutdown()
	operator, err := e.Connect(natsjs.ConnectConfig{})
	must(t, err)
	defer operator.Close()
	must(t, natsadmin.Provision(t.Context(), operator, task, natsadmin.Options{}))
	_, err = operator.PutOnce(t.Context(), task.Task(), []byte("a task"))
	must(t, err)
	dir, roots := site(t)
	access, err := httpaccess.Token(token)
	must(t, err)
	c := Config{HTTP: listen(t), Metrics: listen(t), Cert: filepath.Join(dir, "relay-http.pem"),
		Key:    filepath.Join(dir, "relay-http-key.pem"),
		Broker: run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: e.URL()}},
		Relay:  relay.Config{Access: access, Logger: slog.New(slog.DiscardHandler)}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()
	client, err := relayclient.New(relayclient.Config{URL: "https://" + c.HTTP.Addr().String(), Token: token,
		TLS: &tls.Config{RootCAs: roots}})
	must(t, err)
	wakes, err := client.Watch(ctx, task)
	must(t, err)
	if w, ok := <-wakes; !ok || w.Subject != "" {
		t.Errorf("the first wake: %+v", w)
	}
	if m, err := client.Get(ctx, task.Task()); err != nil || string(m.Data) != "a task" {
		t.Errorf("get: %+v, %v", m, err)
	}
	stranger, err := relayclient.New(relayclient.Config{URL: "https://" + c.HTTP.Addr().String(),
		TLS: &tls.Config{RootCAs: roots}})
	must(t, err)
	if _, err := stranger.Get(ctx, task.Task()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without the token: %v", err)
	}
	stranger.Close()
	for path, want := range map[string]string{"/readyz": "ok", "/healthz": "ok",
		"/metrics": `panlearn_relay_refused_requests_total{reason="401"} 1`} {
		r, err := http.Get("http://" + c.Metrics.Addr().String() + path)
		must(t, err)
		text, err := io.ReadAll(r.Body)
		must(t, err)
		r.Body.Close()
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not have %q", path, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	client.Close()
}

// TestWhereARelayListens: what other machines reach wants TLS and a token.
func TestWhereARelayListens(t *testing.T) {
	access, err := httpaccess.Token("token-of-the-relay")
	must(t, err)
	open, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	defer open.Close()
	local := listen(t)
	defer local.Close()
	for _, c := range []struct {
		config Config
		says   string
	}{
		{Config{HTTP: local}, ""},
		{Config{HTTP: local, Relay: relay.Config{Access: access}}, ""},
		{Config{HTTP: open, Relay: relay.Config{Access: access}, Cert: "a", Key: "b"}, ""},
		{Config{HTTP: open, Relay: relay.Config{Access: access}}, "--http-cert"},
		{Config{HTTP: open, Cert: "a", Key: "b"}, "--http-token"},
		{Config{HTTP: local, Cert: "a"}, "go together"},
		{Config{HTTP: local, Relay: relay.Config{Origins: []string{"*"}}}, "origin"},
	} {
		if err := c.config.Validate(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.says)
		}
	}
}

// TestCertificateIsRenewed: a new certificate is served after a while, and one that cannot be read leaves the old one.
func TestCertificateIsRenewed(t *testing.T) {
	one, _ := site(t)
	two, _ := site(t)
	p := &pair{cert: filepath.Join(one, "relay-http.pem"), key: filepath.Join(one, "relay-http-key.pem")}
	first, err := p.get(nil)
	must(t, err)
	must(t, os.WriteFile(p.cert, []byte("half of it"), 0o600))
	p.read = time.Time{}
	if got, err := p.get(nil); err != nil || got != first {
		t.Errorf("halfway through a renewal: %v", err)
	}
	for _, name := range []string{"relay-http.pem", "relay-http-key.pem"} {
		text, err := os.ReadFile(filepath.Join(two, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(one, name), text, 0o600))
	}
	if got, _ := p.get(nil); got != first {
		t.Error("the files are read at every connection")
	}
	p.read = time.Time{}
	if got, err := p.get(nil); err != nil || got == first {
		t.Errorf("the new certificate is not served: %v", err)
	}
	if _, err := (&pair{cert: "/no/such/file", key: p.key}).get(nil); err == nil {
		t.Error("a certificate that is not there is served")
	}
}
