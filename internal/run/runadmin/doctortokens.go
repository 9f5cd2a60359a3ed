package runadmin

import (
	"context"
	"errors"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/wire"
)

// tokens checks, in a task with tokens, whether the stream of counted tokens exists, and whether it has the lists of
// the newest batch: without them the stage opens nothing. If these credentials may not see that, it reports nothing.
func (v *visit) tokens(ctx context.Context, conn *natsjs.Conn, announced *wire.Task) {
	hasGrants := v.Spec != nil && v.Spec.Grants.Needed() || announced != nil && len(announced.IssuerKey) > 0
	if !hasGrants {
		return
	}
	newest := v.counted(ctx, conn)
	name := v.Task.Name(stream.Spends)
	_, err := conn.Get(ctx, v.Task.Spent(max(newest, 1), 1))
	switch gone := errors.Is(err, natsjs.ErrNoStream); {
	case err == nil || newest == 0 && errors.Is(err, stream.ErrNotFound):
		v.find("tokens", natsadmin.OK, "%s is there, for the tokens that are counted", name)
	case gone && newest == 0:
		v.find("tokens", natsadmin.Failure, "%s is missing, in which the stage keeps which tokens were counted: it counts nobody before "+
			"learner provision -f TASK has made it", name)
	case gone || errors.Is(err, stream.ErrNotFound):
		v.find("tokens", natsadmin.Failure, "%s has no list of round %d, which has a batch: the stage opens nothing, as people could be "+
			"counted again: restore the broker's records (docs/how-to/runbook.md); an empty stream does not help", name, newest)
	}
}

// counted returns the newest of the last two rounds that has a batch which counted somebody, as the broker shows it; 0
// for none.
func (v *visit) counted(ctx context.Context, conn *natsjs.Conn) stream.Round {
	m, err := conn.Latest(ctx, v.Task.Rounds())
	if err != nil {
		return 0
	}
	at, err := stream.ParseSubject(m.Subject)
	if err != nil {
		return 0
	}
	for r := at.Round; r > 0 && r+1 >= at.Round; r-- {
		m, err := conn.Get(ctx, v.Task.Batch(r))
		signed, batch := &wire.Signed{}, &wire.Batch{}
		if err == nil && stream.Unmarshal(m.Data, signed) == nil && stream.Unmarshal(signed.Body, batch) == nil &&
			!batch.Void {
			return r
		}
	}
	return 0
}
