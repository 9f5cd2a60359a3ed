package split

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/randomizer"
)

// config returns the attempt that most tests use: d coordinates of k bits, floors of 1000 trials.
func config(d, k int, cohort uint64) Config {
	x := sampleAttempt()
	return Config{
		X: x,
		Params: randomizer.Params{Dim: d, ClipNorm: 1, Levels: 1<<k - 1, FloorTrials: 1000,
			Coin: randomizer.Fair},
		Context: Hash{31}, Key: VerifyKey{32}, Cohort: cohort, Minimum: 1, MaxBundle: min(cohort, 4),
	}
}

// A world is one attempt with a leader, a helper at its desk, and devices.
type world struct {
	t       testing.TB
	cfg     Config
	source  rand.Source
	leader  *Leader
	desk    *Desk
	helper  *Helper
	workers [2]*Worker
	devices *Sharing
	users   int
}

func newWorld(t testing.TB, cfg Config, seed uint64) *world {
	t.Helper()
	w := &world{t: t, cfg: cfg.withDefaults(), source: rand.NewChaCha8(dptest.Seed(seed))}
	var err error
	w.leader, err = NewLeader(cfg)
	w.must(err)
	w.helper, err = NewHelper(cfg)
	w.must(err)
	w.desk = NewDesk(Instance{33}, HelperMark{})
	w.desk.Hold(w.helper)
	w.workers[leader], err = w.leader.Worker(openAs(leader))
	w.must(err)
	w.workers[helper], err = w.helper.Worker(openAs(helper))
	w.must(err)
	w.devices, err = NewSharing(cfg.sharing(), cfg.X.Open, cfg.X.Join)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// bytes32 returns 32 bytes that follow from the world's seed.
func (w *world) bytes32() (out [32]byte) {
	for i := range 4 {
		binary.LittleEndian.PutUint64(out[8*i:], w.source.Uint64())
	}
	return out
}

// counts returns counts in 0..g.
func (w *world) counts() []uint32 {
	out := make([]uint32, w.cfg.Params.Dim)
	for j := range out {
		out[j] = uint32(w.source.Uint64()) & w.cfg.Params.Levels
	}
	return out
}

// A message represents a device's message: a bundle with both ciphertexts.
type message struct {
	users  []User
	sealed [2][]byte
}

// shard shares counts under a new id.
func (w *world) shard(counts []uint32) (User, Shares) {
	w.t.Helper()
	id := ID(w.bytes32(), w.cfg.X.Open, w.cfg.X.Join)
	s, err := w.devices.Shard(counts, id, w.bytes32())
	w.must(err)
	w.users++
	return User{ID: id, Public: s.Public}, s
}

// message seals the counts of some users together.
func (w *world) message(counts ...[]uint32) message {
	w.t.Helper()
	var m message
	var parts [2][][]byte
	for _, c := range counts {
		u, s := w.shard(c)
		m.users = append(m.users, u)
		parts[leader], parts[helper] = append(parts[leader], s.Leader), append(parts[helper], s.Helper)
	}
	m.seal(parts)
	return m
}

func (m *message) seal(parts [2][][]byte) {
	for role := range m.sealed {
		m.sealed[role] = sealAs(byte(role), m.users, parts[role])
	}
}

// sealAs replaces HPKE: it binds the associated data, and hides nothing.
func sealAs(role byte, users []User, parts [][]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(tag(role, users, body), body...)
}

func tag(role byte, users []User, body []byte) []byte {
	h := sha256.New()
	h.Write([]byte{role})
	h.Write(AssociatedData(users))
	h.Write(body)
	return h.Sum(nil)
}

func openAs(role byte) Opener {
	return func(sealed []byte, users []User) ([][]byte, error) {
		if len(sealed) < sha256.Size {
			return nil, errors.New("short")
		}
		body := bytes.Clone(sealed[sha256.Size:])
		if !bytes.Equal(sealed[:sha256.Size], tag(role, users, body)) || len(body)%len(users) != 0 {
			return nil, errors.New("another tag")
		}
		size := len(body) / len(users)
		var out [][]byte
		for range users {
			out = append(out, body[:size:size])
			body = body[size:]
		}
		return out, nil
	}
}

// give takes a message at the leader, opens it and adds it.
func (w *world) give(m message) []Outcome {
	w.t.Helper()
	users := append([]User(nil), m.users...)
	job, out := w.leader.Take(users, m.sealed[leader], m.sealed[helper])
	if job == nil {
		return []Outcome{out}
	}
	job.Run(w.workers[leader])
	return w.leader.Add(job)
}

// silent reports whether nothing is answered.
func silent(a Answer) bool { return reflect.DeepEqual(a, Answer{}) }

// decide runs the helper's work on one request, which must not end the attempt.
func (w *world) decide(r Request) Reply {
	w.t.Helper()
	if got := w.desk.Request(r); !silent(got) {
		w.t.Fatalf("request %d is answered with %+v", r.N, got)
	}
	jobs, ok := w.helper.Work()
	if !ok {
		w.t.Fatalf("request %d is not worked on", r.N)
	}
	for _, job := range jobs {
		job.Run(w.workers[helper])
	}
	reply, err := w.helper.Decide()
	w.must(err)
	return reply
}

// exchange sends all that is pending through the helper and returns the decisions.
func (w *world) exchange() (all []Decision) {
	w.t.Helper()
	for {
		r, ok := w.leader.Cut()
		if !ok {
			return all
		}
		decided, err := w.leader.Handle(w.decide(r))
		w.must(err)
		all = append(all, decided...)
	}
}

// send gives a message and returns the outcome of each user: the leader's if it refused the user.
func (w *world) send(m message) []Outcome {
	w.t.Helper()
	out := w.give(m)
	for _, d := range w.exchange() {
		for i, u := range m.users {
			if u.ID == d.ID && i < len(out) && out[i] == Accepted {
				out[i] = d.Outcome
			}
		}
	}
	return out
}

// finish ends the attempt and returns the release.
func (w *world) finish() (Release, Prepared, Share) {
	w.t.Helper()
	p, err := w.leader.Prepare(Entropy{Fresh: w.bytes32(), Secret: [32]byte{34}}, Note{Cutoff: 35})
	w.must(err)
	kept := p
	kept.Aggregate = bytes.Clone(p.Aggregate)
	answer := w.desk.Finish(p.Finish, Entropy{Fresh: w.bytes32(), Secret: [32]byte{36}})
	if answer.Commit == nil {
		w.t.Fatalf("finish is answered with %+v", answer)
	}
	share := *answer.Commit
	answer = w.desk.Committed(HelperMark{X: share.X, Signed: signed(share)})
	e := NewEnding(p)
	e.Stored(true)
	got, err := readSigned(answer.Signed)
	w.must(err)
	e.Share(got, answer.Signed)
	e.Released(true)
	r, err := e.Release(w.cfg.Params)
	w.must(err)
	return r, kept, share
}

// add adds counts to sum.
func add(sum []uint64, counts []uint32) {
	for j, c := range counts {
		sum[j] += uint64(c)
	}
}

// floors returns both parties' floors of a finish, for entropies as finish draws them.
func floorsOf(t testing.TB, cfg Config, f Finish, e [2]Entropy) (out [2][]uint64) {
	t.Helper()
	noise, err := randomizer.NewBinomial(cfg.Params.FloorTrials, cfg.Params.Coin)
	if err != nil {
		t.Fatal(err)
	}
	for role := range out {
		b := floor(noise, cfg.Params.Dim, floorSeed(e[role], byte(role), f))
		for ; len(b) > 0; b = b[elementBytes:] {
			out[role] = append(out[role], binary.LittleEndian.Uint64(b))
		}
	}
	return out
}
