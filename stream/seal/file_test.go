package seal_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/stream/seal"
)

func TestIdentityFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config", "panlearn", "identity.pem")
	if _, err := seal.LoadIdentity(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("load of nothing: %v", err)
	}
	made, created, err := seal.LoadOrCreateIdentity(path)
	if err != nil || !created {
		t.Fatalf("%t, %v", created, err)
	}
	again, created, err := seal.LoadOrCreateIdentity(path)
	if err != nil || created || !again.Public().Equal(made.Public()) {
		t.Fatalf("%v, %t, %v", again, created, err)
	}
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700,
		filepath.Dir(filepath.Dir(path)): 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestIdentityFileOthersMayRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity.pem")
	if _, _, err := seal.LoadOrCreateIdentity(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o644, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := seal.LoadIdentity(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %v: %v", mode, err)
		}
		if _, created, err := seal.LoadOrCreateIdentity(path); err == nil || created {
			t.Errorf("mode %v: created %t, %v", mode, created, err)
		}
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.LoadIdentity(path); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

// TestIdentityFileRace: of many processes that start at once, one makes the identity and all have it.
func TestIdentityFileRace(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "deep", "identity.pem")
		ids := make([]*seal.Identity, 8)
		made := make([]bool, len(ids))
		errs := make([]error, len(ids))
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() { ids[i], made[i], errs[i] = seal.LoadOrCreateIdentity(path) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		makers := 0
		for i, id := range ids {
			if !id.Public().Equal(ids[0].Public()) {
				t.Fatalf("0 has %v, %d has %v", ids[0], i, id)
			}
			if made[i] {
				makers++
			}
		}
		if makers != 1 {
			t.Fatalf("%d say that they made it", makers)
		}
	}
}

func TestIdentityFileMalformed(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if _, _, err := seal.LoadOrCreateIdentity(good); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string][]byte{
		"one PEM block":         nil,
		"type \"PRIVATE KEY\"":  bytes.ReplaceAll(data, []byte("PRIVATE"), []byte("PUBLIC")),
		"nothing after it":      append(bytes.Clone(data), data...),
		"no PKCS #8 key":        pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("not a key")}),
		"openssl genpkey":       pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		"more than 4096 bytes":  bytes.Repeat([]byte("a"), 10000),
		"one PEM block of type": []byte("-----BEGIN PRIVATE KEY-----\n"),
	} {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := seal.LoadIdentity(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got: %v", want, err)
		}
		// A file that is there is never replaced.
		if _, created, err := seal.LoadOrCreateIdentity(path); err == nil || created {
			t.Errorf("%q: created %t, %v", want, created, err)
		}
	}
	if _, err := seal.LoadIdentity(dir); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, _, err := seal.LoadOrCreateIdentity(filepath.Join(good, "below")); err == nil {
		t.Error("an identity below a file")
	}
}

func FuzzParseIdentity(f *testing.F) {
	path := filepath.Join(f.TempDir(), "identity.pem")
	if _, _, err := seal.LoadOrCreateIdentity(path); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := seal.ParseIdentityForTest(data)
		if (id == nil) == (err == nil) || (err == nil && len(id.Public()) != 32) {
			t.Errorf("%v, %v", id, err)
		}
	})
}
