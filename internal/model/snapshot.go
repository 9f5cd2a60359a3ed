package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/internal/wording"
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
	ModelVersion  uint64 `json:"model_version"` // steps taken and rollbacks; 0 is the start
	// RolledBackTo is the round of this model, if it was released again after Round.
	RolledBackTo uint64 `json:"rolled_back_to,omitempty"`
	Ended        bool   `json:"ended,omitempty"` // the task is over: no newer model comes
	Loss         string `json:"loss"`
	// Weights has a row for each score, one except for softmax; its columns belong to Features one by one. Intercept is
	// the constant of each score.
	Weights   Rows              `json:"weights"`
	Intercept Constants         `json:"intercept"`
	Features  []task.Coordinate `json:"features"`
	// Classes names the classes in the order of the scores: negative before positive, or softmax's classes in order. None
	// for numbers and counts.
	Classes []string `json:"classes,omitempty"`
	// Probabilities is the kind of the model's probabilities; empty where the loss has none.
	Probabilities Probabilities `json:"probabilities,omitempty"`
	// Calibration is the line that the scores were moved by; nil where they are as they were learned.
	Calibration *Calibration `json:"calibration,omitempty"`
	// Memory is about how many users' events the model of a task without end remembers; 0 for others.
	Memory   float64    `json:"memory_users,omitempty"`
	Privacy  Statement  `json:"privacy"`
	TaskHash state.Hash `json:"task_hash"`
	// Declaration is the declared part of the task: how a raw event becomes Features.
	Declaration json.RawMessage `json:"declaration"`
	// PublicModel is the file of the declaration's public model, in JSON as base64; nil without one.
	PublicModel []byte `json:"public_model,omitempty"`
}

// Sample returns about how many units the model was learned from: all that were counted, or those that it
// remembers; 0 if the snapshot does not tell.
func (s Snapshot) Sample() uint64 {
	n := s.Privacy.Users
	switch {
	case s.Privacy.Together() && !s.Privacy.Public:
		n = s.Privacy.Units
	case s.Privacy.Silos > 0 && !s.Privacy.Public:
		n *= max(1, s.Privacy.Units)
	}
	if s.Memory > 0 {
		n = uint64(min(float64(n), s.Memory))
	}
	return n
}

// A Statement bounds how much a model reveals about a protected unit.
type Statement struct {
	wording.Kind
	Trust          string              `json:"trust"`
	Unit           string              `json:"unit"` // what is protected, in words
	Epsilon        float64             `json:"epsilon"`
	Delta          float64             `json:"delta"`
	HonestFraction accounting.Fraction `json:"honest_fraction"`
	Users          uint64              `json:"users"` // counted in the model; Kind.Counted says what they are
	// NoiseKnown reports whether the noise follows from a seed that is no secret: nothing is protected, and
	// there is no epsilon and no delta.
	NoiseKnown bool `json:"noise_known,omitempty"`
	// Public reports whether the model was learned without noise, of data that were declared to need no
	// protection: nothing is protected, and there is no epsilon and no delta.
	Public bool `json:"public,omitempty"`
	// Start is the model that learning began with, which Epsilon and Delta include where it states its own; absent
	// without one. See From.
	Start *Origin `json:"start,omitempty"`
}

// Known returns the statement of a model with known noise.
func (s Statement) Known() Statement {
	s.NoiseKnown, s.Epsilon, s.Delta = true, 0, 0
	return s
}

// Unprotected returns the statement of a model of public data.
func Unprotected(k wording.Kind) Statement {
	return Statement{Kind: k, Unit: "nothing: the data were said to be public", HonestFraction: accounting.One,
		Public: true}
}

// MarshalJSON writes null for epsilon and delta where nothing is protected: 0 would be the best of all.
func (s Statement) MarshalJSON() ([]byte, error) {
	type plain Statement
	if s.protects() {
		return json.Marshal(plain(s))
	}
	return json.Marshal(struct {
		plain
		Epsilon *float64 `json:"epsilon"`
		Delta   *float64 `json:"delta"`
	}{plain: plain(s)})
}

// String returns the statement as a sentence, or two.
func (s Statement) String() string {
	if s.Start == nil {
		return s.sentence()
	}
	return s.sentence() + " " + s.Start.String()
}

func (s Statement) sentence() string {
	if s.Public {
		return "NOT PRIVATE: learned without any noise, from data that were said to need no protection."
	}
	if s.NoiseKnown {
		return "Not private: the noise follows from a known seed, so anybody who has the seed can subtract it."
	}
	about := ""
	if s.Silos > 0 {
		of := "with" // a silo
		if s.Counted() == wording.Report {
			of = "about"
		}
		about = fmt.Sprintf(" %s at least %s each", of, s.Kind.Unit().Count(s.Units))
	}
	if s.Together() && (s.Interactive || s.Once) {
		return fmt.Sprintf("Differentially private: epsilon %v, delta %v, for %s. Learned from at least %s in one place.",
			s.Epsilon, s.Delta, s.Unit, s.Kind.Unit().Count(s.Units))
	}
	return fmt.Sprintf("Differentially private: epsilon %v, delta %v under trust %s%s, for %s. Learned from %s%s.",
		s.Epsilon, s.Delta, s.Trust, s.Assuming(s.Trust, s.HonestFraction), s.Unit, s.Counted().Count(s.Users), about)
}

// Of returns a snapshot of a task's parameters, without what only a run knows: rounds, privacy, hash.
func Of(spec *task.Spec, parameters []float64) (Snapshot, error) {
	features, err := spec.Compile()
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{FormatVersion: Version, Task: spec.Name,
		Loss: spec.Model.Loss, Features: features.Coordinates(), PublicModel: spec.Features.Public.Data(), Classes: features.Classes()}
	if s.Declaration, err = spec.Canonical(); err != nil {
		return Snapshot{}, err
	}
	for theta := range slices.Chunk(parameters, features.Dim()) {
		weights, intercept, err := features.Undo(theta)
		if err != nil {
			return Snapshot{}, fmt.Errorf("weights in the units of the data: %w", err)
		}
		s.Weights, s.Intercept = append(s.Weights, weights), append(s.Intercept, intercept)
	}
	return s, s.validateFinite()
}

// Parse reads a snapshot in JSON or in a .npz container. It refuses one of more values than its declaration needs
// before it takes memory for them, and one with a weight that is null or not finite.
func Parse(data []byte) (Snapshot, error) {
	switch {
	case bytes.HasPrefix(data, []byte(zipMagic)):
		s, err := parseNumPy(data)
		if err == nil {
			err = s.validateFinite()
		}
		return s, err
	case bytes.HasPrefix(data, []byte(onnxMagic)):
		return Snapshot{}, errors.New("model: an ONNX model is for ONNX runtimes: want a snapshot in json or npy")
	}
	s, _, err := parseJSON(data)
	return s, err
}

// onnxMagic is the beginning of ONNX models: field 1, the version of the format, as a varint.
const onnxMagic = "\x08"

// validateFinite refuses a model with a weight that is not a number.
func (s *Snapshot) validateFinite() error {
	for _, row := range append(s.Weights[:len(s.Weights):len(s.Weights)], s.Intercept) {
		for _, w := range row {
			if math.IsNaN(w) || math.IsInf(w, 0) {
				return errors.New("model: a weight is not finite in the units of the data")
			}
		}
	}
	return nil
}
