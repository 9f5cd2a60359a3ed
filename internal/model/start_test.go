package model

import (
	"slices"
	"strings"
	"testing"
)

// A model is a start for tasks of the same features, label and loss, whatever else they declare.
func TestStart(t *testing.T) {
	s, p := released(t, parsed(t, words), 1, 2, 3, 4)
	for change, want := range map[string]string{
		"": "", "epsilon: 1=epsilon: 0.5": "", "radius: 5=radius: 50, clip_norm: 3": "", "users: 600=users: 7000": "",
		"name: words=name: more":       "",
		"max: 100=max: 120":            "features.columns[0].max: file says 120, task has 100",
		`"c&d"]="c&d", "e"]`:           "features.columns[1].vocabulary[2]",
		"unknown: drop=unknown: other": "features.columns[1].unknown",
		`">50K"]=">60K"]`:              "label.positive[0]",
		"loss: logistic=loss: hinge":   "model.loss",
		"label:=intercept: 0\nlabel:":  "intercept",
	} {
		old, with, _ := strings.Cut(change, "=")
		file := strings.Replace(words, old, with, 1)
		if change != "" && file == words {
			t.Fatalf("%s changes nothing", change)
		}
		theta, err := s.Start(parsed(t, file))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", change, err)
		case want == "" && !slices.Equal(theta, p.Theta):
			t.Errorf("%s: %v, want %v", change, theta, p.Theta)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}
