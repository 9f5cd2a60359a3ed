package model

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/state"
)

// Version is the format_version of a snapshot.
const Version = 1

// A Snapshot is a released model with the privacy statement that belongs to it. Weights are in the units of the data.
type Snapshot struct {
	FormatVersion int    `json:"format_version"`
	Task          string `json:"task"`
	Round         uint64 `json:"round"`         // last committed
	ModelVersion  uint64 `json:"model_version"` // steps taken; 0 is the start
	Loss          string `json:"loss"`
	// Weights has a row for each score, one but for softmax; its columns belong to Features one by one. Intercept is the
	// constant of each score.
	Weights   Rows              `json:"weights"`
	Intercept Constants         `json:"intercept"`
	Features  []task.Coordinate `json:"features"`
	Privacy   Statement         `json:"privacy"`
	TaskHash  state.Hash        `json:"task_hash"`
	// Declaration is the declared part of the task: how a raw event becomes Features.
	Declaration json.RawMessage `json:"declaration"`
}

// A Statement says what a model reveals about one person's event at most.
type Statement struct {
	Trust          string              `json:"trust"`
	Unit           string              `json:"unit"`
	Epsilon        float64             `json:"epsilon"`
	Delta          float64             `json:"delta"`
	HonestFraction accounting.Fraction `json:"honest_fraction"`
	Users          uint64              `json:"users"` // counted in the model
}

// Unit is what is protected: docs/privacy.md.
const Unit = "one event of one user in one round, replaced by any other"

// Parse reads a snapshot in JSON.
func Parse(data []byte) (Snapshot, error) {
	var s Snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return Snapshot{}, fmt.Errorf("model: not a snapshot in JSON: %w", err)
	}
	if s.FormatVersion != Version {
		return Snapshot{}, fmt.Errorf("model: format_version %d, this program reads %d", s.FormatVersion, Version)
	}
	return s, nil
}

// CheckFinite refuses a model with a weight that is not a number.
func (s *Snapshot) CheckFinite() error {
	for _, row := range append(s.Weights[:len(s.Weights):len(s.Weights)], s.Intercept) {
		for _, w := range row {
			if math.IsNaN(w) || math.IsInf(w, 0) {
				return fmt.Errorf("round %d: a weight is not finite in the units of the data", s.Round)
			}
		}
	}
	return nil
}
