package natsjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An Admin makes the calls of administrators, which no port has: of JetStream's API, and of servers in operator mode.
type Admin struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	requests *requests
	log      *slog.Logger
}

// JetStream returns the client of JetStream's API.
func (a *Admin) JetStream() jetstream.JetStream { return a.js }

// Subjects of JetStream's API that the ports use by name, to know which of them the broker denied.
const (
	apiStreamInfo   = "$JS.API.STREAM.INFO."
	apiStreamPurge  = "$JS.API.STREAM.PURGE."
	apiConsumerInfo = "$JS.API.CONSUMER.INFO."
	apiConsumerNext = "$JS.API.CONSUMER.MSG.NEXT."
)

// Request sends a request to JetStream's API, with request and response as JSON. It serves calls for which the client
// library would first send requests that a role may not make.
func (a *Admin) Request(ctx context.Context, subject string, request, response any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request %s: %w", subject, err)
	}
	wait, cancel := a.requests.ask(ctx, subject)
	defer cancel()
	m, err := a.nc.RequestWithContext(wait, subject, body)
	if err != nil {
		return explain(a.requests.outcome(ctx, wait, err))
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(m.Data, &failed), json.Unmarshal(m.Data, response)); err != nil {
		return errors.New("the broker's answer is not JSON")
	}
	if failed.Error != nil {
		return explain(failed.Error)
	}
	return nil
}

// Call makes one call of the client library, do, that sends its request to subject. Its error is ErrDenied if the
// broker does not permit the subject, and has advice where that is known.
func (a *Admin) Call(ctx context.Context, subject string, do func(context.Context) error) error {
	wait, cancel := a.requests.ask(ctx, subject)
	defer cancel()
	return explain(a.requests.outcome(ctx, wait, do(wait)))
}
