package permissions

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// operated returns a server in operator mode of a site that learner site makes, and its folder.
func operated(t testing.TB) (*broker, *devca.Site) {
	t.Helper()
	return operatedWithLeaves(t, "")
}

// operatedWithLeaves is operated, with an address at which the server takes leaf nodes.
func operatedWithLeaves(t testing.TB, listen string) (*broker, *devca.Site) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	site, err := devca.InitSite(devca.Config{Dir: dir, LeafListen: listen, Lifetime: time.Hour, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{publisher, publisher2} {
		if err := site.AddPublisher(name, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return start(t, filepath.Join(dir, "server", "panlearn.conf"), func(role string) natsjs.ConnectConfig {
		return natsjs.ConnectConfig{Creds: filepath.Join(dir, "users", role+".creds"),
			TLSCA: filepath.Join(dir, "users", "ca.pem")}
	}), site
}

// TestRevoked: a publisher that is revoked loses the connection that it has, and gets no other; who is rotated comes
// with the new key alone; the others stay. A server that was away gets the claims later, and one that restarts has
// them.
func TestRevoked(t *testing.T) {
	b, site := operated(t)
	out, in, stays := b.raw(t, publisher), b.raw(t, publisher2), b.raw(t, relay)
	old := b.login(publisher2)
	kept := filepath.Join(t.TempDir(), "old.creds")
	text, err := os.ReadFile(old.Creds)
	if err == nil {
		err = os.WriteFile(kept, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	old.Creds = kept
	gone := b.login(publisher)
	gone.Creds = filepath.Join(t.TempDir(), "gone.creds")
	if text, err = os.ReadFile(b.login(publisher).Creds); err == nil {
		err = os.WriteFile(gone.Creds, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}

	now := time.Now().Add(2 * time.Second) // JWTs count in seconds, and these users are younger than one
	for _, err := range []error{site.Revoke(publisher, now), site.Rotate(publisher2, now)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	creds, ca := site.PusherCreds()
	pusher, err := natsjs.Connect(natsjs.ConnectConfig{URL: "nats://" + b.url, Creds: creds, TLSCA: ca,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pusher.Close)
	tokens, err := site.Claims()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if err := pusher.Admin().PushAccount(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*client{publisher: out, publisher2: in} {
		eventually(t, name+" loses its connection", func() bool { return !c.nc.IsConnected() })
	}
	if !stays.nc.IsConnected() {
		t.Error("the relay lost its connection")
	}
	for name, login := range map[string]natsjs.ConnectConfig{"the revoked publisher": gone,
		"the old key of the rotated one": old} {
		if c, err := natsjs.Connect(login); err == nil {
			c.Close()
			t.Errorf("%s is let in", name)
		}
	}
	c, err := natsjs.Connect(b.login(publisher2))
	if err != nil {
		t.Fatalf("the new key: %v", err)
	}
	c.Close()
	if err := site.AddPublisher("late", time.Now()); err != nil {
		t.Fatal(err)
	}
	if c, err = natsjs.Connect(b.login("late")); err != nil {
		t.Fatalf("a publisher that was added while the server runs: %v", err)
	}
	c.Close()
	if err := pusher.Admin().PushAccount(t.Context(), strings.Replace(tokens[0], ".", ".e30", 1)); err == nil {
		t.Error("claims that the operator did not sign are taken")
	}
}

// TestSiteRefuses: names that are no file's, users twice, roles that cannot be revoked, a folder that is no site.
func TestSiteRefuses(t *testing.T) {
	_, site := operated(t)
	now := time.Now()
	for name, err := range map[string]error{"a path": site.AddPublisher("../x", now),
		"upper case":        site.AddPublisher("X", now),
		"one that is there": site.AddPublisher(publisher, now), "a role's name": site.AddPublisher(learner, now),
		"revoking a role": site.Revoke(learner, now), "revoking nobody": site.Revoke("nobody", now),
		"rotating nobody": site.Rotate("nobody", now)} {
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := devca.OpenSite(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := site.Revoke(publisher, now); err != nil {
		t.Fatal(err)
	}
	revoked := maps.Clone(site.Users[publisher].Revoked)
	if err := site.Revoke(publisher, now.Add(time.Hour)); err != nil || !maps.Equal(site.Users[publisher].Revoked,
		revoked) {
		t.Errorf("revoked twice: %v, since %v, want %v", err, site.Users[publisher].Revoked, revoked)
	}
	if err := site.AddPublisher(publisher, now); err != nil {
		t.Errorf("one that was revoked comes back with another key: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(first(site.PusherCreds()))), "*", "*"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || !info.IsDir() && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v", f, info.Mode(), err)
		}
	}
}

func first(a, _ string) string { return a }
