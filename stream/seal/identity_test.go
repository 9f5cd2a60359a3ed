package seal_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

func identity(t testing.TB) *seal.Identity {
	t.Helper()
	id, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// signable returns one valid message of every kind that is signed.
func signable(stage ed25519.PublicKey) map[wire.Kind]proto.Message {
	h, in := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{9}, 16)
	mechanism := &wire.Mechanism{Dim: 2, ClipNorm: 1, Levels: 8, Trials: 5, Coin: 1 << 23, CoinBits: 24, MaxBundle: 1}
	return map[wire.Kind]proto.Message{
		wire.Kind_KIND_STAGE: &wire.StageIdentity{Version: 1, Task: "churn", Key: stage},
		wire.Kind_KIND_TASK: &wire.Task{Version: 1, Name: "churn", Life: make([]byte, stream.LifeSize), LearnerKey: h,
			StageKey: stage, Suite: wire.Suite_SUITE_X25519, Plan: &wire.Plan{
				Trust:   wire.Trust_TRUST_SHUFFLE,
				Phases:  []*wire.Phase{{Users: 100, Rounds: 10, Cohort: 10, Minimum: 5, Mechanism: mechanism, RoundsPerUser: 1}},
				Epsilon: 1, Delta: 1e-6, EpsilonBudget: 1}},
		wire.Kind_KIND_ROUND: &wire.Round{Version: 1, TaskHash: h, Round: 3, Step: 3, Point: []float64{0.5, -1}},
		wire.Kind_KIND_OPEN: &wire.Open{Version: 1, TaskHash: h, Round: 3, Attempt: 1, ManifestHash: h,
			Suite: wire.Suite_SUITE_X25519, PublicKey: h, Instance: in},
		wire.Kind_KIND_CLAIM: &wire.Claim{Version: 1, TaskHash: h, Round: 3, Attempt: 1, ManifestHash: h, Instance: in},
		wire.Kind_KIND_BATCH: &wire.Batch{Version: 1, TaskHash: h, Round: 3, Attempt: 1, ManifestHash: h, Users: 10,
			NoiseTrials: 50, Totals: []uint64{40, 41}},
		wire.Kind_KIND_CLOSE: &wire.Close{Version: 1, TaskHash: h, Round: 3, Attempt: 1, ManifestHash: h, BatchHash: h},
		wire.Kind_KIND_END:   &wire.End{Version: 1, TaskHash: h, LastRound: 3, Reason: "done"},
	}
}

func TestSignVerify(t *testing.T) {
	id := identity(t)
	for kind, m := range signable(id.Public()) {
		signed, err := id.Sign(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := id.Sign(m)
		if err != nil || !bytes.Equal(again, signed) {
			t.Errorf("%v: two signatures of one message differ", kind)
		}
		got := m.ProtoReflect().New().Interface()
		body, err := seal.Verify(signed, id.Public(), got)
		if err != nil || !proto.Equal(got, m) {
			t.Fatalf("%v: %v, %v", kind, got, err)
		}
		want, err := stream.Marshal(m)
		if err != nil || !bytes.Equal(body, want) {
			t.Errorf("%v: body %x", kind, body)
		}
		if _, err := seal.Verify(signed, identity(t).Public(), got); !errors.Is(err, seal.ErrWrongKey) {
			t.Errorf("%v under another pinned key: %v", kind, err)
		}
		for other, m := range signable(id.Public()) {
			if _, err := seal.Verify(signed, id.Public(), m); other != kind && !errors.Is(err, seal.ErrWrongKind) {
				t.Errorf("%v read as %v: %v", kind, other, err)
			}
		}
	}
}

// TestSignedTampering: no envelope that differs in any field, or in any bit, verifies.
func TestSignedTampering(t *testing.T) {
	id, other := identity(t), identity(t)
	messages := signable(id.Public())
	sign := func(m proto.Message) *wire.Signed {
		signed, err := id.Sign(m)
		if err != nil {
			t.Fatal(err)
		}
		var s wire.Signed
		if err := stream.Unmarshal(signed, &s); err != nil {
			t.Fatal(err)
		}
		return &s
	}
	claim := messages[wire.Kind_KIND_CLAIM]
	second := proto.Clone(claim).(*wire.Claim)
	second.Attempt = 2
	for name, test := range map[string]struct {
		change func(*wire.Signed)
		want   error
	}{
		"body of another message": {func(s *wire.Signed) { s.Body = sign(second).Body }, seal.ErrBadSignature},
		"signature of another":    {func(s *wire.Signed) { s.Signature = sign(second).Signature }, seal.ErrBadSignature},
		"another key":             {func(s *wire.Signed) { s.Key = other.Public() }, seal.ErrWrongKey},
		"another kind":            {func(s *wire.Signed) { s.Kind = wire.Kind_KIND_OPEN }, seal.ErrWrongKind},
		"no kind":                 {func(s *wire.Signed) { s.Kind = 0 }, seal.ErrWrongKind},
		"another version":         {func(s *wire.Signed) { s.Version = 2 }, nil},
		"short key":               {func(s *wire.Signed) { s.Key = s.Key[:31] }, nil},
		"no signature":            {func(s *wire.Signed) { s.Signature = nil }, nil},
		"no body":                 {func(s *wire.Signed) { s.Body = nil }, seal.ErrBadSignature},
	} {
		s := sign(claim)
		test.change(s)
		data, err := stream.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seal.Verify(data, id.Public(), &wire.Claim{}); err == nil ||
			(test.want != nil && !errors.Is(err, test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	data, err := id.Sign(claim)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		for bit := range 8 {
			changed := bytes.Clone(data)
			changed[i] ^= 1 << bit
			if _, err := seal.Verify(changed, id.Public(), &wire.Claim{}); err == nil {
				t.Fatalf("bit %d of byte %d flipped: verified", bit, i)
			}
		}
	}
}

// TestKindsAreSeparated: bodies of Open's and Claim's fields overlap on the wire; a signature under one kind is none
// under another, even where the body would decode as both.
func TestKindsAreSeparated(t *testing.T) {
	id := identity(t)
	end := signable(id.Public())[wire.Kind_KIND_END]
	signed, err := id.Sign(end)
	if err != nil {
		t.Fatal(err)
	}
	var s wire.Signed
	if err := stream.Unmarshal(signed, &s); err != nil {
		t.Fatal(err)
	}
	s.Kind = wire.Kind_KIND_CLOSE
	data, err := stream.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Verify(data, id.Public(), &wire.Close{}); !errors.Is(err, seal.ErrBadSignature) {
		t.Errorf("a signature moved to another kind: %v", err)
	}
}

func TestSignRefuses(t *testing.T) {
	id := identity(t)
	for name, m := range map[string]proto.Message{
		"a report":             &wire.Report{Version: 1},
		"an envelope":          &wire.Signed{Version: 1},
		"no version":           &wire.End{TaskHash: make([]byte, 32)},
		"a bad body":           &wire.End{Version: 1},
		"another stage's key":  &wire.StageIdentity{Version: 1, Task: "churn", Key: identity(t).Public()},
		"an impossible string": &wire.End{Version: 1, TaskHash: make([]byte, 32), Reason: "\xff"},
	} {
		if _, err := id.Sign(m); err == nil {
			t.Errorf("%s was signed", name)
		}
	}
	for _, pinned := range []ed25519.PublicKey{nil, {}, make([]byte, 31), make([]byte, 33)} {
		if _, err := seal.Verify(nil, pinned, &wire.End{}); err == nil || !strings.Contains(err.Error(), "want 32") {
			t.Errorf("a pinned key of %d bytes: %v", len(pinned), err)
		}
	}
}

func TestVerifyStage(t *testing.T) {
	id, other := identity(t), identity(t)
	m := &wire.StageIdentity{Version: 1, Task: "churn", Key: id.Public()}
	signed, err := id.Sign(m)
	if err != nil {
		t.Fatal(err)
	}
	var got wire.StageIdentity
	key, err := seal.VerifyStage(signed, &got)
	if err != nil || !key.Equal(id.Public()) || got.Task != "churn" {
		t.Fatalf("%x, %v, %v", key, &got, err)
	}
	// A thief who signs somebody else's identity message with an own key, or puts the own key around it.
	var s wire.Signed
	if err := stream.Unmarshal(signed, &s); err != nil {
		t.Fatal(err)
	}
	s.Key = other.Public()
	data, err := stream.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.VerifyStage(data, &got); !errors.Is(err, seal.ErrBadSignature) {
		t.Errorf("another key around it: %v", err)
	}
	if _, err := seal.VerifyStage(seal.ForgeForTest(other, m), &got); !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("signed by another key than it names: %v", err)
	}
	if _, err := seal.Verify(seal.ForgeForTest(other, m), other.Public(), &got); !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("signed by another key than it names, pinned: %v", err)
	}
}

// TestIdentityPrintsNothingPrivate: whatever verb, whatever log.
func TestIdentityPrintsNothingPrivate(t *testing.T) {
	id := identity(t)
	key, err := seal.NewRoundKey(wire.Suite_SUITE_X25519)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "id", id, "key", key)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "id", id, "key", key)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&log, verb+" "+verb, id, key)
	}
	private := seal.PrivateForTest(id)[:32]
	for _, form := range []string{"%x", "%X", "%v", "%d"} {
		if strings.Contains(log.String(), strings.Trim(fmt.Sprintf(form, private), "[]")) {
			t.Errorf("the private key was printed as %s", form)
		}
	}
	if !strings.Contains(log.String(), fmt.Sprintf("%x", []byte(id.Public()))) ||
		!strings.Contains(log.String(), "round key of SUITE_X25519") {
		t.Error("the public half is not printed")
	}
}

func FuzzVerify(f *testing.F) {
	id := identity(f)
	for _, m := range signable(id.Public()) {
		signed, err := id.Sign(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(signed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var stage wire.StageIdentity
		if _, err := seal.VerifyStage(data, &stage); err == nil && len(stage.Key) != 32 {
			t.Error("a stage without a key")
		}
		for _, m := range signable(id.Public()) {
			got := m.ProtoReflect().New().Interface()
			if _, err := seal.Verify(data, id.Public(), got); err == nil && !proto.Equal(got, m) {
				t.Errorf("forged: %v", got)
			}
		}
	})
}

func TestSignRandomBatches(t *testing.T) {
	id := identity(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &wire.Batch{Version: 1, TaskHash: make([]byte, 32), ManifestHash: make([]byte, 32), Attempt: 1, Users: 1,
			Round: rapid.Uint64Range(1, 1<<63).Draw(t, "round"), Totals: rapid.SliceOfN(rapid.Uint64(), 1, 50).Draw(t, "totals")}
		signed, err := id.Sign(m)
		if err != nil {
			t.Fatal(err)
		}
		var got wire.Batch
		if _, err := seal.Verify(signed, id.Public(), &got); err != nil || !proto.Equal(m, &got) {
			t.Fatalf("%v, %v", &got, err)
		}
	})
}
