package device

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A parcel is a delivery of a bundle to an attempt of two operators.
type parcel struct {
	*sharer
	*contract
	delivery
	params randomizer.Params
}

// newParcel makes a delivery of users whose counts of dim coordinates are all 1.
func newParcel(t testing.TB, dim, users int) *parcel {
	t.Helper()
	s := &parcel{sharer: newSharer(), params: randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 31, FloorTrials: 100,
		Coin: randomizer.Fair}}
	plan := &wire.Plan{Trust: wire.Trust_TRUST_SPLIT, Phases: []*wire.Phase{{Mechanism: manifest.Mechanism(s.params, uint32(users))}}}
	announced := consent.Announcement{Task: &wire.Task{Plan: plan, Suite: suiteOfTwo}}
	s.contract = &contract{agreement: &consent.Agreement{Announcement: announced,
		Phases: []consent.Phase{{Params: s.params}}}}
	leader, err := seal.NewRoundKey(suiteOfTwo)
	if err != nil {
		t.Fatal(err)
	}
	helper, err := seal.NewRoundKey(suiteOfTwo)
	if err != nil {
		t.Fatal(err)
	}
	s.delivery = delivery{round: &round{place: manifest.Place{Plan: plan}},
		open: &wire.Open{Suite: suiteOfTwo, PublicKey: leader.Public()}, join: &wire.Join{PublicKey: helper.Public()},
		attempt: participation.Attempt{Number: 1, Open: stream.Hash{1}, Join: stream.Hash{2}}}
	s.bundles = []*bundle{s.bundle(users)}
	return s
}

const suiteOfTwo = wire.Suite_SUITE_MLKEM768_X25519

// bundle makes another bundle.
func (s *parcel) bundle(users int) *bundle {
	counts := make([]uint32, s.params.Dim)
	for j := range counts {
		counts[j] = 1
	}
	b := new(bundle)
	for range users {
		b.events = append(b.events, &event{record: participation.Record{Draw: participation.Draw{Secret: system.seed(),
			Counts: s.params.Pack(nil, counts)}}})
	}
	return b
}

func (s *parcel) send(t testing.TB, b *bundle) []byte {
	t.Helper()
	sharing, err := s.sharing(s.contract)
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := s.message(sharing, s.contract, &s.delivery, b)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestMessagesAreKept: a message is kept for another try in its attempt, in so many bytes of memory, and is forgotten when
// it is answered, or with its attempt.
func TestMessagesAreKept(t *testing.T) {
	s := newParcel(t, 10, 2)
	b := s.bundles[0]
	one := s.send(t, b)
	if !bytes.Equal(one, s.send(t, b)) {
		t.Error("another try in one attempt is another message")
	}
	if got := s.sharer.kept.Load(); got != int64(len(one)) {
		t.Errorf("%d bytes are kept, want %d", got, len(one))
	}
	s.attempt.Join = stream.Hash{3}
	two := s.send(t, b)
	if bytes.Equal(one, two) || len(one) != len(two) {
		t.Error("the message of another attempt is the same, or of another length")
	}
	if s.forget(b); s.sharer.kept.Load() != 0 || b.message != nil {
		t.Errorf("%d bytes are kept of nothing", s.sharer.kept.Load())
	}
	if bytes.Equal(two, s.send(t, b)) {
		t.Error("a message that was forgotten is sent again")
	}
	s.forget(b)
	s.sharer.kept.Store(mostKept)
	if s.send(t, b); b.message != nil || s.sharer.kept.Load() != mostKept {
		t.Errorf("a message is kept beyond %d bytes", mostKept)
	}
}

// TestSharesFitTheirSize: messages have the length that the plan says, which decides what fits the broker.
func TestSharesFitTheirSize(t *testing.T) {
	for _, users := range []int{1, 3} {
		s := newParcel(t, 17, users)
		want := manifest.PartOf(s.agreement.Task, s.params).ReportSize(suiteOfTwo, users)
		if got := len(s.send(t, s.bundles[0])); got != want {
			t.Errorf("%d users: %d bytes, want %d", users, got, want)
		}
	}
}

// TestCountsOutOfRangeAreNotShared: an error of sharing names no count.
func TestCountsOutOfRangeAreNotShared(t *testing.T) {
	s := newParcel(t, 10, 1)
	b := s.bundles[0]
	b.events[0].record.Draw.Counts = b.events[0].record.Draw.Counts[1:]
	sharing, err := s.sharing(s.contract)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.message(sharing, s.contract, &s.delivery, b); err == nil || strings.Contains(err.Error(), "count 1") {
		t.Errorf("%v", err)
	}
}

// Messages of one user for two operators: the shares, and both seals.
func BenchmarkShare(b *testing.B) {
	for _, dim := range []int{10, 100, 785} {
		b.Run(fmt.Sprintf("d=%d", dim), func(b *testing.B) {
			s := newParcel(b, dim, 1)
			b.ReportAllocs()
			for b.Loop() {
				s.forget(s.bundles[0])
				b.SetBytes(int64(len(s.send(b, s.bundles[0]))))
			}
		})
	}
}
