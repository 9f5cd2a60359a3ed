package task

import (
	"strings"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// Schedule says how many users there are and how they are spent. Zeros are left to the planner.
type Schedule struct {
	// Users is the number of events in all: one event, one user. A continuous task is planned for that many and goes on after them.
	Users int `json:"users"`
	// Algorithm is psgd, pagd, pagd-envelope, pagd-restarts, pagd-envelope-restarts, pgd, pgd-envelope, pgd-restarts,
	// pgd-envelope-restarts or auto. Default: auto for interactive tasks, psgd for a constant or decaying step, else pagd, or
	// pagd-envelope where the loss is not smooth.
	Algorithm string `json:"algorithm"`
	// Interactive lets the same users answer every round of a phase (pgd): each is charged for all of them.
	Interactive bool `json:"interactive,omitempty"`
	// Continuous has the task go on for as long as users come: "" (default) ends it; constant and decaying are step sizes of
	// psgd; epochs are accelerated, restarted, each twice as long as the one before.
	Continuous    string `json:"continuous,omitempty"`
	Cohort        int    `json:"cohort"`         // users of one round; 0: planned
	MinimumCohort int    `json:"minimum_cohort"` // users without whom a round is not released; 0: planned
	Rounds        Rounds `json:"rounds"`
	// Deadline ends the collection of a round that has its minimum cohort. Default 60s.
	Deadline Duration `json:"deadline"`
	// NoiseDamping in (0, 1] makes the steps of pagd and pgd longer than their bounds want. 0 (default) means 0.5 for pagd, 1 for
	// pgd. Privacy does not depend on it.
	NoiseDamping float64 `json:"noise_damping"`
}

// Rounds limits the number of rounds.
type Rounds struct {
	Max int `json:"max"` // 0: planned
}

// The values of Schedule.Continuous.
const (
	ConstantStep = "constant"
	DecayingStep = "decaying"
	Epochs       = "epochs"
)

var algorithmNames = [...]string{"auto", "psgd", "pagd", "pagd-envelope", "pagd-restarts", "pagd-envelope-restarts",
	"pgd", "pgd-envelope", "pgd-restarts", "pgd-envelope-restarts"}

func (s *Spec) checkSchedule() error {
	c := s.Schedule
	if c.Users < 1 || c.Users > maxUsers {
		return refuse("schedule.users", c.Users, "a whole number from 1 to %d", maxUsers)
	}
	if err := s.checkAlgorithm(); err != nil {
		return err
	}
	if c.Cohort < 0 || c.Cohort > c.Users {
		return refuse("schedule.cohort", c.Cohort, "a whole number from 1 to schedule.users (%d), or 0 to have it planned", c.Users)
	}
	most := c.Cohort
	if most == 0 {
		most = c.Users
	}
	if c.MinimumCohort < 0 || c.MinimumCohort > most {
		return refuse("schedule.minimum_cohort", c.MinimumCohort, "a whole number from 1 to the cohort (%d), or 0 to have it planned", most)
	}
	if c.Rounds.Max < 0 || c.Rounds.Max > c.Users {
		return refuse("schedule.rounds.max", c.Rounds.Max, "a whole number from 1 to schedule.users (%d), or 0 for no limit", c.Users)
	}
	if c.Deadline <= 0 || c.Deadline > maxDeadline {
		return refuse("schedule.deadline", c.Deadline, "a duration > 0 and at most %s", maxDeadline)
	}
	if c.NoiseDamping < 0 || c.NoiseDamping > 1 {
		return refuse("schedule.noise_damping", c.NoiseDamping, "a number in (0, 1], or 0 for the method's own")
	}
	return nil
}

// checkAlgorithm refuses algorithms that the loss, the trust or the rest of the schedule rule out.
func (s *Spec) checkAlgorithm() error {
	c := s.Schedule
	const path = "schedule.algorithm"
	if err := oneOf(path, c.Algorithm, algorithmNames[:]...); err != nil {
		return err
	}
	family, _, _ := strings.Cut(c.Algorithm, "-")
	if c.Interactive {
		if c.Continuous != "" {
			return refuse("schedule.interactive", c.Interactive, "false with schedule.continuous: its users answer once")
		}
		// Theorem C.3 is about algorithms that see each user once.
		if trust, err := accounting.ParseTrust(s.Privacy.Trust); err == nil && trust.HasFloors() {
			return refuse("schedule.interactive", c.Interactive, "false under trust %s: an intruder would see users again", s.Privacy.Trust)
		}
		if family != "pgd" && family != "auto" {
			return refuse(path, c.Algorithm, "auto or one of pgd, which schedule.interactive is for")
		}
	} else if family == "pgd" {
		return refuse(path, c.Algorithm, "schedule.interactive: true with it: the same users answer every round")
	}
	switch c.Continuous {
	case "":
	case ConstantStep, DecayingStep:
		if c.Algorithm != "psgd" {
			return refuse(path, c.Algorithm, "psgd with schedule.continuous %s", c.Continuous)
		}
	case Epochs:
		if c.Algorithm != "pagd" && c.Algorithm != "pagd-envelope" {
			return refuse(path, c.Algorithm, "pagd or pagd-envelope with schedule.continuous epochs")
		}
	default:
		return refuse("schedule.continuous", c.Continuous, "constant, decaying or epochs, or nothing for a task that ends")
	}
	envelope := strings.Contains(c.Algorithm, "-envelope")
	if (family == "pagd" || family == "pgd") && !envelope && !s.traits().Smooth {
		return refuse(path, c.Algorithm, "psgd, auto or one of -envelope: loss %s is not smooth", s.Model.Loss)
	}
	if envelope {
		loss, err := s.Loss()
		if err != nil {
			return err
		}
		if _, ok := loss.(convex.Proximal); !ok {
			return refuse(path, c.Algorithm, "one without an envelope: loss %s has no proximal map", s.Model.Loss)
		}
	}
	if strings.HasSuffix(c.Algorithm, "-restarts") && s.Model.Ridge == 0 {
		return refuse(path, c.Algorithm, "model.ridge > 0 with it, which makes the loss strongly convex")
	}
	return nil
}

// setDefaultAlgorithm is the default that Schedule.Algorithm describes.
func (s *Spec) setDefaultAlgorithm() {
	algorithm := "pagd"
	switch c := s.Schedule; {
	case c.Interactive:
		algorithm = "auto"
	case c.Continuous == ConstantStep || c.Continuous == DecayingStep:
		algorithm = "psgd"
	case !s.traits().Smooth:
		algorithm = "pagd-envelope"
	}
	or(&s.Schedule.Algorithm, algorithm)
}
