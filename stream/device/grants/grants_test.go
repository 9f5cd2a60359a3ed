package grants

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFileStore: what was written is there after a restart, wherever a crash cut the last entry, which nobody was asked for;
// a damaged entry before it is refused.
func TestFileStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "churn.grants")
	issuer := granttest.New(t, stream.Hash{1})
	one := Grant{Key: participation.EventKey("ann"), Request: grant.NewRequest(), Drawn: true}
	two := Grant{Key: participation.EventKey("bob"), Drawn: true, Token: issuer.Token(7)}
	two.Request.Nonce = [grant.NonceSize]byte(two.Token)
	s, err := Open(path)
	must(t, err)
	if _, err := Open(path); err == nil {
		t.Error("two processes hold one file")
	}
	must(t, s.Write([]Grant{one}))
	first, err := os.ReadFile(path)
	must(t, err)
	must(t, s.Write([]Grant{two}))
	must(t, s.Close())
	all, err := os.ReadFile(path)
	must(t, err)
	for _, cut := range []int{len(first), len(first) + 1, len(all) - 1, len(all)} {
		must(t, os.WriteFile(path, all[:cut], 0o600))
		s, err := Open(path)
		must(t, err)
		got, err := s.Look([]participation.Key{one.Key, two.Key, participation.EventKey("carl")})
		must(t, err)
		whole := cut == len(all)
		if got[0].Request != one.Request || !got[0].Drawn || got[0].Token != nil || got[1].Drawn != whole ||
			whole && !bytes.Equal(got[1].Token, two.Token) || got[2].Drawn {
			t.Errorf("cut at %d of %d: %v", cut, len(all), got)
		}
		must(t, s.Write([]Grant{two}))
		must(t, s.Close())
		if again, _ := os.ReadFile(path); !bytes.Equal(again[:len(all)], all) {
			t.Errorf("cut at %d: written otherwise", cut)
		}
	}
	later := bytes.Replace(all, []byte(fileMagic), []byte(fileKind+"2\n"), 1)
	must(t, os.WriteFile(path, later, 0o600))
	if _, err := Open(path); !errors.Is(err, errOther) || !strings.Contains(err.Error(), "was written by another version of panlearn") {
		t.Errorf("a file of another version: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, later) {
		t.Error("a file of another version was changed")
	}
	flipped := bytes.Clone(all)
	flipped[len(fileMagic)+5] ^= 1
	must(t, os.WriteFile(path, flipped, 0o600))
	if _, err := Open(path); err == nil {
		t.Error("a damaged file is read")
	}
}
