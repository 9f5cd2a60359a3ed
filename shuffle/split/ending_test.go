package split

import (
	"errors"
	"slices"
	"testing"
)

// at returns an attempt of a round.
func at(round, number uint64, open byte) Attempt {
	return Attempt{Round: round, Number: number, Open: Hash{open}, Join: Hash{open}}
}

// Every step on the leader's folder fails where another process went further, and changes nothing then.
func TestLeaderMarks(t *testing.T) {
	none := Attempt{}
	for _, c := range []struct {
		what         string
		marks        LeaderMarks
		x            Attempt
		prepare, rel bool
		drop         bool
	}{
		{"nothing", LeaderMarks{}, at(2, 1, 1), true, false, false},
		{"itself", LeaderMarks{Prepared: at(2, 1, 1)}, at(2, 1, 1), true, true, true},
		{"an earlier attempt", LeaderMarks{Prepared: at(2, 1, 1)}, at(2, 2, 2), true, false, false},
		{"a later attempt", LeaderMarks{Prepared: at(2, 3, 3)}, at(2, 2, 2), false, false, false},
		{"the same number, other hashes", LeaderMarks{Prepared: at(2, 1, 9)}, at(2, 1, 1), false, false, false},
		{"an earlier round", LeaderMarks{Prepared: at(1, 7, 7), Released: at(1, 7, 7)}, at(2, 1, 1), true, false, false},
		{"a later round", LeaderMarks{Prepared: at(3, 1, 3)}, at(2, 2, 2), false, false, false},
		{"its own release", LeaderMarks{Prepared: at(2, 1, 1), Released: at(2, 1, 1)}, at(2, 1, 1), false, true, false},
		{"another's release", LeaderMarks{Prepared: at(2, 2, 2), Released: at(2, 1, 1)}, at(2, 2, 2), false, false, true},
		{"a release of a later round", LeaderMarks{Prepared: none, Released: at(3, 1, 1)}, at(2, 2, 2), false, false, false},
	} {
		for step, s := range map[string]struct {
			do   func(LeaderMarks, Attempt) (LeaderMarks, bool)
			want bool
			then LeaderMarks
		}{
			"prepare": {LeaderMarks.Prepare, c.prepare, LeaderMarks{c.x, c.marks.Released}},
			"release": {LeaderMarks.Release, c.rel, LeaderMarks{c.marks.Prepared, c.x}},
			"drop":    {LeaderMarks.Drop, c.drop, LeaderMarks{none, c.marks.Released}},
		} {
			got, ok := s.do(c.marks, c.x)
			if !s.want {
				s.then = c.marks
			}
			if ok != s.want || got != s.then {
				t.Errorf("%s where the folder has %s: %v, %v", step, c.what, ok, got)
			}
		}
	}
}

func TestFind(t *testing.T) {
	none := Attempt{}
	for _, c := range []struct {
		what   string
		marks  LeaderMarks
		share  Attempt
		marked uint64
		want   Finding
	}{
		{"nothing", LeaderMarks{}, none, 0, Open},
		{"prepared of the round before", LeaderMarks{Prepared: at(1, 1, 1), Released: at(1, 1, 1)}, none, 1, Open},
		{"prepared, no share", LeaderMarks{Prepared: at(2, 1, 1)}, none, 0, Resume},
		{"prepared, no share seen, helper has marked", LeaderMarks{Prepared: at(2, 1, 1)}, none, 2, Resume},
		{"prepared, its share", LeaderMarks{Prepared: at(2, 1, 1)}, at(2, 1, 1), 2, Resume},
		{"prepared, another share", LeaderMarks{Prepared: at(2, 1, 1)}, at(2, 2, 2), 2, Void},
		{"a share, nothing prepared", LeaderMarks{}, at(2, 1, 1), 0, Void},
		{"helper has marked, nothing prepared", LeaderMarks{}, none, 2, Void},
	} {
		if got := c.marks.Find(2, c.share, c.marked); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// A helper's mark moves to later rounds alone, and the bytes of a release stay the first ones.
func TestHelperMark(t *testing.T) {
	m, ok := HelperMark{}.Release(at(2, 1, 1), []byte{1})
	if !ok || m.X != at(2, 1, 1) {
		t.Fatal(m, ok)
	}
	if again, ok := m.Release(at(2, 1, 1), []byte{2}); !ok || again.Signed[0] != 1 {
		t.Error("a release has other bytes the second time")
	}
	for _, x := range []Attempt{at(2, 2, 2), at(2, 1, 9), at(1, 1, 1)} {
		if got, ok := m.Release(x, []byte{3}); ok || got.X != m.X {
			t.Errorf("%v is released after %v", x, m.X)
		}
	}
	if got, ok := m.Release(at(3, 1, 1), []byte{4}); !ok || got.Signed[0] != 4 {
		t.Error("the next round is not released")
	}
}

// A helper joins no round at or below its mark: it puts what it has stored, or a refusal.
func TestDeskJoinsAboveItsMark(t *testing.T) {
	d := NewDesk(Instance{1}, HelperMark{X: at(5, 2, 2), Signed: []byte{7}})
	for _, c := range []struct {
		x             Attempt
		joins, stored bool
		refusal       Refusal
	}{
		{at(6, 1, 1), true, false, None}, {at(5, 3, 3), false, true, None}, {at(4, 1, 1), false, false, Marked},
	} {
		signed, refusal, ok := d.Join(c.x)
		if ok != c.joins || (signed != nil) != c.stored || (refusal != nil) != (c.refusal != None) {
			t.Errorf("round %d: joins %v, stored %v, refusal %v", c.x.Round, ok, signed, refusal)
		}
		if refusal != nil && (refusal.Refusal != c.refusal || refusal.X != c.x) {
			t.Errorf("round %d: refusal %+v", c.x.Round, refusal)
		}
	}
	for _, c := range []struct {
		x    Attempt
		stop bool
	}{{at(4, 1, 1), false}, {at(5, 2, 2), false}, {at(5, 1, 9), true}, {at(6, 1, 1), true}} {
		if got := d.Shown(Share{X: c.x}); got != c.stop {
			t.Errorf("shown its own share of %v: stops %v", c.x, got)
		}
	}
}

// A folder that says no after the floor was laid: nothing of the attempt leaves, and the leader gets a Gone.
func TestDeskWithoutItsMark(t *testing.T) {
	w := newWorld(t, config(2, 2, 4), 1)
	w.send(w.message(w.counts()))
	p, err := w.leader.Prepare(Entropy{}, Note{})
	w.must(err)
	a := w.desk.Finish(p.Finish, Entropy{})
	if a.Commit == nil {
		t.Fatal(a)
	}
	other := HelperMark{X: at(9, 1, 1), Signed: []byte{1}}
	if a = w.desk.Committed(other); a.Gone == nil || a.Gone.Marked != 9 || a.Signed != nil {
		t.Errorf("%+v", a)
	}
	if a = w.desk.Finish(p.Finish, Entropy{}); a.Gone == nil {
		t.Errorf("%+v", a)
	}
	e := ResumeEnding(p)
	e.Gone(*a.Gone)
	if e.Step() != StepDrop || e.Marked() != 9 {
		t.Error(e.Step())
	}
	e.Dropped()
	if e.Step() != StepLook || !slices.Equal(e.Prepared().Aggregate, make([]byte, len(e.Prepared().Aggregate))) {
		t.Errorf("%v, the share is in memory: %v", e.Step(), e.Prepared())
	}
}

// A helper that counted fewer than the minimum releases nothing, whatever the leader says of it.
func TestHelperKeepsTheMinimum(t *testing.T) {
	cfg := config(2, 2, 4)
	cfg.Minimum = 2
	w := newWorld(t, cfg, 2)
	w.send(w.message(w.counts()))
	f := w.helper.in.finish(1)
	if a := w.desk.Finish(f, Entropy{}); a.Differs == nil {
		t.Errorf("%+v", a)
	}
	if _, err := w.leader.Prepare(Entropy{}, Note{}); err == nil {
		t.Error("the leader prepares below the minimum")
	}
}

// An attempt in which more users are shown, or counted, than any honest leader does is over.
func TestHelperBoundsWhatItIsShown(t *testing.T) {
	cfg := config(1, 1, 1)
	for what, change := range map[string]func(w *world){
		"shown":   func(w *world) { w.helper.shown = leastIDs },
		"counted": func(w *world) { w.helper.acc.users = 1 },
	} {
		w := newWorld(t, cfg, 3)
		change(w)
		w.give(w.message(w.counts()))
		r, _ := w.leader.Cut()
		w.desk.Request(r)
		jobs, _ := w.helper.Work()
		jobs[0].Run(w.workers[helper])
		if _, err := w.helper.Decide(); !errors.Is(err, errManyIDs) {
			t.Errorf("%s: %v", what, err)
		}
		if a := w.desk.Ended(cfg.X); a.Differs == nil {
			t.Errorf("%s: %+v", what, a)
		}
		if a := w.desk.Request(r); a.Gone == nil {
			t.Errorf("%s: %+v", what, a)
		}
	}
}

// Totals come of two floored shares of one attempt at one place, and lie in 0..m g + 2 N_f; else the round is void.
func TestTotalsAreChecked(t *testing.T) {
	w := newWorld(t, config(2, 2, 4), 4)
	for range 3 {
		w.send(w.message(w.counts()))
	}
	_, p, s := w.finish()
	if _, err := combine(w.cfg.Params, p, s); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(s *Share){
		"another attempt":     func(s *Share) { s.X.Join[0]++ },
		"other users":         func(s *Share) { s.Users++ },
		"other requests":      func(s *Share) { s.Requests++ },
		"another chain":       func(s *Share) { s.Chain[0]++ },
		"a refusal":           func(s *Share) { s.Refusal = Marked },
		"no aggregate":        func(s *Share) { s.Aggregate = nil },
		"a short aggregate":   func(s *Share) { s.Aggregate = s.Aggregate[:16] },
		"a long aggregate":    func(s *Share) { s.Aggregate = append(s.Aggregate, 0) },
		"outside the field":   func(s *Share) { fill(s.Aggregate[:16], 255) },
		"below 0":             func(s *Share) { element(s.Aggregate, 1, -3000) },
		"above m g + 2 N_f":   func(s *Share) { element(s.Aggregate, 1, 3*3+2*1000) },
		"a random number":     func(s *Share) { s.Aggregate[9] ^= 1 },
		"a random low number": func(s *Share) { s.Aggregate[5] ^= 1 },
	} {
		other := s
		other.Aggregate = slices.Clone(s.Aggregate)
		change(&other)
		if r, err := combine(w.cfg.Params, p, other); !errors.Is(err, errShare) {
			t.Errorf("%s: released %v, %v", what, r, err)
		}
	}
	if _, err := NewEnding(p).Release(w.cfg.Params); err == nil {
		t.Error("totals before the end")
	}
}

// What does not belong to the step, or to the attempt, moves nothing.
func TestEndingIgnoresWhatIsNotItsOwn(t *testing.T) {
	x, other := at(2, 1, 1), at(2, 1, 2)
	e := ResumeEnding(Prepared{Finish: Finish{X: x}})
	e.Gone(Gone{X: other})
	e.Differs(Differs{X: other})
	e.Share(Share{X: at(1, 1, 1)}, nil)
	e.Stored(false)
	e.Released(true)
	e.Dropped()
	if e.Step() != StepSend {
		t.Fatal(e.Step())
	}
	e.Share(Share{X: other}, nil)
	if e.Step() != StepDrop {
		t.Fatal(e.Step())
	}
	e.Dropped()
	if e.Step() != StepLook {
		t.Fatal(e.Step())
	}
}
