package schedule

import (
	"fmt"
	"slices"
)

// curated lists the methods of one process that has all rows, see package oneplace, in the order of the documentation.
var curated = [...]string{"output", "output-sgd", "output-phases", "gradscore", "deletion", "phased-erm", "phased-sco",
	"strongly-convex-erm", "strongly-convex-sco", "group-sgd", "filtered", "resque", "resque-sco", "resque-ball",
	"noisy-sgd", "ball-accel", "fixed-lambda"}

// CuratedNames lists the methods of one process, in the order of the documentation.
func CuratedNames() []string { return slices.Clone(curated[:]) }

// Curated reports whether a method of one process has the name.
func Curated(name string) bool { return slices.Contains(curated[:], name) }

// limited are the methods of one process whose steps, or rounds of queries, may be limited.
var limited = [...]string{"noisy-sgd", "resque", "resque-sco", "resque-ball"}

// Limited reports whether the number of steps, or of rounds of queries, of a method of one process may be limited, by
// schedule.rounds.max.
func Limited(name string) bool { return slices.Contains(limited[:], name) }

// OnePlace refuses a method of one process where rows are in many places; nil: it is none.
func OnePlace(name string) error {
	if !Curated(name) {
		return nil
	}
	return fmt.Errorf("a method of one process that has all rows: learner fit --algorithm %s runs it", name)
}
