package prequential

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
)

// A Stream is a task that runs or ran: what it kept of its rounds, and where its models are.
type Stream struct {
	Records []service.Record                            // by round
	Model   func(round uint64) (model.Predictor, error) // of a round whose record says that it is kept
	// called for rows that do not fit the declaration; nil: not called
	Unfit func(*task.RowError)
}

// A Followed holds the counts and the score of the models of a stream on its rows.
type Followed struct {
	Rows    uint64 `json:"rows"`    // that were read
	Invalid uint64 `json:"invalid"` // of them that do not fit the declaration; they took part all the same
	// before a model was kept, of rounds of moments, of rounds of which nothing is kept, or not asked yet
	Unscored uint64 `json:"unscored"`
	Models   int    `json:"models"` // that scored rows
	Rounds   int    `json:"rounds"` // rounds with scored rows
	Score    *Score `json:"prequential"`
}

// Follow scores rows that are in the order in which their users took part: each by the newest kept model before
// its round. Users who took part and were not counted shift the rows that follow by their number.
func (s Stream) Follow(spec *task.Spec, features *task.FeatureMap, rows iter.Seq2[task.Row, error]) (Followed, error) {
	out := Followed{Score: New(spec)}
	used := map[uint64]bool{}
	next, stop := iter.Pull2(rows)
	defer stop()
	for i := range s.Records {
		r := &s.Records[i]
		if r.Users == 0 {
			continue
		}
		for out.Rows < r.UsersSoFar-r.Users { // of rounds of which nothing is kept
			more, err := s.read(&out, next, features, nil)
			if err != nil || !more {
				return out.sum(used), err
			}
			out.Unscored++
		}
		before, predictor := before(s.Records, i), (*model.Predictor)(nil)
		if before != nil && r.Clip > 0 { // else it was of moments
			p, err := s.Model(before.Round)
			if err != nil {
				return out, err
			}
			predictor = &p
			used[before.Round] = true
			out.Rounds++
		}
		for range r.Users {
			more, err := s.read(&out, next, features, predictor)
			if err != nil {
				return out, err
			}
			if !more {
				out.Score.Round(nil)
				return out.sum(used), nil
			}
			if predictor == nil {
				out.Unscored++
			}
		}
		if predictor != nil {
			out.Score.Round(tracking(r))
		}
	}
	for {
		more, err := s.read(&out, next, features, nil)
		if err != nil || !more {
			return out.sum(used), err
		}
		out.Unscored++
	}
}

// tracking returns the tracking stored in a record; nil if the record has none.
func tracking(r *service.Record) *method.Tracking {
	if r.Memory == nil || !(*r.Memory > 0) {
		return nil
	}
	out := &method.Tracking{Memory: *r.Memory, Alarm: r.Alarm}
	if r.Error != nil {
		out.Error = *r.Error
	}
	return out
}

// read reads a row, and scores it where a model is given.
func (s Stream) read(out *Followed, next func() (task.Row, error, bool), features *task.FeatureMap,
	p *model.Predictor) (more bool, err error) {
	row, err, more := next()
	if !more {
		return false, nil
	}
	var example convex.Example
	if err == nil && p != nil {
		err = features.Map(row, &example)
	}
	var bad *task.RowError
	switch {
	case errors.As(err, &bad):
		out.Invalid++
		if s.Unfit != nil {
			s.Unfit(bad)
		}
	case err != nil:
		return false, err
	case p != nil:
		out.Score.Add(*p, example)
	}
	out.Rows++
	return true, nil
}

func (f Followed) sum(used map[uint64]bool) Followed {
	f.Models = len(used)
	f.Score.End()
	return f
}

// before returns the record of the kept model that was current before a record's round: the newest one of earlier
// rounds, or the one that was released again since; nil where none is kept.
func before(records []service.Record, i int) *service.Record {
	for k := i - 1; k >= 0; k-- {
		r := &records[k]
		if r.RolledBack() {
			at, found := slices.BinarySearchFunc(records, r.Rollback.To, func(r service.Record, round uint64) int {
				return cmp.Compare(r.Round, round)
			})
			if found && records[at].Snapshot {
				return &records[at]
			}
			return nil
		}
		if r.Snapshot {
			return r
		}
	}
	return nil
}
