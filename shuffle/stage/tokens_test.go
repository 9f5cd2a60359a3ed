package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/wire"
)

// rejected returns how many of a batch were refused for a reason.
func rejected(b *wire.Batch, r Reason) uint64 {
	for _, one := range b.Rejects {
		if one.Reason == r.String() {
			return one.Count
		}
	}
	return 0
}

// packed returns the report of a user, without a token.
func (w *world) packed(user uint64) []byte {
	return w.plaintext(user)[:w.params.ReportBytes()]
}

// with returns a message of one user with this token.
func (w *world) with(in *invitation, user uint64, token []byte) []byte {
	return w.seal(in, [][16]byte{randomID()}, append(w.packed(user), token...))
}

// TestForgedTokens: a token that the issuer did not sign, of another task, of another key or cut into another's is
// refused under the reason grant, and nobody else with it.
func TestForgedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 2, spares: 8, suite: wire.Suite_SUITE_X25519, grants: true})
		other := granttest.New(t, stream.Hash{7})
		mixed := append(bytes.Clone(w.issuer.Token(2)[:grant.NonceSize]), w.issuer.Token(3)[grant.NonceSize:]...)
		flipped := bytes.Clone(w.issuer.Token(4))
		flipped[grant.Size-1] ^= 1
		bad := [][]byte{make([]byte, grant.Size), other.Token(5), mixed, flipped}
		w.announce(t.Context())
		_, stop := w.start(w.config())
		in := w.invited(t.Context(), 1, 0)
		for i, token := range bad {
			w.send(t.Context(), in, w.with(in, uint64(2+i), token))
		}
		short := w.seal(in, [][16]byte{randomID()}, w.packed(9))
		w.send(t.Context(), in, short)
		w.answer(t.Context(), in, w.users(1))
		b, _ := w.await(t.Context(), 1)
		_ = stop()
		if n := rejected(b, Grant); n != uint64(len(bad)) || rejected(b, Length) != 1 || b.Users != 2 {
			t.Errorf("%d users, rejects %v: want 2, and %d refused for their tokens", b.Users, b.Rejects, len(bad))
		}
		if real, _ := w.audit(); real != 1 {
			t.Errorf("%d batches", real)
		}
	})
}

// TestSpentTwiceInARound: one token under many ids, over two publishers, counts once; the message that comes again is a
// duplicate, as without tokens.
func TestSpentTwiceInARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 3, spares: 3, suite: wire.Suite_SUITE_X25519, grants: true})
		w.announce(t.Context())
		_, stop := w.start(w.config())
		in := w.invited(t.Context(), 1, 0)
		for user := range uint64(4) { // with other counts, too: who is counted is who came first
			w.send(t.Context(), in, w.with(in, user, w.issuer.Token(0)))
		}
		again := w.with(in, 1, w.issuer.Token(1))
		w.send(t.Context(), in, again, again)
		w.answer(t.Context(), in, []uint64{2})
		b, _ := w.await(t.Context(), 1)
		_ = stop()
		if rejected(b, Grant) != 3 || rejected(b, Duplicate) != 1 || b.Users != 3 {
			t.Errorf("%d users, rejects %v: want 3, 3 of grant and a duplicate", b.Users, b.Rejects)
		}
		w.audit()
	})
}

// TestSpentTwiceInTwoRounds: a user who was counted in round 1 is refused in round 2, also by a process that started
// since, and by one that waited for the lease.
func TestSpentTwiceInTwoRounds(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint(restarts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 2, cohort: 3, suite: wire.Suite_SUITE_X25519, grants: true})
				w.announce(t.Context())
				_, stop := w.start(w.config())
				w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1))
				w.await(t.Context(), 1)
				if restarts {
					_ = stop()
					_, stop = w.start(w.config())
				}
				w.put(t.Context(), w.name.Round(2), w.sign(w.learner, w.round(2, 2)))
				in := w.invited(t.Context(), 2, 0)
				for i, u := range w.users(1) { // they answer with other counts than before
					w.send(t.Context(), in, w.with(in, 3+uint64(i), w.issuer.Token(u)))
				}
				w.answer(t.Context(), in, w.users(2))
				b, _ := w.await(t.Context(), 2)
				_ = stop()
				if rejected(b, Grant) != 3 || b.Users != 3 {
					t.Errorf("%d users, rejects %v: want 3, and 3 of grant", b.Users, b.Rejects)
				}
				w.audit()
			})
		})
	}
}

// TestBundleWithBadTokens: in a bundle the users whose tokens do not count are refused alone, and the counts of the
// others are added unchanged.
func TestBundleWithBadTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4, spares: 1, bundle: 4, suite: wire.Suite_SUITE_X25519, grants: true})
		w.announce(t.Context())
		_, stop := w.start(w.config())
		in := w.invited(t.Context(), 1, 0)
		bundle := func(tokens ...[]byte) []byte {
			var text []byte
			ids := make([][16]byte, len(tokens))
			for i := range tokens {
				ids[i] = randomID()
				text = append(text, w.packed(uint64(i))...)
			}
			return w.seal(in, ids, append(text, bytes.Join(tokens, nil)...))
		}
		none := make([]byte, grant.Size)
		w.send(t.Context(), in, bundle(none, w.issuer.Token(1), w.issuer.Token(1), w.issuer.Token(3)))
		w.send(t.Context(), in, bundle(none, none))
		w.answer(t.Context(), in, []uint64{0, 2})
		b, _ := w.await(t.Context(), 1)
		_ = stop()
		if rejected(b, Grant) != 4 || b.Users != 4 || !slices.Equal(b.Totals[:4], []uint64{1, 1, 1, 1}) {
			t.Errorf("%d users, totals %v, rejects %v: want each of 4 once, and 4 of grant", b.Users, b.Totals[:4], b.Rejects)
		}
		w.audit()
	})
}

// TestCrashesBetweenClaimAndBatch kills the stage at each call of a healthy life in turn, done or not, in a task with
// tokens. Nobody is counted twice, nobody of a void round has spent anything, and what was counted stays spent.
func TestCrashesBetweenClaimAndBatch(t *testing.T) {
	p := plan{rounds: 2, cohort: 3, spares: 1, grants: true}
	trace := healthy(t, p)
	died, voids := 0, 0
	for _, at := range trace {
		for _, after := range []bool{false, true} {
			wantVoid := strings.HasPrefix(at, "put claim.") && after || strings.HasPrefix(at, "put spent.") ||
				strings.HasPrefix(at, "put batch.") && !after
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, p)
				var sent wires
				w.run(t.Context(), func(ctx context.Context) {
					if _, lived := w.life(ctx, at, after, &sent, nil); !lived {
						died++
						w.life(ctx, "", false, &sent, nil)
					}
				})
				sent.audit(t, w)
				real, void := w.audit()
				if real != 2 || (void == 1) != wantVoid {
					t.Errorf("crash at %s (done: %t): %d real, %d void batches", at, after, real, void)
				}
				voids += void
				w.auditTokens()
			})
		}
	}
	if died < len(trace) || voids < 8 {
		t.Errorf("killed only %d times in %d calls, %d rounds void", died, len(trace), voids)
	}
}

// auditTokens checks that the lists which batches cover hold the tokens of those who are counted, and of nobody else.
func (w *world) auditTokens() {
	w.t.Helper()
	chain := grant.First(w.hash)
	for r := stream.Round(1); ; r++ {
		b, _ := w.batch(r)
		if b == nil {
			return
		}
		if b.Void {
			if grant.Chain(b.SpentHash) != chain {
				w.t.Errorf("the void batch of round %d counts tokens", r)
			}
			continue
		}
		var want []grant.Hash
		for u, total := range b.Totals {
			if total > 0 {
				want = append(want, w.issuer.Tokens.Spent([grant.NonceSize]byte(w.issuer.Token(uint64(u)))))
			}
		}
		slices.SortFunc(want, compareHashes)
		m, err := w.broker.Get(context.Background(), w.name.Spent(r, 1))
		if err != nil {
			w.t.Errorf("no list of round %d: %v", r, err)
			continue
		}
		l, err := grant.ParseList(m.Data, 1)
		if err != nil || l.Before != chain || !slices.Equal(l.Hashes, want) {
			w.t.Errorf("round %d: list %+v, %v", r, l, err)
		}
		if chain = grant.Next(chain, r, l.Step, want); grant.Chain(b.SpentHash) != chain {
			w.t.Errorf("round %d: its batch does not cover its list", r)
		}
	}
}

// TestVoidRoundSpendsNothing: users of a round whose stage died before its batch are counted in the next one, with the
// same tokens.
func TestVoidRoundSpendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 3, grants: true})
		w.announce(t.Context())
		var sent wires
		ctx, stop := context.WithCancel(t.Context())
		var lives sync.WaitGroup
		lives.Go(func() {
			if _, lived := w.life(ctx, "put batch.1 #1", false, &sent, nil); lived {
				t.Error("the first life did not die")
			}
			w.life(ctx, "", false, &sent, nil)
		})
		w.answer(ctx, w.invited(ctx, 1, 0), w.users(1))
		if b, _ := w.await(ctx, 1); !b.Void {
			t.Fatal("round 1 is not void")
		}
		w.put(ctx, w.name.Round(2), w.sign(w.learner, w.round(2, 1)))
		w.answer(ctx, w.invited(ctx, 2, 0), w.users(1))
		if b, _ := w.await(ctx, 2); b.Void || b.Users != 3 || rejected(b, Grant) != 0 {
			t.Errorf("%d users, rejects %v", b.Users, b.Rejects)
		}
		w.end(ctx, 2)
		lives.Wait()
		stop()
		w.auditTokens()
	})
}

// hiding is a connection on which some records are not there until a time.
type hiding struct {
	stream.Records
	hidden string
	until  time.Time
	asked  int
}

func (h *hiding) Get(ctx context.Context, subject string) (stream.Message, error) {
	if strings.HasSuffix(subject, h.hidden) {
		if h.asked++; time.Now().Before(h.until) {
			return stream.Message{}, stream.ErrNotFound
		}
	}
	return h.Records.Get(ctx, subject)
}

// TestHiddenLists: a stage that starts, and is shown not all lists, opens nothing and ends with an error; where a
// replica only lagged it goes on.
func TestHiddenLists(t *testing.T) {
	for hidden, lags := range map[string]bool{".spent.1.1": false, ".spent.2.1": false, ".batch.2": false,
		".spent.1.1 lags": true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 3, cohort: 2, grants: true})
			w.announce(t.Context())
			_, stop := w.start(w.config())
			for r := range stream.Round(2) {
				w.answer(t.Context(), w.invited(t.Context(), r+1, 0), w.users(r+1))
				w.await(t.Context(), r+1)
				w.put(t.Context(), w.name.Round(r+2), w.sign(w.learner, w.round(r+2, uint64(r+2))))
			}
			_ = stop() // it may have opened round 3, whose attempt is dead
			opened, _ := w.broker.Latest(t.Context(), w.name.Opens(3))
			c := w.config()
			records := &hiding{Records: c.Records, hidden: strings.TrimSuffix(hidden, " lags"), until: time.Now().Add(time.Hour)}
			if lags {
				records.until = time.Now().Add(15 * time.Second)
			}
			c.Records = records
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- w.new(c).Run(ctx) }()
			if lags {
				at, _ := stream.ParseSubject(opened.Subject)
				w.answer(ctx, w.invited(ctx, 3, at.Attempt), w.users(3))
				if b, _ := w.await(ctx, 3); b.Users != 2 {
					t.Errorf("%d users", b.Users)
				}
				w.end(ctx, 3)
				if err := <-done; err != nil {
					t.Error(err)
				}
				return
			}
			err := <-done
			if !errors.Is(err, ErrHidden) || records.asked < 2 {
				t.Errorf("%s is hidden: %v, asked %d times", hidden, err, records.asked)
			}
			if now, _ := w.broker.Latest(t.Context(), w.name.Opens(3)); now.Sequence != opened.Sequence {
				t.Errorf("%s is hidden, and round 3 was opened", hidden)
			}
		})
	}
}

// TestForgedLists: lists that the broker makes up at rounds that were void change nothing, nor do those of a stage that
// died when it had put some of a round's, and lists that the broker replaced are noticed.
func TestForgedLists(t *testing.T) {
	w := newWorld(t, plan{rounds: 4, cohort: 2, grants: true})
	spent := func(n byte) []grant.Hash { return []grant.Hash{{n}, {n, 1}} }
	first := grant.First(w.hash)
	s1 := grant.Next(first, 1, 1, spent(1))
	s3 := grant.Next(s1, 3, 2, spent(3))
	list := func(before grant.Chain, step stream.Step, hashes []grant.Hash) []byte {
		return grant.Lists(before, step, hashes)[0]
	}
	one, three := list(first, 1, spent(1)), list(s1, 2, spent(3))
	part := list(s1, 2, manyHashes(grant.ListHashes+1)) // of a stage that died before it put the second
	more := list(s1, 2, manyHashes(2*grant.ListHashes)) // than a round has: it is not read on
	for name, c := range map[string]struct {
		lists map[stream.Round][]byte
		batch grant.Chain // of round 3
		known []byte      // first bytes of hashes that are spent; nil: something is hidden
	}{
		"as they are":                {map[stream.Round][]byte{1: one, 3: three}, s3, []byte{1, 3}},
		"one of a void round":        {map[stream.Round][]byte{1: one, 2: list(s1, 2, spent(2)), 3: three}, s3, []byte{1, 3}},
		"the newest of a void round": {map[stream.Round][]byte{1: one, 3: list(s1, 2, spent(2))}, s1, []byte{1}},
		"all of void rounds":         {map[stream.Round][]byte{1: one, 3: list(first, 2, spent(2))}, first, []byte{}},
		"a part of a void round":     {map[stream.Round][]byte{1: one, 2: part, 3: three}, s3, []byte{1, 3}},
		"a part of the newest":       {map[stream.Round][]byte{1: one, 3: part}, s1, []byte{1}},
		"more than a round has":      {map[stream.Round][]byte{1: one, 2: more, 3: three}, s3, []byte{1, 3}},
		"garbage of a void round":    {map[stream.Round][]byte{1: one, 2: []byte("garbage"), 3: three}, s3, []byte{1, 3}},
		"another of a void round": {map[stream.Round][]byte{1: one, 2: list(first, 1, spent(2)), 3: three}, s3,
			[]byte{1, 3}},
		"a stranger's of one": {map[stream.Round][]byte{1: one, 2: list(s3, 1, spent(2)), 3: three}, s3, []byte{1, 3}},
		"none yet":            {nil, first, []byte{}},
		"another one":         {map[stream.Round][]byte{1: list(first, 1, spent(2)), 3: three}, s3, nil},
		"another step":        {map[stream.Round][]byte{1: one, 3: list(s1, 3, spent(3))}, s3, nil},
		"another chain":       {map[stream.Round][]byte{1: list(s1, 1, spent(1)), 3: three}, s3, nil},
		"garbage":             {map[stream.Round][]byte{1: []byte("garbage")}, s3, nil},
		"the first is gone":   {map[stream.Round][]byte{3: three}, s3, nil},
		"the last is gone":    {map[stream.Round][]byte{1: one}, s3, nil},
		"two are gone":        {nil, s3, nil},
	} {
		s := w.new(w.config())
		if err := s.enlist(&stream.Message{Subject: w.name.Task(), Data: w.sign(w.learner, w.task)}); err != nil {
			t.Fatal(err)
		}
		enlarge(s, grant.ListHashes+1)
		next := s.take(round{number: 4, step: 3})
		p := next.(*recalling)
		for next == phase(p) && p.until.IsZero() {
			todo := p.next(time.Now())
			at, err := stream.ParseSubject(todo.subject)
			if err != nil {
				t.Fatal(err)
			}
			if name == "more than a round has" && at.Verb == "spent" && at.Attempt > 1 {
				t.Errorf("%s: list %d of round %d is read", name, at.Attempt, at.Round)
			}
			var r result
			if data := c.lists[at.Round]; at.Verb == "spent" && data != nil && at.Attempt == 1 {
				r.message = &stream.Message{Subject: todo.subject, Data: data}
			} else if at.Verb == "batch" {
				r.message = &stream.Message{Subject: todo.subject, Data: w.sign(w.stage, &wire.Batch{Version: stream.Version,
					TaskHash: w.hash[:], Round: uint64(at.Round), ManifestHash: make([]byte, stream.HashSize), Void: true,
					SpentHash: c.batch[:]})}
			}
			if next, err = p.handle(time.Now(), todo, r); err != nil {
				t.Fatal(err)
			}
		}
		if hidden := !p.until.IsZero(); hidden != (c.known == nil) {
			t.Errorf("%s: taken for hidden: %t", name, hidden)
		}
		for n := range byte(4) {
			want := slices.Contains(c.known, n)
			for _, h := range spent(n) {
				if s.tokens.isSpent(h, 3) != want {
					t.Errorf("%s: token %d is spent: %t", name, n, !want)
				}
			}
		}
		for number := stream.Round(3); number <= 5; number++ { // lists of another round do not fit
			if err := s.knows(round{number: number}); (err == nil) != (c.known != nil && number == 4) {
				t.Errorf("%s: round %d may be opened: %v", name, number, err)
			}
		}
		if c.known != nil && (s.tokens.next != 4 || s.tokens.chain != c.batch) {
			t.Errorf("%s: at round %d", name, s.tokens.next)
		}
	}
}

// enlarge has every round of a stage's plan take so many users.
func enlarge(s *Stage, users int) {
	large := proto.CloneOf(s.tokens.plan)
	for _, f := range large.Phases {
		f.Cohort, f.Users = uint64(users), f.Rounds*uint64(users)
	}
	s.tokens.plan = large
}

// manyHashes returns so many hashes, sorted.
func manyHashes(n int) []grant.Hash {
	out := make([]grant.Hash, n)
	for i := range out {
		out[i] = grant.Hash{byte(i >> 16), byte(i >> 8), byte(i)}
	}
	return out
}

// TestManyLists: a round of more tokens than one message holds is read whole, or not at all.
func TestManyLists(t *testing.T) {
	w := newWorld(t, plan{rounds: 2, cohort: 2, grants: true})
	hashes := manyHashes(2*grant.ListHashes + 5)
	lists := grant.Lists(grant.First(w.hash), 1, hashes)
	if len(lists) != 3 {
		t.Fatalf("%d lists", len(lists))
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {0, 1, 1}} {
		s := w.new(w.config())
		if err := s.enlist(&stream.Message{Subject: w.name.Task(), Data: w.sign(w.learner, w.task)}); err != nil {
			t.Fatal(err)
		}
		enlarge(s, len(hashes))
		p := &recalling{environment: s.environment, round: round{number: 2}}
		p.begin()
		ok := true
		for _, i := range order {
			ok = ok && p.list(lists[i])
		}
		right := slices.Equal(order, []int{0, 1, 2})
		if ok != right || right && (len(p.found) != 1 || !slices.Equal(p.found[0].hashes, hashes)) {
			t.Errorf("lists in the order %v are read: %t", order, ok)
		}
	}
}

// TestSameUsersInAStint: where the same users answer several rounds, each counts once in each of them, with one token.
func TestSameUsersInAStint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 3, spares: 1, grants: true, stint: true})
		w.announce(t.Context())
		_, stop := w.start(w.config())
		for r := range stream.Round(2) {
			in := w.invited(t.Context(), r+1, 0)
			w.send(t.Context(), in, w.with(in, 0, w.issuer.Token(0)), w.with(in, 5, w.issuer.Token(0)))
			w.answer(t.Context(), in, []uint64{1, 2})
			if b, _ := w.await(t.Context(), r+1); b.Users != 3 || rejected(b, Grant) != 1 {
				t.Errorf("round %d: %d users, rejects %v", r+1, b.Users, b.Rejects)
			}
			if r == 0 {
				_ = stop()
				w.put(t.Context(), w.name.Round(2), w.sign(w.learner, w.round(2, 2)))
				_, stop = w.start(w.config())
			}
		}
		_ = stop()
		w.auditTokens()
	})
}
