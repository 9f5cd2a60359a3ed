package model

import (
	"fmt"
	"strings"

	"github.com/panlearn/panlearn/learner/task"
)

// startKeys are the parts of a declaration that a model depends on.
var startKeys = [...]string{"features", "intercept", "label", "model.loss", "model.level", "model.width",
	"model.score_bound"}

// Start returns the model as a point of the task's parameters, in the coordinates of its feature map. It refuses a
// model of other features, another label or another loss, and names the keys that differ.
func (s Snapshot) Start(spec *task.Spec) ([]float64, error) {
	own, err := spec.Canonical()
	if err != nil {
		return nil, err
	}
	var differ []task.Difference
	for _, d := range task.Differences(own, s.Declaration) {
		for _, key := range startKeys {
			if rest, has := strings.CutPrefix(d.Key, key); has && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				differ = append(differ, d)
			}
		}
	}
	if len(differ) > 0 {
		return nil, fmt.Errorf("model.start: want a model of the same features, label and loss; %s",
			task.DifferenceText(differ))
	}
	if err := s.validateFinite(); err != nil {
		return nil, fmt.Errorf("model.start: %w", err)
	}
	p, err := NewPredictor(s, "")
	if err != nil {
		return nil, fmt.Errorf("model.start: %w", err)
	}
	return p.Theta, nil
}
