package devca

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	c := Config{Dir: dir, Hosts: []string{"broker.example", "192.0.2.7"}, Publishers: 2, Lifetime: 24 * time.Hour,
		Now: now}
	if err := Write(c); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, want nobody else to read it", path, info.Mode())
		}
		data, _ := os.ReadFile(path)
		if strings.Contains(string(data), "PRIVATE KEY") != strings.HasSuffix(path, "-key.pem") {
			t.Errorf("%s: a private key where none belongs, or none where one does", path)
		}
		files++
		return nil
	})
	if want := 1 + 5 + 3*2 + 4*7; err != nil ||
		files != want { // the folder; server and common files; relay, scorer and issuer over HTTP; four a role
		t.Errorf("%d entries, %v, want %d", files, err, want)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(read(t, dir, "ca.pem")) {
		t.Fatal("no authority")
	}
	server := certificate(t, dir, "server")
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "broker.example", "192.0.2.7"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now}); err != nil {
			t.Errorf("the server as %s: %v", host, err)
		}
	}
	if err := server.VerifyHostname("other.example"); err == nil {
		t.Error("the server's certificate is for any host")
	}
	for _, role := range []string{"admin", "learner", "stage", "helper", "relay", "publisher-1", "publisher-2"} {
		client := certificate(t, dir, role)
		usage := func(u x509.ExtKeyUsage, at time.Time) error {
			_, err := client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{u}, CurrentTime: at})
			return err
		}
		if err := usage(x509.ExtKeyUsageClientAuth, now); err != nil {
			t.Errorf("%s as a client: %v", role, err)
		}
		if usage(x509.ExtKeyUsageServerAuth, now) == nil || client.IsCA {
			t.Errorf("%s can serve or sign", role)
		}
		if usage(x509.ExtKeyUsageClientAuth, now.Add(25*time.Hour)) == nil || usage(x509.ExtKeyUsageClientAuth,
			now.Add(-time.Hour)) == nil {
			t.Errorf("%s: the certificate is valid outside of its lifetime", role)
		}
	}
}

// TestServersHaveAnAuthorityOfTheirOwn: no certificate that a user or the clients' port shows is one of the links.
func TestServersHaveAnAuthorityOfTheirOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	c := Config{Dir: dir, Servers: []string{"a.example", "b.example:7000", "c.example"}, Publishers: 2,
		Lifetime: time.Hour, Now: now}
	if err := Write(c); err != nil {
		t.Fatal(err)
	}
	pool := func(name string) *x509.CertPool {
		all := x509.NewCertPool()
		if !all.AppendCertsFromPEM(read(t, dir, name)) {
			t.Fatal("no authority in " + name)
		}
		return all
	}
	believed := func(roots *x509.CertPool, name string) bool {
		_, err := certificate(t, dir, name).Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err == nil
	}
	links := pool("server-1/route-ca.pem")
	for _, name := range []string{"admin", "learner", "stage", "publisher-1", "publisher-2", "server-1/server",
		"server-2/server", "server-3/server"} {
		if believed(links, name) || !believed(pool("ca.pem"), name) {
			t.Errorf("%s: believed on links %t, by clients %t", name, believed(links, name), believed(pool("ca.pem"), name))
		}
	}
	for i, host := range []string{"a.example", "b.example", "c.example"} {
		name := fmt.Sprintf("server-%d/route", i+1)
		if !believed(links, name) || believed(pool("ca.pem"), name) || certificate(t, dir, name).VerifyHostname(host) != nil {
			t.Errorf("%s is not a certificate of %s on links alone", name, host)
		}
	}
}

// TestNothingIsOverwritten: the second time, and where anything lies already.
func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	c := Config{Dir: dir, Publishers: 1, Lifetime: time.Hour, Now: now}
	if err := Write(c); err != nil {
		t.Fatal(err)
	}
	before := read(t, dir, "site.conf")
	if err := Write(c); err == nil {
		t.Error("written twice")
	}
	if string(before) != string(read(t, dir, "site.conf")) {
		t.Error("the second time has changed what the first wrote")
	}
	for what, change := range map[string]func(*Config){
		"no folder":          func(c *Config) { c.Dir = "" },
		"no publisher":       func(c *Config) { c.Publishers = 0 },
		"no lifetime":        func(c *Config) { c.Lifetime = 0 },
		"for ever":           func(c *Config) { c.Lifetime = Longest + 1 },
		"a host with a port": func(c *Config) { c.Hosts = []string{"broker:4222"} },
		"an empty host":      func(c *Config) { c.Hosts = []string{""} },
		"one server of many": func(c *Config) { c.Servers = []string{"a"} },
		"a server twice":     func(c *Config) { c.Servers = []string{"a", "a:6222"} },
		"a port of words":    func(c *Config) { c.Servers = []string{"a:b", "c"} },
		"a folder that would end the configuration's text": func(c *Config) { c.Dir = filepath.Join(dir, `x" y`) },
	} {
		c := Config{Dir: filepath.Join(t.TempDir(), "site"), Publishers: 1, Lifetime: time.Hour, Now: now}
		if change(&c); Write(c) == nil {
			t.Errorf("%s: written", what)
		}
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// certificate reads a certificate, whose key must be the one beside it.
func certificate(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(read(t, dir, name+".pem"), read(t, dir, name+"-key.pem")); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	block, _ := pem.Decode(read(t, dir, name+".pem"))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
