package statedir

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
)

// A Change is one that a history makes between two rounds, of a round.
type Change string

// The changes.
const (
	RollBack Change = "rollback"
	Pin      Change = "pin"
	Unpin    Change = "unpin"
)

// make makes the change.
func (c Change) make(ctx context.Context, h *service.History, round uint64) (service.Record, error) {
	switch c {
	case RollBack:
		return h.RollBack(ctx, round, time.Now())
	case Pin, Unpin:
		return h.Pin(ctx, round, c == Pin)
	}
	return service.Record{}, fmt.Errorf("change %q: want rollback, pin or unpin", c)
}

// serve makes the change and returns the record of the round that it is written to.
func (c Change) serve(w http.ResponseWriter, r *http.Request, h *service.History) {
	round, err := strconv.ParseUint(r.URL.Query().Get("round"), 10, 64)
	if err != nil {
		http.Error(w, fmt.Sprintf("round %q: want a number", r.URL.Query().Get("round")), http.StatusBadRequest)
		return
	}
	record, err := c.make(context.WithoutCancel(r.Context()), h, round)
	switch {
	case errors.Is(err, state.ErrEmpty):
		http.Error(w, nothingYet, http.StatusServiceUnavailable)
	case errors.Is(err, state.ErrFailed), errors.Is(err, state.ErrClosed):
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case err != nil:
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(record) // the reader may have gone
	}
}

// Make makes a change in a learner's state folder: through the learner that holds it, or else in its place, without a
// broker. It returns the record that was written.
func (c Change) Make(ctx context.Context, dir string, round uint64, log *slog.Logger) (record service.Record,
	err error) {
	if _, err := StatusOf(ctx, dir); err != nil { // and Open would make the folder
		return record, err
	}
	_, err = untilFree(ctx, func() (struct{}, error) {
		conn, dialErr := Dial(ctx, dir)
		if dialErr == nil {
			defer conn.Close()
			record, err = c.ask(ctx, conn, round)
			return struct{}{}, held(ctx, err)
		}
		store, err := Open(ctx, dir, log)
		if err != nil {
			return struct{}{}, err
		}
		record, err = c.make(ctx, service.NewHistory(store), round)
		return struct{}{}, errors.Join(err, store.Close())
	})
	return record, err
}

// ask sends the change to the learner at the other end of a control socket.
func (c Change) ask(ctx context.Context, conn net.Conn, round uint64) (record service.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	target := fmt.Sprintf("http://control/v1/%s?round=%d", c, round)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, http.NoBody)
	if err != nil {
		return record, fmt.Errorf("ask the learner: %w", err)
	}
	resp, err := ClientOn(conn).Do(req)
	if err != nil {
		return record, fmt.Errorf("ask the learner: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	switch {
	case err != nil:
		return record, fmt.Errorf("ask the learner: %w", err)
	case resp.StatusCode == http.StatusServiceUnavailable:
		return record, notYet(body)
	case resp.StatusCode != http.StatusOK:
		return record, answered4xx(resp.StatusCode, resp.Status, body)
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&record); err != nil {
		return record, fmt.Errorf("the learner's answer: %w", err)
	}
	return record, nil
}
