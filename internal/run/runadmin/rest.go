package runadmin

import (
	"context"
	"errors"
	"log/slog"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// AtRest holds what is needed to act for the learner of a state folder that no learner holds.
type AtRest struct {
	StateDir string
	Broker   run.Broker
	Identity func() (*seal.Identity, error) // asked for only when it is needed
	Logger   *slog.Logger
}

// service gives do a learner service on the task of an open store, which it closes.
func (c AtRest) service(ctx context.Context, open func() (*pebblestore.Store, error), finish *service.Finisher,
	do func(*service.Service) error) (err error) {
	identity, err := c.Identity()
	if err != nil {
		return err
	}
	store, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	view, err := statedir.Look(ctx, store)
	if err != nil {
		return err
	}
	name, err := stream.ParseTask(view.Task.Name)
	if err != nil {
		return err
	}
	conn, err := c.Broker.Connect(ctx, "panlearn learner "+view.Task.Name, c.Logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := service.New(service.Config{Task: name, Records: conn, Store: store, Identity: identity,
		Prepare: func() (*wire.Task, error) { return nil, state.ErrEmpty }, Finish: finish, Logger: c.Logger})
	if err != nil {
		return err
	}
	return do(s)
}
