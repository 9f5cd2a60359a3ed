package natsjs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

// An authority signs certificates of servers on this machine.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (a *authority) write(t *testing.T, name string, template *x509.Certificate) (cert, key string) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-24*time.Hour)
	by, byKey := a.cert, a.key
	if by == nil {
		by, byKey = template, own
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, own.Public(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert == nil {
		a.key = own
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+"-key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY",
		Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func newAuthority(t *testing.T) (*authority, string) {
	a := &authority{dir: t.TempDir()}
	ca, _ := a.write(t, "ca", &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign, NotAfter: time.Now().Add(1000 * time.Hour)})
	return a, ca
}

// server starts a server whose certificate ends so long from now, and returns its address.
func (a *authority) server(t *testing.T, name string, lasts time.Duration) (address string, end time.Time) {
	end = time.Now().Add(lasts).Truncate(time.Second).UTC()
	cert, key := a.write(t, name, &x509.Certificate{Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotAfter: end})
	e := start(t, embedded.Config{Listen: "127.0.0.1:0", TLSCert: cert, TLSKey: key})
	return at(t, e), end
}

// at returns the host:port of a server.
func at(t *testing.T, e *embedded.Server) string {
	t.Helper()
	u, err := url.Parse(e.URL())
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// TestEachServersCertificate: of three servers one has a certificate that lasts, one that ends within an hour, one
// that has ended. Whichever of them a process is connected to, it knows of all three; a server of another authority
// says nothing about ours, and one that is down is named.
func TestEachServersCertificate(t *testing.T) {
	ours, ca := newAuthority(t)
	theirs, _ := newAuthority(t)
	want := map[string]time.Time{}
	urls := ""
	for name, lasts := range map[string]time.Duration{"lasts": 900 * time.Hour, "ends": time.Hour, "ended": -time.Hour} {
		address, end := ours.server(t, name, lasts)
		want[address] = end
		urls += "tls://" + address + ","
	}
	strange, _ := theirs.server(t, "strange", time.Hour)
	plain := at(t, start(t, embedded.Config{Listen: "127.0.0.1:0"}))
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down.Close()
	urls += "tls://" + strange + ",nats://" + plain + ",tls://" + down.Addr().String()
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: urls, TLSCA: ca})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list := c.Certificates().Servers(t.Context())
	if len(list) != 6 {
		t.Errorf("%d servers of 6", len(list))
	}
	for _, one := range list {
		failed := one.Server == strange || one.Server == down.Addr().String()
		if !one.End.Equal(want[one.Server]) || failed != (one.Err != nil) {
			t.Errorf("%s: ends %v, want %v (%v)", one.Server, one.End, want[one.Server], one.Err)
		}
	}
	// Metrics do not wait for servers: the first scrape has them asked.
	c.Certificates().Known()
	c.Certificates().Learn()
	known := c.Certificates().Known()
	if len(known) != len(want) {
		t.Errorf("known: %v", known)
	}
	for server, end := range known {
		if !end.Equal(want[server]) {
			t.Errorf("%s: ends %v, want %v", server, end, want[server])
		}
	}
}
