package split

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/randomizer"
)

func TestConfigRefuses(t *testing.T) {
	for what, change := range map[string]func(*Config){
		"levels that are not 2^k - 1": func(c *Config) { c.Params.Levels = 4 },
		"no floors":                   func(c *Config) { c.Params.FloorTrials = 0 },
		"noise of users":              func(c *Config) { c.Params.Trials = 2 },
		"another coin":                func(c *Config) { c.Params.Coin = randomizer.Fair / 2 },
		"a window":                    func(c *Config) { c.Params.FloorTrials, c.Params.Window = 0, 8 },
		"no cohort":                   func(c *Config) { c.Cohort = 0 },
		"a minimum above the cohort":  func(c *Config) { c.Minimum = 9 },
		"no minimum":                  func(c *Config) { c.Minimum = 0 },
		"bundles above the cohort":    func(c *Config) { c.MaxBundle = 9 },
		"round 0":                     func(c *Config) { c.X.Round = 0 },
		"attempt 0":                   func(c *Config) { c.X.Number = 0 },
		"requests above the limit":    func(c *Config) { c.MaxRequest = MaxRequestBytes + 1 },
		"a report above the limit":    func(c *Config) { c.Params.Dim = maxBitsShared },
		"a cohort above the limit":    func(c *Config) { c.Cohort = maxCohort + 1 },
	} {
		cfg := config(2, 2, 8)
		change(&cfg)
		if _, err := NewLeader(cfg); err == nil {
			t.Errorf("%s: a leader is made", what)
		}
		if _, err := NewHelper(cfg); err == nil {
			t.Errorf("%s: a helper is made", what)
		}
	}
}

// A lattice of Prio3 has 2^k - 1 levels; a chunk is at least the power of two that it interpolates at, and no gadget call
// is wasted.
func TestLatticeAndChunk(t *testing.T) {
	for levels, want := range map[uint32]int{1: 1, 3: 2, 31: 5, 1<<30 - 1: 30} {
		if got, err := BitsOf(levels); got != want || err != nil {
			t.Errorf("%d levels: %d bits, %v", levels, got, err)
		}
	}
	for _, levels := range []uint32{0, 2, 4, 30, 1 << 30, 1<<31 - 1} {
		if got, err := BitsOf(levels); err == nil {
			t.Errorf("%d levels: %d bits", levels, got)
		}
	}
	for n := 1; n < 3000; n++ {
		c := int(Params{Dim: n, Bits: 1}.chunk())
		calls := (n + c - 1) / c
		points := 2
		for points < calls+1 {
			points *= 2
		}
		if c < 1 || calls > points-1 || points > 2 && c < points {
			t.Errorf("%d bits: chunks of %d, %d calls, %d points", n, c, calls, points)
		}
	}
	if _, err := Sizes(0, 1); err == nil {
		t.Error("no coordinates have sizes")
	}
	if s, err := Sizes(785, 5); err != nil || s.Leader > 70_000 || s.Helper != 64 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestShardRefuses(t *testing.T) {
	w := newWorld(t, config(3, 2, 4), 1)
	for _, counts := range [][]uint32{nil, {1, 2}, {1, 2, 3, 0}, {1, 4, 2}, {1, 2, 1 << 31}} {
		if _, err := w.devices.Shard(counts, [16]byte{}, [32]byte{}); err == nil {
			t.Errorf("%d counts, one of them too large or their number wrong, are shared", len(counts))
		} else if strings.Contains(err.Error(), "2147483648") {
			t.Errorf("the error has a count: %v", err)
		}
	}
}

// The leader takes no more than the cohort and the window have room for, whatever waits for the helper.
func TestRoom(t *testing.T) {
	w := newWorld(t, config(2, 2, 6), 2)
	for range 2 {
		w.give(w.message(w.counts(), w.counts()))
	}
	w.give(w.message(w.counts(), w.counts(), w.counts())) // overshoots by a bundle's users less one
	if w.leader.Room() || w.leader.Unanswered() != 7 {
		t.Errorf("room with %d of 6 users unanswered: %v", w.leader.Unanswered(), w.leader.Room())
	}
	refused := w.message(w.counts())
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a bundle is taken without room")
			}
		}()
		w.leader.Take(refused.users, nil, nil)
	}()
	if w.leader.CanPrepare() {
		t.Error("the attempt may end with users unanswered")
	}
	if _, err := w.leader.Prepare(Entropy{}, Note{}); err == nil {
		t.Error("it ends with users unanswered")
	}
	w.exchange()
	if !(w.leader.Users() >= w.cfg.Cohort) || !w.leader.CanPrepare() || w.leader.Users() != 7 {
		t.Errorf("%v", w.leader)
	}
	// By bytes of output shares: the helper is away.
	cfg := config(1<<17, 1, 1000) // 2 MiB each
	cfg.MaxBundle = 1
	l, err := NewLeader(cfg)
	w.must(err)
	taken := 0
	sizes, _ := Sizes(1<<17, 1)
	for l.Room() {
		job, out := l.Take([]User{{ID: [16]byte{byte(taken)}, Public: make([]byte, sizes.Public)}}, nil, nil)
		if job == nil {
			t.Fatal(out)
		}
		taken++
	}
	if taken != windowShares>>21 {
		t.Errorf("%d output shares of 2 MiB are taken", taken)
	}
}

// Refused users leave room: the attempt goes on until the cohort is counted.
func TestRefusalsLeaveRoom(t *testing.T) {
	w := newWorld(t, config(4, 3, 2), 3)
	for range 3 {
		u, s := w.shard([]uint32{7, 0, 0, 0})
		element(s.Leader, 0, 1)
		w.rejoin(&u, s)
		m := message{users: []User{u}}
		m.seal([2][][]byte{{s.Leader}, {s.Helper}})
		w.send(m)
		if !w.leader.Room() || w.leader.Unanswered() != 0 {
			t.Fatalf("%v", w.leader)
		}
	}
	w.send(w.message(w.counts()))
	if !w.leader.Room() || (w.leader.Users() >= w.cfg.Cohort) {
		t.Errorf("%v", w.leader)
	}
	w.send(w.message(w.counts()))
	if w.leader.Room() || !(w.leader.Users() >= w.cfg.Cohort) || w.leader.rejects[BadProof] != 3 {
		t.Errorf("%v refused %v", w.leader, w.leader.rejects)
	}
}

// A request holds at most 256 users and MaxRequest bytes, bundles whole, and at most a window of them is unanswered.
func TestCut(t *testing.T) {
	cfg := config(2, 2, 1000)
	cfg.MaxBundle = 100
	w := newWorld(t, cfg, 4)
	for range 4 {
		var counts [][]uint32
		for range 100 {
			counts = append(counts, w.counts())
		}
		w.give(w.message(counts...))
	}
	if users, full := w.leader.Pending(); users != 400 || !full {
		t.Errorf("%d users pending, full %v", users, full)
	}
	for range 2 {
		if r, _ := w.leader.Cut(); r.users() != 200 || len(r.Bundles) != 2 {
			t.Errorf("a request of %d users in %d bundles", r.users(), len(r.Bundles))
		}
	}
	cfg.MaxBundle, cfg.MaxRequest = 1, 3*(leastBundle+leastUser+64+16*18+32+32+128)/2
	w = newWorld(t, cfg, 5)
	sent := 0
	for w.leader.Room() && sent < Window+3 {
		w.give(w.message(w.counts()))
		if r, ok := w.leader.Cut(); ok {
			sent++
			if size := len(r.Append(nil)); size > cfg.MaxRequest || r.users() != 1 {
				t.Fatalf("a request of %d bytes, %d users, the most is %d", size, r.users(), cfg.MaxRequest)
			}
		} else if sent != Window {
			t.Fatalf("%d requests are sent", sent)
		} else {
			break
		}
	}
	if got := len(w.leader.Unreplied()); got != Window {
		t.Errorf("%d requests are unanswered", got)
	}
	cfg.MaxRequest = 300
	w = newWorld(t, cfg, 6)
	if out := w.give(w.message(w.counts())); out[0] != BadLength {
		t.Errorf("a bundle that no request holds is %v", out)
	}
}

// A job that comes back after the attempt ended changes nothing, at both parties.
func TestLateJobs(t *testing.T) {
	w := newWorld(t, config(2, 2, 6), 7)
	m := w.message(w.counts())
	job, _ := w.leader.Take(m.users, m.sealed[leader], m.sealed[helper])
	w.give(w.message(w.counts()))
	r, _ := w.leader.Cut()
	w.desk.Request(r)
	jobs, _ := w.helper.Work()
	other := r
	other.Bundles = nil
	if a := w.desk.Request(other); a.Differs == nil {
		t.Fatalf("%+v", a)
	}
	for _, j := range jobs {
		j.Run(w.workers[helper])
	}
	if _, err := w.helper.Decide(); !errors.Is(err, errDiffers) {
		t.Errorf("a request is decided after the attempt ended: %v", err)
	}
	w.leader.Erase()
	job.Run(w.workers[leader])
	if out := w.leader.Add(job); out != nil {
		t.Errorf("%v", out)
	}
	if w.leader.Room() || w.leader.CanPrepare() || w.leader.Over() == nil {
		t.Errorf("an erased leader goes on: %v", w.leader)
	}
	if _, ok := w.leader.Cut(); ok {
		t.Error("an erased leader sends")
	}
}

// A helper that accepts whom the leader refused, or whose prep message is another, ends the attempt.
func TestLyingHelper(t *testing.T) {
	for what, change := range map[string]func(r *Reply){
		"outcome of another user":  func(r *Reply) { r.Outcomes[0], r.Outcomes[1] = r.Outcomes[1], r.Outcomes[0] },
		"accepts whom we refused":  func(r *Reply) { r.Outcomes[1] = Accepted; r.Messages = append(r.Messages, PrepMessage{}) },
		"another prep message":     func(r *Reply) { r.Messages[0][0]++ },
		"a message too few":        func(r *Reply) { r.Messages = nil },
		"an outcome too few":       func(r *Reply) { r.Outcomes = r.Outcomes[:1] },
		"the digest of another":    func(r *Reply) { r.Request[0]++ },
		"refuses, chain unchanged": func(r *Reply) { r.Outcomes[0] = BadProof; r.Messages = nil },
	} {
		w := newWorld(t, config(4, 3, 6), 8)
		good, g := w.shard(w.counts())
		bad, b := w.shard(w.counts())
		element(b.Leader, 0, 1)
		m := message{users: []User{good, bad}}
		m.seal([2][][]byte{{g.Leader, b.Leader}, {g.Helper, b.Helper}})
		if out := w.give(m); !slices.Equal(out, []Outcome{Accepted, BadShare}) {
			t.Fatal(out)
		}
		r, _ := w.leader.Cut()
		reply := w.decide(r)
		if !slices.Equal(reply.Outcomes, []Outcome{Accepted, Refused}) {
			t.Fatal(reply.Outcomes)
		}
		honest := reply.Chain
		reply.Outcomes, reply.Messages = slices.Clone(reply.Outcomes), slices.Clone(reply.Messages)
		change(&reply)
		if what != "refuses, chain unchanged" {
			reply.Chain = nextChain(firstChain(w.cfg.X), reply.Request, reply.Outcomes)
		} else if reply.Chain != honest {
			t.Fatal("the chain moved")
		}
		if _, err := w.leader.Handle(reply); !errors.Is(err, errDiffers) || w.leader.Over() == nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// After a report was prepared its input shares are overwritten, wherever they came from; after the end of an attempt
// neither party's memory holds its floored share. No string of the types shows a share or a key.
func TestSharesAreErased(t *testing.T) {
	w := newWorld(t, config(3, 2, 6), 9)
	var buffers [][]byte
	for role, worker := range w.workers {
		open := openAs(byte(role))
		worker.open = func(sealed []byte, users []User) ([][]byte, error) {
			shares, err := open(sealed, users)
			buffers = append(buffers, shares...)
			return shares, err
		}
	}
	w.send(w.message(w.counts(), w.counts()))
	if len(buffers) != 4 {
		t.Fatalf("%d shares were opened", len(buffers))
	}
	for _, b := range buffers {
		if !bytes.Equal(b, make([]byte, len(b))) {
			t.Error("an input share is left in memory")
		}
	}
	p, err := w.leader.Prepare(Entropy{}, Note{})
	w.must(err)
	if paths := dptest.Dump(w.leader).Holds(p.Aggregate[:elementBytes]); len(paths) > 0 {
		t.Errorf("the leader holds its share at %v", paths)
	}
	users := []User{{Prep: []byte("secret")}}
	bundle := Bundle{Users: users, Sealed: []byte("secret")}
	job := &Job{bundle: bundle}
	for _, v := range []any{w.leader, *w.leader, w.helper, *w.helper, p, users[0], bundle,
		Request{Bundles: []Bundle{bundle}}, job, *job, Shares{Leader: []byte("secret")}, VerifyKey{1},
		Entropy{Secret: [32]byte{1}}} {
		plain := fmt.Sprint(v)
		if strings.ContainsAny(plain, "[{") {
			t.Errorf("%T prints as %s", v, plain)
		}
		for _, format := range []string{"%+v", "%#v", "%s", "%d", "%x", "%q"} {
			if text := fmt.Sprintf(format, v); text != plain {
				t.Errorf("%T prints by %s as %s, want %s", v, format, text, plain)
			}
		}
		var text strings.Builder
		w.must(template.Must(template.New("").Parse("{{.}}")).Execute(&text, v)) // which follows pointers
		if text.String() != plain {
			t.Errorf("%T prints in a template as %s, want %s", v, text.String(), plain)
		}
	}
}

// Waiting grows from four round trips, and from a second, to its bound.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		trip, replies time.Duration
		times         int
		want          time.Duration
	}{
		{time.Millisecond, 0, 0, 250 * time.Millisecond}, {100 * time.Millisecond, 0, 0, 400 * time.Millisecond},
		{0, time.Second, 0, 1250 * time.Millisecond}, {0, 0, 2, time.Second}, {0, 0, 5, 7500 * time.Millisecond},
		{0, 0, 1 << 40, 7500 * time.Millisecond},
	} {
		if got := Again(c.trip, c.replies, 30*time.Second, c.times); got != c.want {
			t.Errorf("%v, %v, %d times: %v, want %v", c.trip, c.replies, c.times, got, c.want)
		}
	}
	for times, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute,
		1 << 40: time.Minute} {
		if got := After(times); got != want {
			t.Errorf("after %d deaths %v, want %v", times, got, want)
		}
	}
}
