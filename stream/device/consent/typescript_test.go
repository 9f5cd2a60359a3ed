package consent_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// An asked question is one that the device in TypeScript answers: see clients/typescript/test/answers.ts.
type asked struct {
	Task   string         `json:"task,omitempty"`
	Policy map[string]any `json:"policy,omitempty"`
	Times  uint32         `json:"times,omitempty"`
	Round  string         `json:"round,omitempty"`
	Known  string         `json:"known,omitempty"`
	Before string         `json:"before,omitempty"`
	Record string         `json:"record,omitempty"`
	Kind   string         `json:"kind,omitempty"`
	Key    string         `json:"key,omitempty"`
	State  string         `json:"state,omitempty"`
	Answer string         `json:"answer,omitempty"`
	Place  string         `json:"place,omitempty"`
	ID     string         `json:"id,omitempty"`
}

type answered struct {
	Refused              string
	Epsilon, Delta, Cost float64
	Hash, Status         string
}

// A hand changes messages by chance: a seed of its own for each case, so that one can be looked at alone.
type hand struct{ *rand.Rand }

func seeded(seed int) hand { return hand{rand.New(rand.NewPCG(uint64(seed), 31))} }

func one[T any](h hand, of ...T) T { return of[h.IntN(len(of))] }

// spot is a field of a message, or one entry of a list of messages.
type spot struct {
	message protoreflect.Message
	field   protoreflect.FieldDescriptor
}

// spots collects the fields of a message and of those within it, without fields in an encoding of their own.
func spots(m protoreflect.Message) (out []spot) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Name() == "declaration" || f.Name() == "public" {
			continue
		}
		out = append(out, spot{m, f})
		switch {
		case f.Message() == nil || !m.Has(f):
		case f.IsList():
			for j := range m.Get(f).List().Len() {
				out = append(out, spots(m.Get(f).List().Get(j).Message())...)
			}
		default:
			out = append(out, spots(m.Get(f).Message())...)
		}
	}
	return out
}

// scalar draws another value of a field.
func (h hand) scalar(f protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	whole := func(n uint64) uint64 {
		return one(h, 0, 1, n+1, n-1, 2*n, n/2, n+uint64(h.IntN(9)), 1<<20, 1<<31, 1<<32, math.MaxUint64, h.Uint64())
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!v.Bool())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(h.IntN(7)))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(whole(v.Uint())))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(whole(v.Uint()))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(whole(uint64(v.Int()))))
	case protoreflect.DoubleKind:
		x := v.Float()
		return protoreflect.ValueOfFloat64(one(h, 0, math.Copysign(0, -1), 2*x, x/2, x*(1+h.Float64()/10), -x, x+1, math.NaN(), math.Inf(1),
			1e-30, 1e300, 5e-324, h.NormFloat64()))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(one(h, "", "1", "0.5", "1/2", "2/3", "0.90", "1.5", "draft-14", "Ä", strings.Repeat("a", 65), v.String()+"a"))
	case protoreflect.BytesKind:
		b := v.Bytes()
		return protoreflect.ValueOfBytes(one(h, nil, append(slices.Clone(b), 0), b[:len(b)/2], make([]byte, 32), make([]byte, 16)))
	}
	return v
}

// change changes one field by chance.
func (h hand) change(m proto.Message) {
	at := one(h, spots(m.ProtoReflect())...)
	switch f := at.field; {
	case f.IsList() && f.Message() != nil:
		list := at.message.Mutable(f).List()
		if n := list.Len(); n > 0 && h.IntN(2) == 0 {
			list.Append(protoreflect.ValueOfMessage(proto.Clone(list.Get(h.IntN(n)).Message().Interface()).ProtoReflect()))
		} else if n > 0 {
			list.Truncate(n - 1)
		}
	case f.IsList():
		list := at.message.Mutable(f).List()
		if n := list.Len(); n > 0 && h.IntN(3) > 0 {
			list.Set(h.IntN(n), h.scalar(f, list.Get(h.IntN(n))))
		} else if n > 0 && h.IntN(2) == 0 {
			list.Truncate(n - 1)
		} else {
			list.Append(h.scalar(f, list.NewElement()))
		}
	case f.Message() != nil:
		if at.message.Has(f) {
			at.message.Clear(f)
		} else {
			at.message.Mutable(f)
		}
	default:
		at.message.Set(f, h.scalar(f, at.message.Get(f)))
	}
}

// damage changes bytes by chance.
func (h hand) damage(b []byte) []byte {
	b = slices.Clone(b)
	for range 1 + h.IntN(3) {
		at := h.IntN(len(b) + 1)
		switch h.IntN(4) {
		case 0:
			if at < len(b) {
				b[at] ^= 1 << h.IntN(8)
			}
		case 1:
			b = slices.Insert(b, at, byte(h.IntN(256)))
		case 2:
			if at < len(b) {
				b = slices.Delete(b, at, at+1)
			}
		default:
			b = b[:at]
		}
	}
	return b
}

// policy draws one, as a device in Go and one in TypeScript have it.
func (h hand) policy(hash stream.Hash, m *wire.Task) (p consent.Policy, text map[string]any) {
	text = map[string]any{}
	set := func(key string, value any, in func()) {
		text[key] = value
		in()
	}
	if limit := one(h, 0, 60, 60, 60, 4, 3.9, 1); limit > 0 {
		set("max_epsilon", limit, func() { p.MaxEpsilon = limit })
	}
	switch h.IntN(8) {
	case 0:
		set("max_delta", 1e-4, func() { p.MaxDelta = 1e-4 })
	case 1:
		f := one(h, "0.5", "0.9", "1/50")
		honest, _ := accounting.ParseFraction(f)
		set("honest_fraction", f, func() { p.HonestFraction = honest })
	case 2:
		n := uint64(h.IntN(100))
		set("min_cohort", n, func() { p.MinCohort = n })
	case 3:
		set("own_share", 0.6, func() { p.OwnShare = 0.6 })
	case 4:
		n := uint32(1 + h.IntN(4))
		set("max_rounds_per_user", n, func() { p.MaxRoundsPerUser = &n })
	case 5:
		pin := one(h, m.LearnerKey, m.StageKey)
		if len(pin) == 32 {
			set("learner_key", hex.EncodeToString(pin), func() { p.LearnerKey = pin })
		}
	case 6:
		pin := one(h, hash[:], make([]byte, 32))
		set("task_hash", hex.EncodeToString(pin), func() { p.TaskHash = pin })
	}
	if h.IntN(2) == 0 {
		set("allow_plaintext", true, func() { p.AllowPlaintext = true })
	}
	return p, text
}

// refusedByName reports whether a task needs something that the device in TypeScript refuses by name.
func refusedByName(m *wire.Task) bool {
	return m.Plan.GetTrust() == wire.Trust_TRUST_SPLIT || m.Plan.GetSilos() > 0
}

// TestAgreementsInTypeScript: of random plans, policies, rounds and damaged messages both devices take the same ones, and
// compute the same epsilon, to 2^-34.
func TestAgreementsInTypeScript(t *testing.T) {
	cases := 200
	if longtest.Run(t, "10,000 plans and 10,000 rounds instead of 200") {
		cases = 10_000
	}
	all := bases(t)
	delete(all, "one operator") // which TypeScript refuses by the name of its trust, as it does "split"
	names := slices.Sorted(maps.Keys(all))
	type expected struct {
		what  string
		err   error
		spare bool // refused by name in TypeScript
		a     *consent.Agreement
		hash  stream.Hash
	}
	var questions []asked
	var wants []expected
	times := uint32(2)
	for seed := range cases {
		h := seeded(seed)
		name := one(h, names...)
		m := proto.CloneOf(all[name])
		for range one(h, 0, 0, 1, 1, 2) {
			h.change(m)
		}
		body, err := stream.Marshal(m)
		if err != nil {
			continue // no UTF-8
		}
		if h.IntN(12) == 0 {
			body = h.damage(body)
		}
		read := &wire.Task{}
		hash := stream.HashOf(body)
		w := expected{what: fmt.Sprintf("plan %d, of %s", seed, name), hash: hash}
		p, text := h.policy(hash, m)
		if w.err = stream.Unmarshal(body, read); w.err == nil {
			w.spare = refusedByName(read)
			w.a, w.err = p.CheckTask(read, hash)
			// The device in TypeScript checks the numbers of the plan, and not whether a declaration is possible in a task file.
			w.spare = w.spare || w.err != nil && strings.Contains(w.err.Error(), "declaration is not readable")
		}
		questions, wants = append(questions, asked{Task: hex.EncodeToString(body), Policy: text, Times: times}), append(wants, w)

		// A round of the task, or of an honest one.
		if w.err != nil {
			m = proto.CloneOf(all[name])
			body, hash = marshal(t, m), stream.HashOf(marshal(t, m))
			p, text = consent.Policy{AllowPlaintext: true, MaxEpsilon: 60}, map[string]any{"allow_plaintext": true, "max_epsilon": 60}
			if w.a, err = p.CheckTask(m, hash); err != nil {
				continue
			}
		}
		if refusedByName(w.a.Task) {
			continue
		}
		step := 1 + uint64(h.IntN(4))
		r, before := roundOf(name, hash, step), roundOf(name, hash, max(1, step-1))
		for range one(h, 0, 0, 1, 2) {
			h.change(r)
		}
		record, err := stream.Marshal(r)
		must(t, err)
		if h.IntN(12) == 0 {
			record = h.damage(record)
		}
		if len(record) == 0 {
			continue
		}
		v := roundVector{Round: record}
		if step > 1 && h.IntN(2) == 0 {
			v.Before = marshal(t, before)
		}
		if h.IntN(4) == 0 {
			hash := stream.HashOf(record)
			v.Known = one(h, hash[:], make([]byte, 32))
		}
		got := expected{what: fmt.Sprintf("round %d, of %s, step %d", seed, name, step)}
		got.hash, got.err = v.check(w.a)
		questions = append(questions, asked{Task: hex.EncodeToString(body), Policy: text, Round: hex.EncodeToString(record),
			Known: hex.EncodeToString(v.Known), Before: hex.EncodeToString(v.Before)})
		wants = append(wants, got)
	}
	accepted, wrong, spare := map[string]int{}, 0, 0
	close := func(a, b float64) bool {
		return a == b || math.Abs(a-b) <= 0x1p-34*b || a >= accounting.MaxEpsilon && b >= accounting.MaxEpsilon
	}
	for i, got := range nodejs.Answers[asked, answered](t, questions) {
		w := wants[i]
		kind, _, _ := strings.Cut(w.what, " ")
		ok := (w.err == nil) == (got.Refused == "") || w.spare
		if w.spare {
			spare++
		}
		if ok && w.err == nil && !w.spare {
			accepted[kind]++
			if w.a == nil {
				ok = got.Hash == hex.EncodeToString(w.hash[:])
			} else {
				ok = close(got.Epsilon, w.a.Guarantee.Epsilon) && got.Delta == w.a.Delta && close(got.Cost, w.a.Epsilon(times))
			}
		}
		if !ok {
			t.Errorf("%s: in Go %v, in TypeScript %+v", w.what, w.err, got)
			if wrong++; wrong > 12 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d questions; accepted: %v; %d of what is refused by name, or declared as no task file could", len(questions), accepted, spare)
	if accepted["plan"] < cases/8 || accepted["round"] < cases/8 {
		t.Errorf("hardly anything was accepted: %v of %d", accepted, cases)
	}
}

// envelope signs a body as it is, which may be none.
func envelope(kind wire.Kind, by ed25519.PrivateKey, body []byte) *wire.Signed {
	text := "panlearn/v1/" + strings.ToLower(strings.TrimPrefix(kind.String(), "KIND_")) + "\x00" + string(body)
	return &wire.Signed{Version: stream.Version, Kind: kind, Body: body, Key: public(by), Signature: ed25519.Sign(by, []byte(text))}
}

// TestHostileMessagesInTypeScript: of damaged records, and bodies of a relay, both devices read the same ones.
func TestHostileMessagesInTypeScript(t *testing.T) {
	cases := 400
	if longtest.Run(t, "10,000 messages instead of 400") {
		cases = 10_000
	}
	hash := stream.HashOf(marshal(t, provedTask(t, accounting.Shuffle)))
	round := marshal(t, roundOf("shuffle", hash, 1))
	manifest := stream.HashOf(round)
	kinds := []struct {
		name string
		kind wire.Kind
		key  ed25519.PrivateKey
		m    proto.Message
		into func() proto.Message
	}{
		{"round", wire.Kind_KIND_ROUND, learnerKey, roundOf("shuffle", hash, 1), func() proto.Message { return &wire.Round{} }},
		{"open", wire.Kind_KIND_OPEN, stageKey, &wire.Open{Version: 1, TaskHash: hash[:], Round: 1, Attempt: 1, ManifestHash: manifest[:],
			Suite: wire.Suite_SUITE_X25519, PublicKey: public(key(9)), Instance: make([]byte, 16), StartedUnixMs: 7, JoinProbability: 9}, func() proto.Message { return &wire.Open{} }},
		{"close", wire.Kind_KIND_CLOSE, stageKey, &wire.Close{Version: 1, TaskHash: hash[:], Round: 1, Attempt: 1, ManifestHash: manifest[:],
			BatchHash: make([]byte, 32), Cutoff: 9}, func() proto.Message { return &wire.Close{} }},
		{"end", wire.Kind_KIND_END, learnerKey, &wire.End{Version: 1, TaskHash: hash[:], LastRound: 3, Reason: "done"}, func() proto.Message { return &wire.End{} }},
	}
	var questions []asked
	var wants []string // empty: refused
	for seed := range cases {
		h := seeded(seed)
		switch h.IntN(5) {
		case 0, 1:
			k := one(h, kinds...)
			m := proto.Clone(k.m)
			for range h.IntN(3) {
				h.change(m)
			}
			inner, err := stream.Marshal(m)
			must(t, err)
			if h.IntN(5) == 0 {
				inner = h.damage(inner)
			}
			signed := envelope(k.kind, k.key, inner)
			if h.IntN(6) == 0 {
				h.change(signed)
			}
			record, err := stream.Marshal(signed)
			must(t, err)
			if h.IntN(4) == 0 {
				record = h.damage(record)
			}
			want := ""
			if got, err := seal.Verify(record, public(k.key), k.into()); err == nil {
				hash := stream.HashOf(got)
				want = hex.EncodeToString(hash[:])
			}
			questions = append(questions, asked{Record: hex.EncodeToString(record), Kind: k.name, Key: hex.EncodeToString(public(k.key))})
			wants = append(wants, want)
		case 2:
			s := relayhttp.State{LeaseTime: time.UnixMilli(int64(h.IntN(9))), Lease: make([]byte, 29*h.IntN(2))}
			for _, m := range s.Marks()[:6] {
				if h.IntN(2) == 0 {
					*m = relayhttp.Mark{Round: stream.Round(h.Uint64()), Attempt: stream.Attempt(h.IntN(3)), Sequence: uint64(h.IntN(3))}
				}
			}
			b := s.Bytes()
			if h.IntN(3) == 0 {
				b = h.damage(b)
			}
			want := ""
			if got, err := relayhttp.ParseState(b); err == nil && b[0] == 1 {
				want = got.Tag()
			}
			questions, wants = append(questions, asked{State: hex.EncodeToString(b)}), append(wants, want)
		case 3:
			var id [16]byte
			id[h.IntN(16)] = byte(h.IntN(256))
			b := (relayhttp.Answer{ID: id, Status: stream.AckStatus(h.IntN(6)), Sequence: uint64(h.IntN(3)), Reason: stream.Reason(h.IntN(2))}).Bytes()
			if h.IntN(4) == 0 {
				b = h.damage(b)
			}
			if len(b) == 0 {
				continue
			}
			want := "unknown"
			if a, err := relayhttp.ParseAnswer(b); err == nil && a.ID == id {
				want = map[stream.AckStatus]string{stream.Stored: "stored", stream.Duplicate: "duplicate", stream.Refused: "refused"}[a.Status]
			}
			questions, wants = append(questions, asked{Answer: hex.EncodeToString(b), ID: hex.EncodeToString(id[:])}), append(wants, want)
		default:
			var id [16]byte
			id[h.IntN(16)] = byte(h.IntN(256))
			b := make([]byte, 27)
			b[0] = 1
			copy(b[1:], id[:])
			b[17] = byte(h.IntN(5))
			if h.IntN(2) == 0 {
				b[21] = byte(h.IntN(3))
			}
			b[25] = byte(h.IntN(256))
			b = b[:one(h, 26, 26, 26, 25, 27)]
			want := "none"
			if p, err := stream.ParsePlaceAnswer(b); err == nil && p.ID == id {
				want = map[stream.PlaceVerdict]string{1: "granted", 2: "wait", 3: "over"}[p.Verdict]
			}
			questions, wants = append(questions, asked{Place: hex.EncodeToString(b), ID: hex.EncodeToString(id[:])}), append(wants, want)
		}
	}
	read := 0
	for i, got := range nodejs.Answers[asked, answered](t, questions) {
		q, ok := questions[i], false
		switch {
		case q.Place != "" || q.Answer != "":
			ok = got.Status == wants[i]
		default:
			ok = got.Hash == wants[i]
		}
		if wants[i] != "" && wants[i] != "none" && wants[i] != "unknown" {
			read++
		}
		if !ok {
			t.Errorf("message %d: want %q, in TypeScript %+v\n%+v", i, wants[i], got, q)
		}
	}
	t.Logf("%d messages, of which %d are read", len(questions), read)
	if read < cases/8 {
		t.Errorf("%d of %d are read", read, cases)
	}
}
