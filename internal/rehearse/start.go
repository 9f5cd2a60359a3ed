package rehearse

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/wording"
)

// A Start is the snapshot that a task begins with, and what it costs those who are in both.
type Start struct {
	Hash         string  `json:"hash"`
	Task         string  `json:"task"`
	ModelVersion uint64  `json:"model_version"`
	Epsilon      float64 `json:"epsilon"` // the snapshot's own; 0 where it promises nothing, and has to be public
	Delta        float64 `json:"delta"`
	// BothEpsilon and BothDelta hold for people who took part in the snapshot's task and take part in this one; null
	// if no epsilon of both is known.
	BothEpsilon *float64 `json:"both_epsilon"`
	BothDelta   *float64 `json:"both_delta"`

	about string
}

func StartOf(job run.Job) *Start {
	s := job.Start
	if s == nil {
		return nil
	}
	both := model.Statement{Kind: wording.Of(job.Plan), Epsilon: job.Plan.Epsilon, Delta: job.Plan.Delta}.From(job.Plan)
	out := &Start{Hash: hex.EncodeToString(s.Hash), Task: s.Task, ModelVersion: s.ModelVersion, about: both.Start.String()}
	if of := both.Start; of.Epsilon != nil {
		out.Epsilon, out.Delta = *of.Epsilon, *of.Delta
	}
	if both.Start.Adds {
		out.BothEpsilon, out.BothDelta = &both.Epsilon, &both.Delta
	}
	return out
}

func (s *Start) Print(w io.Writer) {
	if s == nil {
		return
	}
	fmt.Fprintf(w, "start         a model of task %s, %s\n", s.Task, cli.Count(s.ModelVersion, "step"))
	if s.BothEpsilon == nil {
		fmt.Fprintf(w, "              %s\n", s.about)
		return
	}
	fmt.Fprintf(w,
		"              with epsilon %s, delta %g of its own: somebody in both tasks is protected by epsilon %s, delta %g together\n",
		cli.Upper(s.Epsilon, 4), s.Delta, cli.Upper(*s.BothEpsilon, 4), *s.BothDelta)
}
