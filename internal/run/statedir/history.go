package statedir

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
)

// SnapshotOf returns the question for the model after a round: one that is kept, or the newest.
func SnapshotOf(round uint64) Question {
	return AskSnapshot + Question("?round="+strconv.FormatUint(round, 10))
}

// SnapshotAt returns the question for the model that was current at a time, as far as models are kept: the newest
// kept by then.
func SnapshotAt(at time.Time) Question {
	return AskSnapshot + Question("?at="+url.QueryEscape(at.UTC().Format(time.RFC3339Nano)))
}

// HistoryOf returns the question for the records of the newest rounds; newest = 0 requests all that are kept.
func HistoryOf(newest int) Question {
	return askHistory + Question("?newest="+strconv.Itoa(newest))
}

// Newest is the number of rounds in a history unless more are asked for.
const Newest = 100

// A refusal is an answer to a question that the state does not allow, with its HTTP status.
type refusal struct {
	code int
	text string
}

func (e *refusal) Error() string { return e.text }

// answered4xx returns the error for a learner's answer. A refusal keeps the learner's own words.
func answered4xx(code int, status string, body []byte) error {
	text := strings.TrimSpace(string(body))
	if (code == http.StatusNotFound || code == http.StatusConflict || code == http.StatusBadRequest) &&
		!strings.HasPrefix(text, "404 ") {
		return &refusal{code, text}
	}
	return fmt.Errorf("the learner answers %s: %s", status, text)
}

// earlier returns the snapshot that a question requests: a round's, the one current at a time, or the current one.
func (v View) earlier(ctx context.Context, store state.Store, with url.Values) (model.Snapshot, error) {
	round, at := with.Get("round"), with.Get("at")
	if round == "" && at == "" {
		return v.Snapshot()
	}
	records, err := service.ReadRecords(ctx, store, 0)
	if err != nil {
		return model.Snapshot{}, err
	}
	current := v.Checkpoint.Cursor.Round
	if n := len(records); n > 0 && records[n-1].Round == current && !records[n-1].RolledBack() {
		records[n-1].Snapshot = true // the current model is always kept
	}
	var r *service.Record
	if round != "" {
		var n uint64
		if n, err = strconv.ParseUint(round, 10, 64); err != nil {
			return model.Snapshot{}, &refusal{http.StatusBadRequest, fmt.Sprintf("round %q: want a number", round)}
		}
		if n == current && v.last.Round != current { // no record of it: another build committed it
			return v.Snapshot()
		}
		r, err = service.Kept(records, n)
	} else {
		var when time.Time
		if when, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return model.Snapshot{}, &refusal{http.StatusBadRequest,
				fmt.Sprintf("time %q: want RFC 3339, such as 2026-11-24T12:00:00Z", at)}
		}
		r, err = currentAt(records, when)
	}
	if err != nil {
		return model.Snapshot{}, &refusal{http.StatusNotFound, err.Error()}
	}
	if r.Round == current && !r.RolledBack() {
		return v.Snapshot()
	}
	theta, err := service.ReadModel(ctx, store, r.Round)
	if err != nil {
		return model.Snapshot{}, err
	}
	s, err := v.snapshot(theta)
	if err != nil {
		return model.Snapshot{}, err
	}
	s.Round, s.ModelVersion, s.Ended, s.RolledBackTo = r.Round, r.Version, false, 0
	s.Privacy.Users = r.UsersSoFar
	if !v.noiseKnown {
		s.Privacy.Epsilon, s.Privacy.Delta = r.EpsilonSpent, r.DeltaSpent
		s.Privacy = s.Privacy.From(v.Task.Plan)
	}
	return s, nil
}

// currentAt returns the record of the kept model that was current at a time: the one that the
// latest kept round or rollback by then released.
func currentAt(records []service.Record, at time.Time) (*service.Record, error) {
	var found, oldest *service.Record
	for i := range records {
		r := &records[i]
		if r.Snapshot && oldest == nil {
			oldest = r
		}
		if r.Time.After(at) {
			continue
		}
		if r.Snapshot {
			found = r
		}
		if r.RolledBack() && !r.Rollback.Time.After(at) {
			found, _ = service.Kept(records, r.Rollback.To)
		}
	}
	switch {
	case found != nil:
		return found, nil
	case oldest == nil:
		return nil, errors.New("no model is kept")
	}
	return nil, fmt.Errorf("no model of %s or before is kept: the oldest is that of round %d, %s",
		at.Format(time.RFC3339), oldest.Round, oldest.Time.Format(time.RFC3339))
}

// A HistoryReport holds what is kept of a task's rounds.
type HistoryReport struct {
	Task   string           `json:"task"`
	Rounds []service.Record `json:"rounds"`
	Older  bool             `json:"older"` // more are kept
}

// history returns the newest records, as many as the question requests. Each rollback occurs once, at the round that it
// followed.
func (v View) history(ctx context.Context, store state.Store, with url.Values) (HistoryReport, error) {
	newest := Newest
	if text := with.Get("newest"); text != "" {
		var err error
		if newest, err = strconv.Atoi(text); err != nil || newest < 0 {
			return HistoryReport{}, &refusal{http.StatusBadRequest,
				fmt.Sprintf("newest %q: want a number of rounds, or 0 for all", text)}
		}
	}
	more := newest
	if newest > 0 {
		more++
	}
	records, err := service.ReadRecords(ctx, store, more)
	if err != nil {
		return HistoryReport{}, err
	}
	out := HistoryReport{Task: v.Task.Name, Rounds: records}
	if newest > 0 && len(records) > newest {
		out.Rounds, out.Older = records[1:], true
	}
	for i := range out.Rounds {
		r := &out.Rounds[i]
		if r.Kept, r.Rollbacks = nil, 0; !r.RolledBack() {
			r.Rollback = nil
		}
	}
	return out, nil
}
