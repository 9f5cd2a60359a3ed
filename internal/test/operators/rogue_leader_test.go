package operators

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// all are the records of round 1, attempt 1.
func (s *siege) all() []string {
	return []string{s.name.Open(1, 1), s.name.Join(1, 1), s.name.Share(1)}
}

// TestRogueLeader: a leader with the learner's, the broker's and devices' help gets one Share a round of an honest helper.
func TestRogueLeader(t *testing.T) {
	p := plan{rounds: 3, cohort: 3, minimum: 2}

	besiege(t, "asks twice, and after a restart", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		l := s.attempt(1, 1)
		l.fills(3)
		l.counted(l.released())
		first := s.shares(1)
		l.released()
		_ = one.stop()
		one = s.helps(s.liar())
		s.wait(5 * time.Second)
		l.released()
		s.same(first, s.shares(1))
		_ = one.stop()
	})

	besiege(t, "the broker forgets a released round over a restart, and it is opened again", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		l := s.attempt(1, 1)
		l.fills(3)
		l.released()
		first := s.shares(1)
		_ = one.stop()
		s.forgets(s.all()...)
		one = s.helps(s.liar())
		if s.opens(s.round(1, 1), 1).joined() || s.opens(s.round(1, 1), 2).joined() {
			s.t.Error("a released round is joined again")
		}
		s.same(first, s.shares(1)) // it is put again, as it was
		_ = one.stop()
	})

	besiege(t, "two Opens of one number", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		a := s.attempt(1, 1)
		a.fills(3)
		s.forgets(s.all()...)
		b := s.opens(s.round(1, 1), 1)
		if b.joined() {
			s.t.Error("a process joins two Opens of one number")
		}
		_ = one.stop()
		s.forgets(s.all()...)
		one = s.helps(s.liar())
		b = s.attempt(1, 1)
		b.fills(2)
		b.released()
		a.dead(1)
		_ = one.stop()
	})

	besiege(t, "two Rounds of one number", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		a := s.attempt(1, 1)
		a.fills(3)
		other := manifest.RoundOf(s.hash, 1, 1, []float64{1, 1, 1}, nil)
		s.forgets(append(s.all(), s.name.Round(1))...)
		s.put(s.ctx, s.name.Round(1), s.sign(s.learner, other))
		if s.opens(other, 2).joined() {
			s.t.Error("a process works on two Rounds of one number")
		}
		_ = one.stop()
		one = s.helps(s.liar())
		b := s.opens(other, 3)
		if !b.joined() {
			s.t.Fatal("the other Round is not joined by a new process")
		}
		if b.takes(a.report(&a.opening, s.users(1), nil)) == split.Accepted {
			s.t.Error("a report of one Round opens under the other")
		}
		b.fills(2)
		b.released()
		a.dead(1)
		_ = one.stop()
	})

	besiege(t, "two Tasks of one name", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		a := s.attempt(1, 1)
		a.fills(2)
		spare := a.report(&a.opening, s.users(1), nil)
		a.released()
		_ = one.stop()
		first, task := s.hash, s.task
		s.task = proto.CloneOf(task)
		s.task.Life[0]++
		body, err := stream.Marshal(s.task)
		s.must(err)
		s.hash = stream.HashOf(body)
		s.forgets(append(s.all(), s.name.Round(1), s.name.Task())...)
		one = s.helps(s.liar())
		s.announce(1)
		b := s.attempt(1, 1)
		if got := a.ends(); got != nil {
			s.t.Errorf("an attempt of another Task is answered: %v", got)
		}
		if b.takes(spare) == split.Accepted {
			s.t.Error("a report of one Task opens in the other")
		}
		_ = one.stop()
		s.task, s.hash = task, first
		s.forgets(append(s.all(), s.name.Round(1), s.name.Task())...)
		one = s.helps(s.liar())
		s.announce(1)
		if s.opens(s.round(1, 1), 1).joined() {
			s.t.Error("the released round of the first Task is joined again")
		}
		a.released()
		_ = one.stop()
	})

	for name, stream := range map[string]stream.Stream{"HELPER": stream.Joins, "ATTEMPTS": stream.Attempts} {
		besiege(t, name+" alone is rolled back", p, func(s *siege) {
			one := s.helps(s.liar())
			s.announce(1)
			restore := s.broker.Save(s.name, stream)
			l := s.attempt(1, 1)
			l.fills(2)
			restore()
			l.released()
			restore()
			if name == "HELPER" {
				s.forgets(s.name.Open(1, 1))
			}
			if s.opens(s.round(1, 1), 1).joined() || s.opens(s.round(1, 1), 2).joined() {
				s.t.Error("a released round is joined again")
			}
			_ = one.stop()
			restore()
			one = s.helps(s.liar())
			s.wait(5 * time.Second)
			l.released()
			_ = one.stop()
		})
	}

	besiege(t, "two processes with one folder", p, func(s *siege) {
		one := s.helps(s.liar())
		if _, err := folder.Open(s.helperDir, time.Second); err == nil || !strings.Contains(err.Error(), disk.ErrHeld.Error()) {
			s.t.Errorf("a second process has the folder: %v", err)
		}
		_ = one.stop()
	})

	besiege(t, "two folders of one identity", p, func(s *siege) {
		dir, beside := s.helperDir, s.helperDir+".copy"
		one := s.helps(s.liar())
		s.announce(1)
		l := s.attempt(1, 1)
		s.copies(dir, beside)
		l.fills(3)
		s.helperDir = beside
		two := s.helps(s.liar())
		s.wait(time.Second)
		for range 5 { // the copy replies too, that it holds nothing
			l.ends()
			s.wait(time.Second)
		}
		s.opens(s.round(1, 1), 2)
		s.ends(two, folder.ErrOlder)
		l.released()
		_ = one.stop()
	})

	// Not tested here: a folder that was put back, with a broker that hides the Share and a leader that does not show it,
	// releases the round again. The theorem assumes an operator who keeps its folder.
	besiege(t, "a folder put back, behind a broker that hides the Share from it, with a leader that tells", p, func(s *siege) {
		saved := s.helperDir + ".saved"
		s.copies(s.helperDir, saved)
		one := s.helps(s.liar())
		s.announce(1)
		l := s.attempt(1, 1)
		l.fills(3)
		l.released()
		share := s.shares(1)
		_ = one.stop()
		s.helperDir = saved
		hides := s.liar()
		hides.hides = func(subject string) bool { return subject == s.name.Share(1) || subject == s.name.Join(1, 1) }
		s.announce(2)
		one = s.helps(hides)
		l = s.attempt(2, 1)
		if got, ok := l.says(&split.Ping{X: l.x, Highest: 1}).(*split.Pong); !ok || got.Show != 1 {
			s.t.Errorf("the helper does not ask for the Share above its mark: %+v", got)
		}
		l.raw(share)
		s.ends(one, folder.ErrOlder)
	})

	besiege(t, "forged wakes and records, and old ones", p, func(s *siege) {
		l := s.liar()
		stranger := identity(s.t)
		forged := func(subject string, m proto.Message) stream.Wake {
			return stream.Wake{Subject: subject, Data: s.sign(stranger, m)}
		}
		var old []stream.Wake
		l.wakes = func(one stream.Wake) []stream.Wake {
			old = append(old, one)
			return append([]stream.Wake{
				{Subject: s.name.Round(9), Data: []byte("noise")}, {Subject: s.name.Open(1, 1)}, {},
				forged(s.name.Round(7), s.round(7, 3)),
				forged(s.name.Open(1, 9), &wire.Open{Version: stream.Version, TaskHash: s.hash[:], Round: 1, Attempt: 9,
					ManifestHash: s.hash[:], Suite: s.task.Suite, PublicKey: []byte{1}, Instance: make([]byte, 16)}),
			}, old...)
		}
		l.shows = func(subject string) []byte {
			if subject == s.name.Share(1) || subject == s.name.Join(1, 1) {
				return []byte("noise")
			}
			return nil
		}
		one := s.helps(l)
		s.announce(1)
		if s.opens(s.round(1, 1), 1).joined() {
			s.t.Error("an attempt is joined whose Join seems to stand")
		}
		l.lies(func(l *liar) { l.shows = nil })
		a := s.attempt(1, 2)
		a.fills(3)
		a.released()
		if s.find(s.name.Join(1, 9)) != nil || s.find(s.name.Share(7)) != nil {
			s.t.Error("a stranger's record is acted upon")
		}
		s.announce(2)
		b := s.attempt(2, 1)
		b.fills(2)
		b.released()
		_ = one.stop()
	})

	besiege(t, "ends below the minimum", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		l := s.attempt(1, 1)
		l.fills(1)
		f := split.Finish{X: l.x, Requests: 1, Users: 1}
		if got, ok := l.says(&f).(*split.Differs); !ok {
			s.t.Errorf("an end of one user is answered with %v", got)
		}
		if s.shares(1) != nil {
			s.t.Error("a Share below the minimum")
		}
		_ = one.stop()
	})

	besiege(t, "finishes an attempt while the next one is being joined", p, func(s *siege) {
		one := (*process)(nil)
		var l *rogue
		one = s.help(s.ctx, func(c *helper.Config) {
			c.Folder = &joining{Folder: c.Folder, meanwhile: func(n int) {
				if n == 2 {
					l.released()
				}
			}}
		})
		s.announce(1)
		l = s.attempt(1, 1)
		l.fills(3)
		if s.opens(s.round(1, 1), 2).joined() {
			s.t.Error("a released round is joined again")
		}
		l.released()
		_ = one.stop()
	})

	besiege(t, "the disk of the helper fails at the mark, and the process dies", p, func(s *siege) {
		full := true
		failing := func(c *helper.Config) {
			c.Records, c.Exchange = s.liarOf()
			c.Folder = &fullDisk{Folder: c.Folder, full: &full}
		}
		one := s.help(s.ctx, failing)
		s.announce(1)
		a := s.attempt(1, 1)
		a.fills(3)
		if got := a.ends(); got != nil {
			s.t.Errorf("an end that the folder does not know is answered with %v", got)
		}
		_ = one.stop()
		one = s.help(s.ctx, failing)
		s.wait(5 * time.Second)
		a.dead(0)
		full = false
		b := s.attempt(1, 2)
		b.fills(2)
		b.released()
		a.dead(1)
		_ = one.stop()
	})
}

// liarOf returns the ports of an honest process behind a broker that tells the truth, and is watched.
func (s *siege) liarOf() (stream.Records, stream.ExchangeServer) {
	l := s.liar()
	return l, l
}

// joining is a folder during whose Join something happens.
type joining struct {
	helper.Folder
	n         int
	meanwhile func(n int)
}

func (f *joining) Join(task stream.Hash, process split.Instance) error {
	f.n++
	f.meanwhile(f.n)
	return f.Folder.Join(task, process)
}

// A fullDisk takes no mark.
type fullDisk struct {
	helper.Folder
	full *bool
}

func (f *fullDisk) Release(x split.Attempt, signed []byte) (split.HelperMark, error) {
	if *f.full {
		return split.HelperMark{}, context.DeadlineExceeded
	}
	return f.Folder.Release(x, signed)
}

// TestRogueLeaderReports: what a rogue leader can make of reports of honest devices, the helper counts once, or not.
func TestRogueLeaderReports(t *testing.T) {
	p := plan{rounds: 2, cohort: 3, minimum: 2}
	besiege(t, "shows one report in many guises", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		l := s.attempt(1, 1)
		users := s.users(3)
		a, b := l.bundle(l.report(&l.opening, users[:1], nil)), l.bundle(l.report(&l.opening, users[1:2], nil))
		change := func(of split.Bundle, how func(*split.User)) split.Bundle {
			u := of.Users[0]
			how(&u)
			return split.Bundle{Users: []split.User{u}, Sealed: of.Sealed}
		}
		s.expect("the public share of another", l.asks(1, change(a, func(u *split.User) { u.Public = b.Users[0].Public })), split.Unopened)
		half := append(append([]byte{}, b.Users[0].Public[:32]...), a.Users[0].Public[32:]...)
		s.expect("half a public share swapped", l.asks(2, change(a, func(u *split.User) { u.Public = half })), split.Unopened)
		s.expect("the id of another", l.asks(3, change(a, func(u *split.User) { u.ID = b.Users[0].ID })), split.Unopened)
		s.expect("two users of one ciphertext", l.asks(4, split.Bundle{Users: []split.User{a.Users[0], a.Users[0]}, Sealed: a.Sealed}),
			split.Unopened, split.Unopened)
		s.expect("a verifier share of another", l.asks(5, change(a, func(u *split.User) { u.Prep = b.Users[0].Prep })), split.BadProof)
		s.expect("the right one, after it was refused", l.asks(6, a), split.Duplicate)
		s.expect("one report twice in a request", l.asks(7, b, b), split.Accepted, split.Duplicate)
		s.expect("one report again", l.asks(8, b), split.Duplicate)
		_ = one.stop()
	})

	besiege(t, "shows a report of one attempt in the next", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		a := s.attempt(1, 1)
		bundle := a.bundle(a.report(&a.opening, s.users(1), nil))
		b := s.attempt(1, 2)
		s.expect("a report of another attempt", b.asks(1, bundle), split.Unopened)
		_ = one.stop()
	})

	// A verdict on a shifted share would be a question about the counts. It is refused whatever they are.
	besiege(t, "shifts its verifier share", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		l := s.attempt(1, 1)
		n := uint64(0)
		for i := range 16 {
			u := s.users(3)[i%2 : i%2+1]
			bundle := l.bundle(l.report(&l.opening, u, nil))
			l.core.Erase()
			l.begins()
			bundle.Users[0].Prep[16*(i%3)] ^= byte(1 + i)
			n++
			s.expect("a shifted share", l.asks(n, bundle), split.BadProof)
		}
		_ = one.stop()
	})

	besiege(t, "fills the helper's memory", p, func(s *siege) {
		one := s.helps(s.liar())
		s.announce(1)
		l := s.attempt(1, 1)
		bundle := l.bundle(l.report(&l.opening, s.users(1), nil))
		crowd := make([]split.User, 20_000)
		if got := l.says(&split.Request{X: l.x, N: 1, Bundles: []split.Bundle{{Users: crowd, Sealed: bundle.Sealed}}}); got != nil {
			if _, ok := got.(*split.Differs); !ok {
				s.t.Errorf("a request of %d users is decided", len(crowd))
			}
		}
		if got, ok := l.says(&split.Ping{X: l.x}).(*split.Gone); !ok {
			s.t.Errorf("an attempt goes on whose leader sends what none sends: %v", got)
		}
		l = s.attempt(1, 2)
		bundle = l.bundle(l.report(&l.opening, s.users(1), nil))
		for n := uint64(2); n < 500; n++ { // the first is missing: none has its turn
			_ = l.send(l.sealed(&split.Request{X: l.x, N: n, Bundles: []split.Bundle{bundle}}))
		}
		s.wait(5 * time.Second)
		s.expect("the first request", l.asks(1, bundle), split.Accepted)
		s.wait(5 * time.Second)
		if got, ok := l.says(&split.Ping{X: l.x}).(*split.Pong); !ok {
			s.t.Errorf("the attempt does not live on: %v", got)
		}
		_ = one.stop()
	})

	besiege(t, "strangers speak, and what was said comes back", p, func(s *siege) {
		reasons := make(chan helper.Reason, 1000)
		one := s.help(s.ctx, func(c *helper.Config) { c.Observer.Message = func(r helper.Reason) { reasons <- r } })
		s.announce(1)
		l := s.attempt(1, 1)
		l.fills(2)
		_, err := l.core.Prepare(split.Entropy{}, split.Note{})
		s.must(err)
		helpers, err := seal.LoadIdentity(s.helperDir + "/identity.pem")
		s.must(err)
		for _, id := range []*seal.Identity{s.learner, helpers, identity(s.t)} {
			stage := s.stage
			s.stage = id
			if got := l.raw(s.signed(&split.Finish{X: l.x, Requests: 2, Users: 2})); got != nil {
				s.t.Error("a stranger's end is answered")
			}
			s.stage = stage
		}
		for len(reasons) > 0 {
			if r := <-reasons; r == helper.Sealed || r == helper.Strange {
				s.t.Errorf("a stranger's message is %v", r)
			}
		}
		pong := l.raw(s.signed(&split.Ping{X: l.x}))
		if l.raw(pong) != nil || l.raw(l.open) != nil {
			s.t.Error("a message that is none of the exchange is answered")
		}
		if s.shares(1) != nil {
			s.t.Error("a stranger got a Share")
		}
		_ = one.stop()
	})
}
