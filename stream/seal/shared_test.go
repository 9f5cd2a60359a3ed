package seal_test

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// sharedScene is a report for two operators, sealed to fresh keys.
type sharedScene struct {
	leader, helper *seal.RoundKey
	context        seal.SharedContext
	report         seal.SharedReport
	keys           seal.SharedKeys
}

func newSharedScene(t *testing.T, suite wire.Suite) *sharedScene {
	t.Helper()
	key := func() *seal.RoundKey {
		k, err := seal.NewRoundKey(suite)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	s := &sharedScene{leader: key(), helper: key(),
		context: seal.SharedContext{ManifestHash: stream.Hash{1}, TaskHash: stream.Hash{2}, Open: stream.Hash{3}, Join: stream.Hash{4}},
		report: seal.SharedReport{IDs: [][16]byte{{1}, {2}}, Public: [][]byte{make([]byte, 64), make([]byte, 64)},
			Associated: []byte("ids and public shares"), Leader: []byte("the leader's shares"), Helper: []byte("the helper's")}}
	s.keys = seal.SharedKeys{Leader: s.leader.Public(), Helper: s.helper.Public()}
	return s
}

// TestSealShares: each part opens under its own key, context, party and associated data, and under no other.
func TestSealShares(t *testing.T) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_X25519, wire.Suite_SUITE_MLKEM768_X25519} {
		s := newSharedScene(t, suite)
		r, err := seal.SealShares(suite, s.context, s.keys, s.report)
		if err != nil {
			t.Fatal(err)
		}
		open := func(k *seal.RoundKey, c seal.SharedContext, p seal.Party, from *wire.Report, aad []byte) ([]byte, error) {
			return k.OpenShares(c, p, p.Sealed(from), aad)
		}
		aad := s.report.Associated
		if got, err := open(s.leader, s.context, seal.Leader, r, aad); err != nil || !bytes.Equal(got, s.report.Leader) {
			t.Errorf("%v: the leader opens %q, %v", suite, got, err)
		}
		if got, err := open(s.helper, s.context, seal.Helper, r, aad); err != nil || !bytes.Equal(got, s.report.Helper) {
			t.Errorf("%v: the helper opens %q, %v", suite, got, err)
		}
		for name, change := range map[string]func(*seal.SharedContext){
			"manifest": func(c *seal.SharedContext) { c.ManifestHash[0]++ },
			"task":     func(c *seal.SharedContext) { c.TaskHash[0]++ },
			"open":     func(c *seal.SharedContext) { c.Open[0]++ },
			"join":     func(c *seal.SharedContext) { c.Join[0]++ },
		} {
			c := s.context
			change(&c)
			if _, err := open(s.leader, c, seal.Leader, r, aad); !errors.Is(err, seal.ErrOpen) {
				t.Errorf("%v: another %s: %v, want it not to open", suite, name, err)
			}
			if c.Prio3() == s.context.Prio3() {
				t.Errorf("%v: another %s has the same context of Prio3", suite, name)
			}
		}
		if _, err := open(s.leader, s.context, seal.Leader, r, []byte("others")); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%v: other associated data: %v", suite, err)
		}
		swapped := proto.Clone(r).(*wire.Report)
		swapped.Encapsulated, swapped.Ciphertext = r.HelperEncapsulated, r.HelperCiphertext
		if _, err := open(s.helper, s.context, seal.Leader, swapped, aad); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%v: the helper's part opens as the leader's: %v", suite, err)
		}
		s.leader.Erase()
		if _, err := open(s.leader, s.context, seal.Leader, r, aad); !errors.Is(err, seal.ErrErased) {
			t.Errorf("%v: an erased key: %v", suite, err)
		}
		if _, err := s.helper.OpenShares(s.context, seal.Helper, nil, aad); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("%v: no bytes: %v", suite, err)
		}
	}
}

// TestSealSharesRefuses: one key for both, a key of another suite, no encryption, the same id twice.
func TestSealSharesRefuses(t *testing.T) {
	suite := wire.Suite_SUITE_MLKEM768_X25519
	for name, change := range map[string]func(*sharedScene){
		"one key":     func(s *sharedScene) { s.keys.Helper = s.keys.Leader },
		"no key":      func(s *sharedScene) { s.keys.Helper = nil },
		"same id":     func(s *sharedScene) { s.report.IDs[1] = s.report.IDs[0] },
		"no public":   func(s *sharedScene) { s.report.Public = s.report.Public[:1] },
		"no aad":      func(s *sharedScene) { s.report.Associated = nil },
		"half shared": func(s *sharedScene) { s.report.Helper = nil },
	} {
		s := newSharedScene(t, suite)
		change(s)
		if _, err := seal.SealShares(suite, s.context, s.keys, s.report); err == nil {
			t.Errorf("%s: sealed", name)
		}
	}
	s := newSharedScene(t, suite)
	s.keys = seal.SharedKeys{}
	if _, err := seal.SealShares(wire.Suite_SUITE_NONE, s.context, s.keys, s.report); err == nil {
		t.Error("sealed without encryption")
	}
}

// TestSecret: secrets of an identity differ by label and key, and do not change.
func TestSecret(t *testing.T) {
	var ids [2]*seal.Identity
	for i := range ids {
		id, err := seal.NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = id
	}
	a := ids[0].Secret("a")
	if a != ids[0].Secret("a") || a == ids[0].Secret("b") || a == ids[1].Secret("a") || a == [32]byte{} {
		t.Error("secrets do not follow from key and label")
	}
}
