package operators

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestTokensOfTwoOperators: the leader checks tokens before it asks the helper, which never sees one. A forged, a spent and
// a taken token refuse their user alone, in a bundle too; a message that comes twice counts once; and a leader that starts
// again remembers what was counted.
func TestTokensOfTwoOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 4, bundle: 3, grants: true, dim: 8})
		ctx := t.Context()
		leader, helper := w.lead(ctx, nil), w.help(ctx, nil)
		w.get(ctx, w.name.Stage())
		w.put(ctx, w.name.Task(), w.sign(w.learner, w.task))
		first := w.users(4)
		for r := stream.Round(1); r <= 2; r++ {
			w.put(ctx, w.name.Round(r), w.sign(w.learner, w.round(r, uint64(r))))
			var o *opening
			for o == nil {
				time.Sleep(50 * time.Millisecond)
				if a := w.newest(ctx, r); a > 0 {
					o = w.opening(r, uint64(r), a)
				}
			}
			honest := first
			if r == 2 {
				honest = w.users(4)
			}
			as := func(token []byte) user { return user{coordinate: 7, draw: fresh(), token: token} }
			// All counts except those of honest users are in coordinate 7.
			w.send(ctx, o.x, w.report(o, []user{as(make([]byte, grant.Size)), honest[0], as(honest[0].token)}, nil))
			copied := w.report(o, honest[1:2], nil)
			w.send(ctx, o.x, copied)
			w.send(ctx, o.x, copied)
			if r == 2 {
				for _, u := range first {
					w.send(ctx, o.x, w.report(o, []user{as(u.token)}, nil))
				}
			}
			time.Sleep(2 * time.Second) // these are decided
			w.send(ctx, o.x, w.report(o, honest[2:], nil))
			b := new(wire.Batch)
			_, err := seal.Verify(w.get(ctx, w.name.Batch(r)).Data, w.stage.Public(), b)
			w.must(err)
			refused := uint64(2)
			if r == 2 {
				refused = 6
			}
			rejected := map[string]uint64{}
			for _, one := range b.Rejects {
				rejected[one.Reason] = one.Count
			}
			if b.Void || b.Users != 4 || rejected["grant"] != refused || rejected["duplicate"] != 1 {
				t.Errorf("round %d: %d users, rejects %v", r, b.Users, b.Rejects)
			}
			if b.Totals[7] >= levels+2*floor || b.Totals[0] < levels {
				t.Errorf("round %d: totals %v", r, b.Totals)
			}
			var want []grant.Hash
			for _, u := range honest {
				want = append(want, w.issuer.Tokens.Spent([grant.NonceSize]byte(u.token)))
			}
			l, err := grant.ParseList(w.get(ctx, w.name.Spent(r, 1)).Data, 1)
			w.must(err)
			slices.SortFunc(want, func(a, b grant.Hash) int { return slices.Compare(a[:], b[:]) })
			if !slices.Equal(l.Hashes, want) || grant.Next(l.Before, r, stream.Step(r), want) != grant.Chain(b.SpentHash) {
				t.Errorf("round %d: its list is %x", r, l.Hashes)
			}
			if r == 1 {
				_ = leader.stop()
				leader = w.lead(ctx, nil)
			}
		}
		w.put(ctx, w.name.End(), w.sign(w.learner, &wire.End{Version: stream.Version, TaskHash: w.hash[:], LastRound: 2,
			Reason: "done"}))
		<-leader.done
		_ = helper.stop()
	})
}
