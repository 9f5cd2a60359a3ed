package devca

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
)

// TestRevokedDespiteACrash: what fails after a user was recorded as revoked, or with another key, is signed by the next
// Claims of a new process; before that there are no unrecorded credentials.
func TestRevokedDespiteACrash(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	now := time.Now()
	site, err := InitSite(Config{Dir: dir, Lifetime: time.Hour, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"left", "turned"} {
		if err := site.AddPublisher(name, now); err != nil {
			t.Fatal(err)
		}
	}
	left, turned := site.Users["left"].Key, site.Users["turned"].Key
	accounts := filepath.Join(dir, "server", "accounts")
	if err := os.Rename(accounts, accounts+".away"); err != nil {
		t.Fatal(err)
	}
	later := now.Add(time.Minute)
	if site.Revoke("left", later) == nil || site.Rotate("turned", later) == nil {
		t.Fatal("nothing failed")
	}
	if err := os.Rename(accounts+".away", accounts); err != nil {
		t.Fatal(err)
	}
	if site, err = OpenSite(dir); err != nil {
		t.Fatal(err)
	}
	tokens, err := site.Claims()
	if err != nil {
		t.Fatal(err)
	}
	revoked := map[string]bool{}
	for _, token := range tokens {
		claims, err := jwt.DecodeAccountClaims(token)
		if err != nil {
			t.Fatal(err)
		}
		for key := range claims.Revocations {
			revoked[key] = true
		}
	}
	if !revoked[left] || !revoked[turned] || revoked[site.Users["turned"].Key] || len(revoked) != 2 {
		t.Errorf("revoked are %v, want %s and %s", revoked, left, turned)
	}
	if _, err := os.Stat(filepath.Join(dir, "users", "left.creds")); err == nil {
		t.Error("the credentials of a revoked user stand")
	}
}

// TestRevokedTwice: the same command again does what the first left undone, and no user is revoked who never was there.
func TestRevokedTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	now := time.Now()
	site, err := InitSite(Config{Dir: dir, Lifetime: time.Hour, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if err := site.AddPublisher("left", now); err != nil {
		t.Fatal(err)
	}
	key := site.Users["left"].Key
	accounts := filepath.Join(dir, "server", "accounts")
	if err := os.Rename(accounts, accounts+".away"); err != nil {
		t.Fatal(err)
	}
	if site.Revoke("left", now) == nil {
		t.Fatal("nothing failed")
	}
	if err := os.Rename(accounts+".away", accounts); err != nil {
		t.Fatal(err)
	}
	if err := site.Revoke("left", now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	token, err := site.Account("left")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.DecodeAccountClaims(token)
	if err != nil {
		t.Fatal(err)
	}
	if claims.Revocations[key] != now.Unix() {
		t.Errorf("revoked are %v, want %s at %d", claims.Revocations, key, now.Unix())
	}
	if site.Revoke("nobody", now) == nil || site.Revoke("learner", now) == nil {
		t.Error("who is no publisher was revoked")
	}
}
