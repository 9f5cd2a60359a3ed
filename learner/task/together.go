package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// unsized is the number of units of data that are not counted yet.
const unsized = 1 << 30

// ofMany lists the keys that apply only to reports from many places. For one place they have no meaning, and are left
// out.
var ofMany = []string{"events.key", "user.wait", "privacy.trust", "privacy.honest_fraction", "privacy.coin",
	"privacy.profile", "privacy.operators",
	"schedule.users", "schedule.cohort", "schedule.first_cohort", "schedule.minimum_cohort"}

// ofRounds are the keys that only apply to rounds of reports, which methods of one process do not have. A limit on
// rounds applies to methods of one process with steps or rounds of queries: schedule.Limited.
var ofRounds = []string{"user.radius", "schedule.deadline", "schedule.stale", "schedule.retention",
	"schedule.interactive", "privacy.max_bits"}

// A Together is a task whose rows are all in one place: one silo of all units, under trust local, so that its one
// report hides each of them. It makes many passes unless its schedule says otherwise or names a method of one, and
// reports no scores unless the file declares them: the owner of the rows holds some out instead.
type Together struct {
	*Spec
	LeftOut []string // keys of the file that apply only to reports from many places
}

// LoadTogether reads the task file at path, with overrides as in Parse, for data of so many units: rows, or
// people if privacy.unit is user; 0 if they are not counted yet. The file may be one that is for many devices,
// and need not have schedule.users.
func LoadTogether(path string, sets []string, units int) (t Together, err error) {
	t.Spec, err = load(path, func(data []byte) (*Spec, error) {
		root, err := overridden(data, sets)
		if err != nil {
			return nil, err
		}
		if t.LeftOut, err = root.together(units); err != nil {
			return nil, err
		}
		return declared(root)
	})
	return t, err
}

// together changes the tree to the declaration of a task in one place, and returns the keys that it leaves out.
func (n *node) together(units int) (leftOut []string, err error) {
	if units == 0 {
		units = unsized
	}
	if units < 1 || units > maxUsers {
		return nil, refuse("silo.units", units, "a whole number from 1 to %d", maxUsers)
	}
	if n.kind != mapping {
		return nil, nil // which decoding refuses
	}
	if n.at("silo") != nil {
		return nil, &FieldError{Line: n.at("silo").line, Path: "silo",
			Want: "nothing where all rows are in one place: they are one silo. ingest publish is for each of several"}
	}
	if c := n.at("schedule.continuous"); c != nil && c.text != "" {
		return nil, &FieldError{Line: c.line, Path: "schedule.continuous", Value: c.describe(),
			Want: "nothing where all rows are in one place: they end"}
	}
	of := ofMany
	if a := n.at("schedule.algorithm"); a != nil && a.text != "" && !slices.Contains(slices.Concat([]string{schedule.Auto},
		schedule.Names(), schedule.CuratedNames()), a.text) {
		return nil, &FieldError{Line: a.line, Path: "schedule.algorithm", Value: a.describe(), Want: "one of " +
			strings.Join(slices.Concat([]string{schedule.Auto}, schedule.Names()), ", ") +
			"; or one that needs all rows at once: " + strings.Join(schedule.CuratedNames(), ", ")}
	} else if a != nil && schedule.OnePlace(a.text) != nil {
		of = append(slices.Clip(of), ofRounds...)
		if !schedule.Limited(a.text) {
			of = append(of, "schedule.rounds")
		}
	}
	for _, key := range of {
		if n.remove(key) {
			leftOut = append(leftOut, key)
		}
	}
	sets := []string{"silo.count=1", fmt.Sprintf("silo.units=%d", units), fmt.Sprintf("silo.least=%d", units),
		"privacy.trust=" + accounting.Local.String()}
	if n.at("validation") == nil {
		sets = append(sets, "validation.off=true")
	}
	if n.at("schedule.interactive") == nil {
		once := false
		if a := n.at("schedule.algorithm"); a != nil {
			m, named := schedule.Of(a.text)
			once = named && !m.Interactive || schedule.Curated(a.text)
		}
		sets = append(sets, fmt.Sprintf("schedule.interactive=%t", !once))
	}
	for _, set := range sets {
		if err := override(n, set); err != nil {
			return nil, err
		}
	}
	return leftOut, nil
}

// remove takes a key away, and reports whether it was there.
func (n *node) remove(path string) bool {
	above, key := n, path
	if at := strings.LastIndexByte(path, '.'); at >= 0 {
		above, key = n.at(path[:at]), path[at+1:]
	}
	if above == nil || above.kind != mapping {
		return false
	}
	i := slices.Index(above.keys, key)
	if i < 0 {
		return false
	}
	above.keys, above.values = slices.Delete(above.keys, i, i+1), slices.Delete(above.values, i, i+1)
	return true
}
