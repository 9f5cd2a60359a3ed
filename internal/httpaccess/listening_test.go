package httpaccess

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/devca"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// site writes a site's files and returns its folder.
func site(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	must(t, devca.Write(devca.Config{Dir: dir, Publishers: 1, Lifetime: time.Hour, Now: time.Now()}))
	return dir
}

// TestWhereAnInterfaceListens: an interface that other machines reach needs TLS and a token.
func TestWhereAnInterfaceListens(t *testing.T) {
	access, err := Token("token-of-the-site")
	must(t, err)
	open, err := net.Listen("tcp", "0.0.0.0:0")
	must(t, err)
	defer open.Close()
	local, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer local.Close()
	for _, c := range []struct {
		at     Listening
		access Access
		says   string
	}{
		{Listening{HTTP: local}, Access{}, ""},
		{Listening{HTTP: local}, access, ""},
		{Listening{HTTP: open, Cert: "a", Key: "b"}, access, ""},
		{Listening{HTTP: open}, access, "--http-cert"},
		{Listening{HTTP: open, Cert: "a", Key: "b"}, Access{}, "--http-token"},
		{Listening{HTTP: local, Cert: "a"}, Access{}, "go together"},
	} {
		if err := c.at.Validate(c.access); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.at, err, c.says)
		}
	}
}

// TestCertificateIsRenewed: a new certificate is served after a while, and one that cannot be read leaves the old one.
func TestCertificateIsRenewed(t *testing.T) {
	one := site(t)
	two := site(t)
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
