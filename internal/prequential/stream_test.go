package prequential

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task/source"
)

// TestFollow: each row is scored by the model that was current before its round, as far as it is kept: not those of the
// first look, those of a round whose models are not kept by an older one, those after a rollback by the model that was
// released again; rows that do not fit take their users' places.
func TestFollow(t *testing.T) {
	spec := runtest.Parsed(t, runtest.Words)
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	loss, err := spec.Loss()
	if err != nil {
		t.Fatal(err)
	}
	of := func(round uint64) (model.Predictor, error) {
		theta := make([]float64, features.Dim())
		theta[0] = float64(round)
		return model.Predictor{Features: features, Loss: loss, Theta: theta}, nil
	}
	memory := 10.0
	var records []service.Record
	for r := uint64(1); r <= 7; r++ {
		one := service.Record{Round: r, Users: 4, UsersSoFar: 4 * r, Time: time.Unix(int64(r), 0), Clip: 1, Memory: &memory,
			Snapshot: r != 4}
		if r == 1 { // moments
			one.Clip, one.Memory, one.Snapshot = 0, nil, false
		}
		records = append(records, one)
	}
	records[5].Rollback = &service.Rollback{To: 2, After: 6}
	records[6].Alarm = true
	by := map[uint64]uint64{3: 2, 4: 3, 5: 3, 6: 5, 7: 2} // round: whose model scores it
	var text strings.Builder
	var rows []string
	for i := range 30 {
		row := fmt.Sprintf("%d,c&d,%s", 3*i, []string{"<=50K", ">50K"}[i%2])
		if i == 17 {
			row = "no,number,here"
		}
		rows = append(rows, row)
		text.WriteString(row + "\n")
	}
	want := New(spec)
	for r := uint64(3); r <= 7; r++ {
		p, _ := of(by[r])
		for i := 4 * (r - 1); i < 4*r; i++ {
			reader, err := source.New(strings.NewReader(rows[i]+"\n"), features)
			if err != nil {
				t.Fatal(err)
			}
			for row, err := range reader.All() {
				var e convex.Example
				if err == nil {
					err = features.Map(row, &e)
				}
				if err == nil {
					want.Add(p, e)
				}
			}
			reader.Close()
		}
		want.Round(tracking(&records[r-1]))
	}
	want.End()
	reader, err := source.New(strings.NewReader(text.String()), features)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	got, err := Stream{Records: records, Model: of}.Follow(spec, features, reader.All())
	if err != nil {
		t.Fatal(err)
	}
	if got.Rows != 30 || got.Invalid != 1 || got.Unscored != 10 || got.Models != 3 || got.Rounds != 5 {
		t.Errorf("%+v", got)
	}
	s := got.Score
	if s.Users != 19 || s.AlarmCount != 1 || math.Abs(*s.LogLoss-*want.LogLoss) > 1e-15 || *s.Accuracy != *want.Accuracy ||
		math.Abs(*s.RecentLoss-*want.RecentLoss) > 1e-15 {
		t.Errorf("%v, want %v", s, want)
	}
	late := Stream{Records: records[4:], Model: of} // nothing is kept of the first rounds
	reader, err = source.New(strings.NewReader(text.String()), features)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = late.Follow(spec, features, reader.All()); err != nil || got.Rounds != 1 || got.Unscored != 26 {
		t.Errorf("%+v, %v", got, err)
	}
}
