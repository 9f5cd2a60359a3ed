package split

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cloudflare/circl/vdaf/prio3/arith/fp128"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/internal/test/longtest"
)

// element adds v to number i of an encoded vector of the field; a negative one is subtracted.
func element(b []byte, i, v int) {
	var x, y fp128.Fp
	at := b[i*elementBytes : (i+1)*elementBytes]
	if err := x.UnmarshalBinary(at); err != nil {
		panic(err)
	}
	if err := y.SetUint64(uint64(max(v, -v))); err != nil {
		panic(err)
	}
	if v < 0 {
		x.SubAssign(&y)
	} else {
		x.AddAssign(&y)
	}
	out, err := x.MarshalBinary()
	if err != nil {
		panic(err)
	}
	copy(at, out)
}

// rejoin makes the leader's half of the public share fit the leader's input share again: a hostile device knows how.
func (w *world) rejoin(u *User, s Shares) {
	n := w.cfg.Params.Dim * w.cfg.sharing().Bits * elementBytes
	u.Public = slices.Clone(u.Public)
	copy(u.Public, jointPart(w.cfg.Context, s.Leader[len(s.Leader)-seedBytes:], u.ID[:], s.Leader[:n]))
}

// hostile lists what a hostile device can send of one report, with the outcome that the two parties reach. Each changes
// an honest report; both ciphertexts are sealed over what it leaves.
var hostile = map[string]struct {
	change func(w *world, u *User, s *Shares)
	want   Outcome
}{
	"g + 1": {func(w *world, u *User, s *Shares) { // all bits of the first count are 1
		element(s.Leader, 0, 1)
		w.rejoin(u, *s)
	}, BadProof},
	"negative": {func(w *world, u *User, s *Shares) { // the second count is 0
		element(s.Leader, w.cfg.sharing().Bits, -1)
		w.rejoin(u, *s)
	}, BadProof},
	"a count of thousands": {func(w *world, u *User, s *Shares) {
		element(s.Leader, 2, 3000)
		w.rejoin(u, *s)
	}, BadProof},
	"two faults that cancel in the sum": {func(w *world, u *User, s *Shares) {
		element(s.Leader, 0, 5)
		element(s.Leader, w.cfg.sharing().Bits, -5)
		w.rejoin(u, *s)
	}, BadProof},
	"a count moved without its public share": {func(w *world, u *User, s *Shares) { element(s.Leader, 0, 1) }, BadShare},
	"wrong proof": {func(w *world, u *User, s *Shares) {
		element(s.Leader, w.cfg.Params.Dim*w.cfg.sharing().Bits, 1)
	}, BadProof},
	"proof of another report": {func(w *world, u *User, s *Shares) {
		_, other := w.shard(w.counts())
		n := w.cfg.Params.Dim * w.cfg.sharing().Bits * elementBytes
		copy(s.Leader[n:len(s.Leader)-seedBytes], other.Leader[n:])
	}, BadProof},
	"random share of the leader": {func(w *world, u *User, s *Shares) {
		for i := 0; i < len(s.Leader); i += 32 {
			random := w.bytes32()
			copy(s.Leader[i:], random[:])
		}
		for i := elementBytes - 1; i < len(s.Leader)-seedBytes; i += elementBytes {
			s.Leader[i] &= 127 // within the field
		}
		w.rejoin(u, *s)
	}, BadProof},
	"random seed of the helper": {func(w *world, u *User, s *Shares) {
		random := w.bytes32()
		copy(s.Helper, random[:])
	}, BadShare},
	"random blind of the helper":  {func(w *world, u *User, s *Shares) { s.Helper[seedBytes]++ }, BadShare},
	"numbers outside the field":   {func(w *world, u *User, s *Shares) { fill(s.Leader[:elementBytes], 255) }, BadShare},
	"another public share":        {func(w *world, u *User, s *Shares) { u.Public = bytes.Repeat([]byte{7}, len(u.Public)) }, BadShare},
	"the helper's half swapped":   {func(w *world, u *User, s *Shares) { u.Public[seedBytes]++ }, BadShare},
	"another id than it was for":  {func(w *world, u *User, s *Shares) { u.ID[0]++ }, BadShare},
	"the helper's for the leader": {func(w *world, u *User, s *Shares) { s.Leader = s.Helper }, BadLength},
	"the leader's for the helper": {func(w *world, u *User, s *Shares) { s.Helper = s.Leader }, BadLength},
	"no share for the helper":     {func(w *world, u *User, s *Shares) { s.Helper = nil }, BadLength},
	"a public share cut short":    {func(w *world, u *User, s *Shares) { u.Public = u.Public[:32] }, BadLength},
	"a public share of nothing":   {func(w *world, u *User, s *Shares) { u.Public = nil }, BadLength},
	"one dimension more":          {func(w *world, u *User, s *Shares) { w.reshard(u, s, 1, 0) }, BadLength},
	"one dimension fewer":         {func(w *world, u *User, s *Shares) { w.reshard(u, s, -1, 0) }, BadLength},
	"one bit more":                {func(w *world, u *User, s *Shares) { w.reshard(u, s, 0, 1) }, BadLength},
	"another context": {func(w *world, u *User, s *Shares) {
		p := w.cfg.sharing()
		p.Context[0]++
		w.reshardAs(u, s, p)
	}, BadShare},
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// reshard makes a valid report of other dimensions under the user's id.
func (w *world) reshard(u *User, s *Shares, dim, bits int) {
	p := w.cfg.sharing()
	p.Dim, p.Bits = p.Dim+dim, p.Bits+bits
	w.reshardAs(u, s, p)
}

func (w *world) reshardAs(u *User, s *Shares, p Params) {
	sharing, err := NewSharing(p, w.cfg.X.Open, w.cfg.X.Join)
	w.must(err)
	*s, err = sharing.Shard(make([]uint32, p.Dim), u.ID, w.bytes32())
	w.must(err)
	u.Public = s.Public
}

// settle counts two honest users around what hostile does, releases, and compares the totals without floors with the
// counts of the honest users alone.
func settle(t *testing.T, w *world, hostile func()) {
	t.Helper()
	sum := make([]uint64, w.cfg.Params.Dim)
	honest := func() {
		t.Helper()
		c := w.counts()
		add(sum, c)
		if out := w.send(w.message(c)); out[0] != Accepted {
			t.Fatalf("an honest report is %v", out)
		}
	}
	honest()
	hostile()
	honest()
	saved := *w.source.(*rand.ChaCha8)
	release, prepared, _ := w.finish()
	w.source = &saved
	e := [2]Entropy{{Fresh: w.bytes32(), Secret: [32]byte{34}}, {Fresh: w.bytes32(), Secret: [32]byte{36}}}
	floors := floorsOf(t, w.cfg, prepared.Finish, e)
	for j := range sum {
		if got := release.Totals[j] - floors[leader][j] - floors[helper][j]; got != sum[j] {
			t.Errorf("coordinate %d: counts %d, honest users have %d", j, got, sum[j])
		}
	}
	if release.Users != 2 {
		t.Errorf("%d users, want the two honest ones", release.Users)
	}
}

// A hostile device's report is refused for its reason, alone and within a bundle whose other user is honest; totals and
// users do not move.
func TestHostileDevices(t *testing.T) {
	for what, c := range hostile {
		t.Run(what, func(t *testing.T) {
			cfg := config(4, 3, 8)
			w := newWorld(t, cfg, 2)
			settle(t, w, func() {
				counts := []uint32{7, 0, 3, 5}
				u, s := w.shard(counts)
				c.change(w, &u, &s)
				m := message{users: []User{u}}
				m.seal([2][][]byte{{s.Leader}, {s.Helper}})
				if out := w.send(m); out[0] != c.want {
					t.Errorf("%v, want %v", out[0], c.want)
				}
				want := Rejects{}
				want[c.want] = 1
				if w.leader.rejects != want {
					t.Errorf("leader has refused %v: want one for %v", w.leader.rejects, c.want)
				}
			})
		})
	}
}

// In a bundle the users are decided one by one: the honest one is counted beside the hostile one.
func TestBundleIsDecidedUserByUser(t *testing.T) {
	for what, c := range hostile {
		if c.want == BadLength {
			continue // lengths are the bundle's, and it does not open
		}
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, config(4, 3, 8), 3)
			u, s := w.shard([]uint32{7, 0, 3, 5})
			c.change(w, &u, &s)
			before, b := w.shard(w.counts())
			after, a := w.shard(w.counts())
			m := message{users: []User{before, u, after}}
			m.seal([2][][]byte{{b.Leader, s.Leader, a.Leader}, {b.Helper, s.Helper, a.Helper}})
			want := []Outcome{Accepted, c.want, Accepted}
			if out := w.send(m); !slices.Equal(out, want) {
				t.Errorf("%v, want %v", out, want)
			}
			if w.leader.Users() != 2 || w.helper.Users() != 2 {
				t.Errorf("leader counts %d, helper %d", w.leader.Users(), w.helper.Users())
			}
		})
	}
}

// A report that comes again is counted once, alone, in another bundle, and twice in one.
func TestReplay(t *testing.T) {
	w := newWorld(t, config(4, 3, 8), 4)
	settle(t, w, func() {
		u, s := w.shard([]uint32{7, 0, 3, 8 - 1})
		element(s.Leader, 0, 1) // refused, and its id is spent all the same
		w.rejoin(&u, s)
		m := message{users: []User{u}}
		m.seal([2][][]byte{{s.Leader}, {s.Helper}})
		if out := w.send(m); out[0] != BadProof {
			t.Error(out)
		}
		twice := message{users: []User{u, u}}
		twice.seal([2][][]byte{{s.Leader, s.Leader}, {s.Helper, s.Helper}})
		for range 2 {
			if out := w.send(m); out[0] != Duplicate {
				t.Error(out)
			}
			if out := w.send(twice); out[0] != Duplicate {
				t.Error(out)
			}
		}
		other, o := w.shard(w.counts())
		o2 := o
		pair := message{users: []User{other, other}}
		element(o.Leader, 0, 1)
		pair.seal([2][][]byte{{o.Leader, o2.Leader}, {o.Helper, o2.Helper}})
		if out := w.send(pair); out[0] != BadShare || out[1] != Duplicate {
			t.Errorf("%v: want the first refused and the second a duplicate, though it is good", out)
		}
	})
}

// Ids in clear are anybody's: what does not open spends none.
func TestUnopenedSpendsNoID(t *testing.T) {
	w := newWorld(t, config(4, 3, 8), 5)
	good := w.message(w.counts(), w.counts())
	bad := good
	bad.sealed[leader] = append(bytes.Clone(good.sealed[leader]), 0)
	if out := w.send(bad); out[0] != Unopened || out[1] != Unopened {
		t.Errorf("a ciphertext that was changed: %v", out)
	}
	if out := w.send(good); out[0] != Accepted || out[1] != Accepted {
		t.Errorf("after it the honest one: %v", out)
	}
	// At the helper alone: the leader's opens, so the leader has spent the ids and the helper has not.
	bad = w.message(w.counts())
	bad.sealed[helper][0]++
	shown := w.helper.shown
	if out := w.send(bad); out[0] != Unopened || w.helper.shown != shown+1 {
		t.Errorf("a helper's ciphertext that was changed: %v", out)
	}
}

// Whatever bytes reach a party, it refuses or counts what was honest, does not panic, and leader and helper agree.
// Reports are honest ones with some bytes changed, cut or doubled, some of them sealed so that they open.
func TestMutatedReports(t *testing.T) {
	longtest.Sequential(t)
	n := 10_000
	if longtest.On() {
		n = 100_000
	}
	cfg := config(3, 2, uint64(n))
	w := newWorld(t, cfg, 6)
	random := rand.New(w.source)
	seen := map[Outcome]int{}
	for range n {
		u, s := w.shard(w.counts())
		fields := []*[]byte{&u.Public, &s.Leader, &s.Helper}
		honest := slices.Concat(u.Public, s.Leader, s.Helper)
		for range 1 + random.IntN(3) {
			mutate(random, fields[random.IntN(len(fields))])
		}
		for bytes.Equal(slices.Concat(u.Public, s.Leader, s.Helper), honest) { // two changes undid each other
			mutate(random, fields[random.IntN(len(fields))])
		}
		if random.IntN(8) == 0 {
			u.ID[random.IntN(16)] ^= 1
		}
		m := message{users: []User{u}}
		m.seal([2][][]byte{{s.Leader}, {s.Helper}})
		if random.IntN(16) == 0 {
			mutate(random, &m.sealed[random.IntN(2)])
		}
		seen[w.send(m)[0]]++
	}
	t.Logf("%v", seen)
	if w.leader.Users() != 0 || w.helper.Users() != 0 || seen[Accepted] != 0 {
		t.Errorf("leader counts %d, helper %d of reports that were changed", w.leader.Users(), w.helper.Users())
	}
	for _, o := range []Outcome{Unopened, BadLength, BadShare, BadProof} {
		if seen[o] == 0 {
			t.Errorf("none was refused as %v", o)
		}
	}
	if out := w.send(w.message(w.counts())); out[0] != Accepted {
		t.Errorf("after all of them an honest report is %v", out)
	}
}

// mutate changes a byte string so that it is another one.
func mutate(random *rand.Rand, b *[]byte) {
	c := bytes.Clone(*b)
	switch kind := random.IntN(8); {
	case kind == 0:
		c = append(c, byte(random.Uint32()))
	case kind == 1 && len(c) > 0:
		c = c[:random.IntN(len(c))]
	case len(c) > 0:
		c[random.IntN(len(c))] ^= byte(1 + random.IntN(255))
	}
	if bytes.Equal(c, *b) {
		c = append(c, 0)
	}
	*b = c
}

// FuzzReport: whatever a device seals for the two, nobody panics, and both count the same users.
func FuzzReport(f *testing.F) {
	w := newWorld(f, config(3, 2, 1<<20), 7)
	u, s := w.shard(w.counts())
	f.Add(u.Public, s.Leader, s.Helper, u.ID[:])
	f.Fuzz(func(t *testing.T, public, forLeader, forHelper, id []byte) {
		w := newWorld(t, config(3, 2, 4), 7)
		u := User{Public: public}
		copy(u.ID[:], id)
		m := message{users: []User{u}}
		m.seal([2][][]byte{{forLeader}, {forHelper}})
		w.send(m)
		if w.leader.Users() != w.helper.Users() {
			t.Errorf("leader counts %d, helper %d", w.leader.Users(), w.helper.Users())
		}
	})
}

// FuzzRequest: whatever bytes a leader signs as a request, the helper decides its users or passes it over, and counts
// nobody whom no device proved.
func FuzzRequest(f *testing.F) {
	w := newWorld(f, config(3, 2, 8), 7)
	w.give(w.message(w.counts(), w.counts()))
	r, _ := w.leader.Cut()
	f.Add(r.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRequest(b)
		if err != nil {
			return
		}
		w := newWorld(t, config(3, 2, 8), 7)
		w.desk.Request(r)
		jobs, ok := w.helper.Work()
		if !ok {
			return
		}
		for _, job := range jobs {
			job.Run(w.workers[helper])
		}
		reply, err := w.helper.Decide()
		if err == nil && len(reply.Outcomes) != r.users() {
			t.Errorf("%d outcomes of %d users", len(reply.Outcomes), r.users())
		}
	})
}

// Mutated requests, replies and shares of the other party: a helper that decides them and a leader that reads them do
// not panic, and what leader and helper count stays the same or the attempt ends.
func TestMutatedExchange(t *testing.T) {
	longtest.Sequential(t)
	n := 400
	if longtest.Run(t, "100,000 mutated messages of the exchange, not 400") {
		n = 100_000
	}
	random := rand.New(dptest.Source(t, 8))
	ended, counted, mutated := 0, 0, 0
	begun := time.Now()
	defer func() {
		fmt.Printf("MEASURED %d mutated messages of the exchange: %d attempts ended, %d counted, %.0f a second\n", mutated, ended,
			counted, float64(mutated)/time.Since(begun).Seconds())
	}()
	for i := 0; mutated < n; i++ {
		w := newWorld(t, config(3, 2, 8), uint64(i))
		w.give(w.message(w.counts(), w.counts()))
		r, _ := w.leader.Cut()
		b := r.Append(nil)
		if random.IntN(2) == 0 {
			mutate(random, &b)
			mutated++
		}
		got, err := DecodeRequest(b)
		if err != nil {
			continue
		}
		w.desk.Request(got)
		jobs, ok := w.helper.Work()
		if !ok {
			continue
		}
		for _, job := range jobs {
			job.Run(w.workers[helper])
		}
		reply, err := w.helper.Decide()
		w.must(err)
		b = reply.Append(nil)
		if random.IntN(2) == 0 {
			mutate(random, &b)
			mutated++
		}
		if reply, err = DecodeReply(b); err != nil {
			continue
		}
		if _, err := w.leader.Handle(reply); err != nil {
			ended++
			if w.leader.Over() == nil || w.leader.CanPrepare() {
				t.Fatal("an attempt goes on after leader and helper differed")
			}
		} else if w.leader.Users() > 0 {
			counted++
			if w.leader.Users() != w.helper.Users() {
				t.Fatalf("leader counts %d, helper %d", w.leader.Users(), w.helper.Users())
			}
		}
	}
	if ended == 0 || counted == 0 {
		t.Errorf("%d attempts ended, %d counted: want both", ended, counted)
	}
}
