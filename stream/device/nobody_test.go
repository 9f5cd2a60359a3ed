package device_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/learner/task"
	tokens "github.com/panlearn/panlearn/stream/device/grants"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
)

// A desk is an issuer for a gateway, which takes some names for nobody's.
type desk struct {
	t      *testing.T
	signer *grant.Signer
	asked  []int // people in each request
}

// Sign implements tokens.Source.
func (d *desk) Sign(_ context.Context, asks []tokens.Ask) ([]tokens.Answer, error) {
	d.asked = append(d.asked, len(asks))
	out := make([]tokens.Answer, len(asks))
	for i, a := range asks {
		if strings.HasPrefix(a.Person, "nobody") {
			out[i].Nobody = true
			continue
		}
		blinded, err := grant.ParseRequest(a.Message, grant.KeyID(d.signer.Public()))
		must(d.t, err)
		out[i].Signature, err = d.signer.Sign(blinded)
		must(d.t, err)
	}
	return out, nil
}

func peopleOf(names []string) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i, name := range names {
			if !yield(task.Row{Line: int64(i) + 1, Number: int64(i), Key: name, Index: []int32{int32(i % 3)},
				Value: []float64{1}, Label: "1"}, nil) {
				return
			}
		}
	}
}

// TestNamesOfNobody: events under keys that the issuer takes for no person's names are refused, and keep nobody
// waiting, though they are more than a gateway requests at once.
func TestNamesOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 4, sealed: true, grants: true})
		var names []string
		for i := range 300 {
			names = append(names, fmt.Sprintf("nobody %d", i))
		}
		for i := range 8 {
			names = append(names, fmt.Sprintf("somebody %d", i))
		}
		w.play(t.Context(), func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			config := w.config(participation.NewMemoryStore())
			config.Rows = true
			config.Grants, config.GrantStore = &desk{t: t, signer: granttest.Signer(t)}, tokens.NewMemoryStore()
			got, err := w.client(config).Run(ctx, peopleOf(names))
			if err != nil || got.Counted != 8 || got.Refused != 300 {
				t.Errorf("%+v, %v: want 8 counted and 300 refused", got, err)
			}
		})
	})
}

// TestManyPeopleOnATick: on a tick a gateway requests tokens for as many people as the round takes, up to a bound, so
// that it can fill it.
func TestManyPeopleOnATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const people = 3000
		w := newWorld(t, plan{rounds: 1, cohort: people, sealed: true, grants: true})
		var names []string
		for i := range people {
			names = append(names, fmt.Sprintf("nobody %d", i))
		}
		w.play(t.Context(), func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			config := w.config(participation.NewMemoryStore())
			config.Rows = true
			at := &desk{t: t, signer: granttest.Signer(t)}
			config.Grants, config.GrantStore = at, tokens.NewMemoryStore()
			got, err := w.client(config).Run(ctx, peopleOf(names))
			if err != nil || got.Refused != people || len(at.asked) > 3 {
				t.Errorf("%+v, %v: asked for %v people: want all of them on three ticks at most", got, err, at.asked)
			}
		})
	})
}
