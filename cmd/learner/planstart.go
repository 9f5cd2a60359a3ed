package main

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run"
)

// A planStart is the snapshot that a task begins with, and what it costs those who are in both.
type planStart struct {
	Hash         string  `json:"hash"`
	Task         string  `json:"task"`
	ModelVersion uint64  `json:"model_version"`
	Epsilon      float64 `json:"epsilon"` // the snapshot's own; 0 where it says nothing, and has to be public
	Delta        float64 `json:"delta"`
	// BothEpsilon and BothDelta hold for who took part in the snapshot's task and takes part in this one.
	BothEpsilon float64 `json:"both_epsilon"`
	BothDelta   float64 `json:"both_delta"`
}

func startOf(job run.Job) *planStart {
	s := job.Start
	if s == nil {
		return nil
	}
	return &planStart{Hash: hex.EncodeToString(s.Hash), Task: s.Task, ModelVersion: s.ModelVersion, Epsilon: s.Privacy.Epsilon, Delta: s.Privacy.Delta,
		BothEpsilon: s.Privacy.Epsilon + job.Plan.Epsilon, BothDelta: s.Privacy.Delta + job.Plan.Delta}
}

func (s *planStart) print(w io.Writer) {
	if s == nil {
		return
	}
	fmt.Fprintf(w, "start         a model of task %s, %s\n", s.Task, cli.Count(s.ModelVersion, "step"))
	if s.Epsilon == 0 {
		fmt.Fprintln(w, "              it states no epsilon, so it has to be public: this task's epsilon says nothing about whose data it was learned from")
		return
	}
	fmt.Fprintf(w, "              with epsilon %s, delta %g of its own: whoever is in both tasks is protected by epsilon %s, delta %g together\n",
		cli.Upper(s.Epsilon, 4), s.Delta, cli.Upper(s.BothEpsilon, 4), s.BothDelta)
}
