package service

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/state"
)

// A Record is the history's entry for one round. It contains only post-processing of released batches, and the broker's
// times.
type Record struct {
	Round      uint64    `json:"round"`
	Time       time.Time `json:"time"`  // when its batch was stored, by the broker's clock
	Users      uint64    `json:"users"` // counted in the round
	UsersSoFar uint64    `json:"users_so_far"`
	Steps      uint64    `json:"steps"`         // so far, without void rounds
	Version    uint64    `json:"model_version"` // of the model after the round: counts steps and rollbacks
	Void       bool      `json:"void,omitempty"`
	// Unused reports whether the round was asked at a model that was rolled back before its batch came: its users are
	// counted, and their answers did not change the model.
	Unused bool `json:"unused,omitempty"`
	// Scores are the scores of the model before this round, from this round's users; empty if nobody reported any.
	Scores       roundScores `json:"scores"`
	Surprise     *float64    `json:"surprise,omitempty"`
	Alarm        bool        `json:"alarm"`
	Memory       *float64    `json:"memory_users,omitempty"`
	Error        *float64    `json:"expected_error,omitempty"`
	Clip         float64     `json:"clip,omitempty"` // as announced; 0 in a round of moments
	EpsilonSpent float64     `json:"epsilon_spent"`
	DeltaSpent   float64     `json:"delta_spent"`
	Snapshot     bool        `json:"snapshot"` // the model after the round is kept
	Pinned       bool        `json:"pinned,omitempty"`
	// Rollback is the last rollback so far; it happened after this round if its After is this round.
	Rollback  *Rollback `json:"rollback,omitempty"`
	Rollbacks uint64    `json:"rollbacks,omitempty"` // number so far
	Kept      *Moment   `json:"kept,omitempty"`      // the newest kept model at that time
}

// roundScores are the mean loss and accuracy that the users of one round reported, with bands.
type roundScores struct {
	Loss     *method.Band `json:"loss,omitempty"`
	Accuracy *method.Band `json:"accuracy,omitempty"`
}

// A Rollback is a new release of an old model.
type Rollback struct {
	To    uint64    `json:"to"`             // the round whose model was released again
	After uint64    `json:"after"`          // the last round before the rollback
	From  uint64    `json:"from,omitempty"` // the round whose model was withdrawn
	Time  time.Time `json:"time"`
}

// A Moment is a round and its time.
type Moment struct {
	Round uint64    `json:"round"`
	Time  time.Time `json:"time"`
}

// current returns the round whose model is current from this round to the next.
func (r *Record) current() uint64 {
	if r.RolledBack() {
		return r.Rollback.To
	}
	return r.Round
}

// RolledBack reports whether the model of an earlier round was released again right after this round.
func (r *Record) RolledBack() bool { return r.Rollback != nil && r.Rollback.After == r.Round }

// rollBack returns the record after the model of round to was released again. The model that was current is kept.
func (r Record) rollBack(to uint64, now time.Time) *Record {
	if !r.Snapshot && !r.RolledBack() { // else the current model is another round's
		r.Snapshot, r.Kept = true, &Moment{r.Round, r.Time}
	}
	r.Rollback = &Rollback{To: to, After: r.Round, From: r.current(), Time: now}
	r.Rollbacks++
	return &r
}

// keep returns the stored form of a record, without model if the record has no snapshot.
func (r *Record) keep(model []byte) (state.Kept, error) {
	row, err := json.Marshal(r)
	if err != nil {
		return state.Kept{}, fmt.Errorf("record of round %d: %w", r.Round, err)
	}
	if !r.Snapshot {
		model = nil
	}
	return state.Kept{Round: r.Round, Row: row, Model: model}, nil
}

// readRecord is the inverse of keep.
func readRecord(k state.Kept) (r Record, err error) {
	if err := json.Unmarshal(k.Row, &r); err != nil {
		return r, fmt.Errorf("record of round %d: %w", k.Round, err)
	}
	if r.Round != k.Round {
		return r, fmt.Errorf("record of round %d: it says round %d", k.Round, r.Round)
	}
	return r, nil
}
