package intrusion

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A report counts what was examined, and holds what was found.
type report struct {
	copies, bytes, forms    int
	versions                int // values in logs and tables, in all copies
	states                  int // different checkpoints among them
	reports, totals, keys   int
	sealedSeen, batchesSeen int // copies in which sealed reports, and released totals, are found, as they should be
	violations              []string
}

func (r report) String() string {
	return fmt.Sprintf(
		"%d copies, %d KiB, searched for %d forms of %d reports, %d running totals, %d keys: %d violations; %d versions "+
			"of values in the LSM tree, %d different states; sealed reports in %d copies, batches in %d",
		r.copies, r.bytes>>10, r.forms, r.reports, r.totals, r.keys, len(r.violations), r.versions, r.states, r.sealedSeen,
		r.batchesSeen)
}

func (r *report) violate(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(r.violations, s) {
		r.violations = append(r.violations, s)
	}
}

// audit looks at everything that was stolen.
func (w *world) audit(t *testing.T) (r report) {
	secrets := w.secrets()
	for _, a := range w.attempts {
		if a.key == nil {
			t.Errorf(
				"round %d, attempt %d: its key was not found while it was open, so the search would not find it later either",
				a.round, a.number)
		} else {
			r.keys++
		}
		if a.kept {
			r.violate("the key of round %d, attempt %d is in memory after the batch", a.round, a.number)
		}
		v := w.view(a)
		r.reports, r.totals = r.reports+len(v.users), r.totals+len(v.running)
	}
	hidden := newNeedles(secrets...)
	r.forms = hidden.forms
	identities := map[string]*needles{}
	for _, file := range []string{"learner.key", "stage.key"} {
		s := secret{name: "the identity " + file}
		s.raw(w.identitySeed(file))
		identities[file] = newNeedles(s)
	}
	states := map[string]bool{}
	control := w.controls()
	for _, l := range w.copies {
		r.copies++
		r.bytes += l.bytes()
		var sealed, batches bool
		for name, data := range l.files {
			for what := range hidden.in(data) {
				r.violate("%s holds %s", name, what)
			}
			for file, n := range identities {
				if len(n.in(data)) > 0 != strings.HasSuffix(name, "keys/"+file) {
					r.violate("%s and the identity %s", name, file)
				}
			}
			found := control.in(data)
			sealed = sealed || found["sealed"] && strings.Contains(name, "_REPORTS/")
			batches = batches || found["released"] && strings.Contains(name, "_BATCHES/")
		}
		if sealed {
			r.sealedSeen++
		}
		if batches {
			r.batchesSeen++
		}
		for _, v := range versions(t, l) {
			r.versions++
			prefix, _, _ := strings.Cut(v.key, "/")
			if !w.allowed[string(v.value)] || !slices.Contains([]string{"checkpoint", "ledger", "row", "model"}, prefix) {
				r.violate("%s of key %q is nothing that the batches make", v.where, v.key)
			}
			if v.key == "checkpoint" {
				states[string(v.value)] = true
			}
		}
	}
	r.states = len(states)
	return r
}

// controls returns the needles that the search must find on the disk: recorded reports and released totals.
func (w *world) controls() *needles {
	sealed, released := secret{name: "sealed"}, secret{name: "released"}
	for _, a := range w.attempts {
		for _, m := range a.taken {
			sealed.forms = append(sealed.forms, m.Data)
		}
	}
	for _, b := range w.batches {
		if len(b.Totals) > 0 {
			released.forms = append(released.forms, vector("", b.Totals).forms...)
		}
	}
	return newNeedles(sealed, released)
}
