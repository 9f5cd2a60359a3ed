package splitwire_test

import (
	"reflect"
	"testing"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

var x = split.Attempt{Task: split.Hash{1}, Round: 2, Number: 3, Open: split.Hash{4}, Join: split.Hash{5}}

const suite = wire.Suite_SUITE_MLKEM768_X25519

func identity(t *testing.T) *seal.Identity {
	t.Helper()
	id, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestRoundTrips: each message comes back as it was, under its signer's key and no other.
func TestRoundTrips(t *testing.T) {
	id, other := identity(t), identity(t)
	key, err := seal.NewRoundKey(suite)
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := seal.NewRoundKey(suite)
	if err != nil {
		t.Fatal(err)
	}
	messages := []any{
		&split.Ping{X: x, Highest: 7}, &split.Pong{X: x, Instance: split.Instance{8}, Show: 9},
		&split.Finish{X: x, Requests: 10, Users: 11, Chain: split.Hash{12}}, &split.Gone{X: x, Marked: 13},
		&split.Differs{X: x, Instance: split.Instance{14}},
		&split.Request{X: x, N: 15, Base: 14, Bundles: []split.Bundle{{Users: []split.User{{ID: [16]byte{1}, Public: []byte{2}, Prep: []byte{3}}},
			Sealed: []byte{4}}}},
		&split.Reply{X: x, N: 15, Outcomes: []split.Outcome{split.Accepted}, Messages: []split.PrepMessage{{16}}},
	}
	for _, message := range messages {
		var signed []byte
		var err error
		switch message.(type) {
		case *split.Request, *split.Reply:
			signed, err = splitwire.Seal(id, suite, key.Public(), message)
		default:
			signed, err = splitwire.Sign(id, message)
		}
		if err != nil {
			t.Fatalf("%T: %v", message, err)
		}
		m, at, err := splitwire.Verify(signed, id.Public())
		if err != nil || at != x {
			t.Fatalf("%T: attempt %v, %v", message, at, err)
		}
		if got, err := splitwire.Open(m, key); err != nil || !reflect.DeepEqual(got, message) {
			t.Errorf("%T came back as %v, %v", message, got, err)
		}
		if _, _, err := splitwire.Verify(signed, other.Public()); err == nil {
			t.Errorf("%T verifies under another key", message)
		}
		if m.Ciphertext == nil {
			continue
		}
		for _, k := range []*seal.RoundKey{wrong, nil} {
			if _, err := splitwire.Open(m, k); err == nil {
				t.Errorf("%T opens with another key", message)
			}
		}
		m.Number++
		if _, err := splitwire.Open(m, key); err == nil {
			t.Errorf("%T opens beside another number", message)
		}
	}
	if _, err := splitwire.Sign(id, messages[5]); err == nil {
		t.Error("a request was signed in clear")
	}
	if _, err := splitwire.Seal(id, suite, key.Public(), messages[0]); err == nil {
		t.Error("a ping was sealed")
	}
}

// TestAnotherAttemptInClear: the attempt in clear is the message's own.
func TestAnotherAttemptInClear(t *testing.T) {
	id := identity(t)
	signed, err := splitwire.Sign(id, &split.Ping{X: x})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := splitwire.Verify(signed, id.Public())
	if err != nil {
		t.Fatal(err)
	}
	m.Round++
	if _, err := splitwire.Open(m, nil); err == nil {
		t.Error("a ping of one attempt passes for one of another")
	}
}

// TestShares: a Share comes back as it was, release or refusal.
func TestShares(t *testing.T) {
	id, other := identity(t), identity(t)
	for _, s := range []split.Share{
		{X: x, Requests: 2, Users: 3, Chain: split.Hash{6}, Aggregate: make([]byte, 32)},
		{X: x, Refusal: split.Marked},
	} {
		signed, err := splitwire.SignShare(id, s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := splitwire.VerifyShare(signed, id.Public())
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%v, %v: want %v", got, err, s)
		}
		if _, err := splitwire.VerifyShare(signed, other.Public()); err == nil {
			t.Error("a share verifies under another key")
		}
		if !splitwire.IsShare(signed) {
			t.Error("a share is not seen as one")
		}
	}
	ping, err := splitwire.Sign(id, &split.Ping{X: x})
	if err != nil {
		t.Fatal(err)
	}
	if splitwire.IsShare(ping) || splitwire.IsShare(nil) || splitwire.IsShare([]byte("x")) {
		t.Error("something else is seen as a share")
	}
}

// TestOddLengthOpens: a part that opens spends its ids, also where its shares have no length that its users could have.
func TestOddLengthOpens(t *testing.T) {
	leader, err := seal.NewRoundKey(suite)
	if err != nil {
		t.Fatal(err)
	}
	helper, err := seal.NewRoundKey(suite)
	if err != nil {
		t.Fatal(err)
	}
	c := splitwire.ContextOf(x, [32]byte{6})
	users := []split.User{{ID: [16]byte{1}, Public: make([]byte, 64)}, {ID: [16]byte{2}, Public: make([]byte, 64)}}
	for name, shares := range map[string]string{"even": "ab", "odd": "abc"} {
		r, err := seal.SealShares(suite, c, seal.SharedKeys{Leader: leader.Public(), Helper: helper.Public()},
			seal.SharedReport{IDs: [][16]byte{{1}, {2}}, Public: [][]byte{users[0].Public, users[1].Public},
				Associated: split.AssociatedData(users), Leader: []byte(shares), Helper: []byte(shares)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := splitwire.OpenerOf(helper, c, seal.Helper)(seal.Helper.Sealed(r), users)
		want := [][]byte{[]byte("a"), []byte("b")}
		if name == "odd" {
			want = [][]byte{{}, {}}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v: want %q", name, got, err, want)
		}
	}
}
