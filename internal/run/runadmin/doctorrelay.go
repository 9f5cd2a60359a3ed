package runadmin

import (
	"bytes"
	"context"
	"errors"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// relay compares the task and its newest round at a relay with the broker's.
func (v *visit) relay(ctx context.Context, broker stream.Reader) {
	if v.Relay.URL == "" {
		return
	}
	client, err := relayclient.New(v.Relay)
	if err != nil {
		v.find("relay", natsadmin.Failure, "%v", err)
		return
	}
	defer client.Close()
	has, err := broker.Get(ctx, v.Task.Task())
	if err != nil && !errors.Is(err, stream.ErrNotFound) {
		return // found elsewhere
	}
	got, served := client.Get(ctx, v.Task.Task())
	switch {
	case errors.Is(err, stream.ErrNotFound) && errors.Is(served, stream.ErrNotFound):
		v.find("relay", natsadmin.OK, "it answers, and has no task of this name, as the broker")
		return
	case errors.Is(served, stream.ErrNotFound):
		v.find("relay", natsadmin.Failure, "its broker has no task of this name: it is in front of another one")
		return
	case served != nil:
		v.find("relay", natsadmin.Failure, "%v: is the address an ingest relay's, does it ask for another token, "+
			"and does it reach its broker (its log, /readyz)?", served)
		return
	case !bytes.Equal(got.Data, has.Data):
		v.find("relay", natsadmin.Failure,
			"it serves another task of this name than the broker has: it is in front of another broker, or a cache keeps what it may not")
		return
	}
	if _, err := client.Latest(ctx, v.Task.Rounds()); err != nil && !errors.Is(err, stream.ErrNotFound) {
		v.find("relay", natsadmin.Failure, "it serves the task, and not its newest round: %v", err)
		return
	}
	v.find("relay", natsadmin.OK, "it serves the broker's task")
}
