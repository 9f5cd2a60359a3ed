package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
)

// Schedule declares how many users there are and how they are spent. Zeros are left to the planner.
type Schedule struct {
	// Users is the number of units that are protected, in all: events, or people. A continuous task is planned for that
	// many and goes on after them. Of silos it is Count x Units.
	Users int `json:"users"`
	// Plan is schedule.Practical, the default where Algorithm names no method, or schedule.Proved.
	Plan string `json:"plan"`
	// Algorithm is one of schedule.Names, for a proved plan, or schedule.Auto. Default: Auto for a practical
	// plan, else the default of schedule.Case.
	Algorithm string `json:"algorithm"`
	// Interactive lets the same users report in every round of a phase (apgd, pgd): each is charged for all of them.
	Interactive bool `json:"interactive,omitempty"`
	// Continuous makes the task go on for as long as users come: one of schedule.Continuous; "" (default) ends
	// it.
	Continuous string `json:"continuous,omitempty"`
	// FirstCohort is the users of a practical plan who report moments, before all others. 0 (default): planned.
	FirstCohort int `json:"first_cohort,omitempty"`
	// Prox declares constants of the algorithm prox, which are then not planned.
	Prox          *prox  `json:"prox,omitempty"`
	Cohort        int    `json:"cohort"`         // users of one round; 0: planned
	MinimumCohort int    `json:"minimum_cohort"` // users without whom a round is not released; 0: planned
	Rounds        Rounds `json:"rounds"`
	// Deadline ends the collection of a round that has its minimum cohort. Default 60s.
	Deadline Duration `json:"deadline"`
	// Stale is the longest deadline of a round when users come slowly, at least Deadline. 0 (default): see Longest.
	Stale Duration `json:"stale,omitempty"`
	// Retention is the time for which the broker keeps the records of a round; it always keeps the newest rounds
	// (stream.KeptRounds). A device may be away for this time and still learn whether it was counted. Default 168h.
	Retention Duration `json:"retention"`
}

// Longest returns the longest deadline of a round: Stale, or by default 24h, or Deadline where that is longer.
func (c Schedule) Longest() Duration {
	if c.Stale == 0 {
		return max(c.Deadline, Duration(24*time.Hour))
	}
	return c.Stale
}

// prox declares how a silo answers a round of prox. Zeros are left to the planner.
type prox struct {
	// Weight is lambda of the term (lambda/2)||. - c||^2, in units of the loss over squared units of theta.
	Weight float64 `json:"weight,omitempty"`
	// Steps of gradient descent make an answer, each a pass over the rows of the block.
	Steps int `json:"steps,omitempty"`
}

// Rounds limits the number of rounds.
type Rounds struct {
	Max int `json:"max"` // 0: planned
}

// validate refuses a schedule that is contradictory, out of range, or not for the task's properties.
func (c Schedule) validate(task schedule.Case) error {
	if c.Users < 1 || c.Users > maxUsers {
		return refuse("schedule.users", c.Users, "a whole number from 1 to %d", maxUsers)
	}
	if err := c.validateAlgorithm(task); err != nil {
		return err
	}
	if c.Cohort < 0 || c.Cohort > c.Users {
		return refuse("schedule.cohort", c.Cohort, "a whole number from 1 to schedule.users (%d), or 0 to have it planned",
			c.Users)
	}
	most := c.Cohort
	if most == 0 {
		most = c.Users
	}
	if c.MinimumCohort < 0 || c.MinimumCohort > most {
		return refuse("schedule.minimum_cohort", c.MinimumCohort,
			"a whole number from 1 to the cohort (%d), or 0 to have it planned", most)
	}
	if x := c.Prox; x != nil {
		m, _ := schedule.Of(c.Algorithm)
		switch {
		case !m.Minimizers:
			return refuse("schedule.prox", "set", "nothing with schedule.algorithm %s: its reports are gradients", c.Algorithm)
		case x.Weight < 0:
			return refuse("schedule.prox.weight", x.Weight, "a number > 0, or 0 to have it planned")
		case x.Steps < 0:
			return refuse("schedule.prox.steps", x.Steps, "a whole number from 1 on, or 0 to have it planned")
		}
	}
	switch {
	case c.FirstCohort != 0 && !c.practical():
		return refuse("schedule.first_cohort", c.FirstCohort, "nothing in a proved plan")
	case c.FirstCohort < 0 || c.FirstCohort >= c.Users:
		return refuse("schedule.first_cohort", c.FirstCohort,
			"a whole number below schedule.users (%d), or 0 to have it planned", c.Users)
	}
	if c.Rounds.Max < 0 || c.Rounds.Max > c.Users {
		return refuse("schedule.rounds.max", c.Rounds.Max,
			"a whole number from 1 to schedule.users (%d), or 0 for the plan's own", c.Users)
	}
	if c.Deadline <= 0 || c.Deadline > maxDeadline {
		return refuse("schedule.deadline", c.Deadline, "a duration > 0 and at most %s", maxDeadline)
	}
	if c.Longest() < c.Deadline || c.Longest() > maxDeadline {
		return refuse("schedule.stale", c.Stale, "a duration from schedule.deadline (%s) to %s", c.Deadline, maxDeadline)
	}
	if c.Retention < minRetention || c.Retention > maxRetention {
		return refuse("schedule.retention", c.Retention, "a duration from %s to %s", minRetention, maxRetention)
	}
	return nil
}

// validatePlan refuses words that name no plan. Call it before the checks for a kind of plan.
func (c Schedule) validatePlan() error {
	if !c.Curated() {
		names := append([]string{schedule.Auto}, schedule.Names()...)
		if err := oneOf("schedule.algorithm", c.Algorithm, names...); err != nil {
			return err
		}
	}
	if err := oneOf("schedule.plan", c.Plan, schedule.Practical, schedule.Proved); err != nil {
		return err
	}
	if c.practical() && c.Algorithm != schedule.Auto {
		return refuse("schedule.plan", c.Plan, "%s: %s is one of the methods that it plans", schedule.Proved, c.Algorithm)
	}
	return nil
}

// Adaptive reports whether the task has no end and its model follows the stream.
func (c Schedule) Adaptive() bool { return c.Continuous == schedule.Adaptive }

// validateAlgorithm refuses algorithms that the loss, the trust or the rest of the schedule rule out.
func (c Schedule) validateAlgorithm(task schedule.Case) error {
	const path = "schedule.algorithm"
	if ways := schedule.Continuous(c.practical()); c.Continuous != "" && !slices.Contains(ways, c.Continuous) {
		others := strings.Join(schedule.Continuous(!c.practical()), ", ")
		return refuse("schedule.continuous", c.Continuous,
			"%s under schedule.plan %s, or nothing for a task that ends (schedule.plan %s has %s)",
			strings.Join(ways, ", "), c.Plan, other(c.Plan), others)
	}
	if c.Adaptive() && convex.TraitsOf(task.Loss).Labels == convex.Counts {
		return refuse("model.loss", task.Loss,
			"%s with label.min and label.max, or another loss of numbers, with schedule.continuous %s: steps are made for one "+
				"curvature, and that of %s grows with the count that the model expects, so that models of streams lag and swing",
			convex.First(convex.Numbers).Name, c.Continuous, task.Loss)
	}
	if c.Adaptive() && c.Rounds.Max > 0 {
		return refuse("schedule.rounds.max", c.Rounds.Max, "0 with schedule.continuous %s: its rounds never end",
			c.Continuous)
	}
	if c.Interactive {
		if c.Continuous != "" {
			return refuse("schedule.interactive", c.Interactive, "false with schedule.continuous: its users report once")
		}
		if task.Floors != "" { // Theorem C.3 is about algorithms that see each user once
			return refuse("schedule.interactive", c.Interactive, "false under trust %s: an intruder would see users again",
				task.Floors)
		}
		if m, named := schedule.Of(c.Algorithm); named && !m.Interactive && !m.Minimizers {
			return refuse(path, c.Algorithm, "auto, prox or one of apgd and pgd, which schedule.interactive is for: %s",
				m.Again())
		}
	}
	if c.practical() || c.Curated() {
		return nil
	}
	if err := task.Validate(c.Algorithm); err != nil {
		others := slices.DeleteFunc(schedule.Names(), func(m string) bool { return task.Validate(m) != nil })
		return refuse(path, c.Algorithm, "%s here: %v", strings.Join(others, " or "), err)
	}
	return nil
}

// other returns the other kind of plan.
func other(plan string) string {
	if plan == schedule.Practical {
		return schedule.Proved
	}
	return schedule.Practical
}

// practical reports whether the task has a practical plan.
func (c Schedule) practical() bool { return c.Plan == schedule.Practical }

// setDefaultPlan selects a practical plan, unless the task names a method with proved bounds.
func (s *Spec) setDefaultPlan() {
	c := &s.Schedule
	if c.Plan == "" {
		if c.Plan = schedule.Practical; c.Algorithm != "" && c.Algorithm != schedule.Auto {
			c.Plan = schedule.Proved
		}
	}
	if c.practical() {
		or(&c.Algorithm, schedule.Auto)
		return
	}
	or(&c.Algorithm, s.conditions().Default())
	or(&s.Model.ClipNorm, 1)
}

// conditions returns the properties of the task that decide which algorithms apply.
func (s *Spec) conditions() schedule.Case {
	c := schedule.Case{Loss: s.Model.Loss, Smooth: s.Model.traits().Smooth, Proximal: true, // as all declared losses are
		Ridge: s.Model.Ridge > 0, Interactive: s.Schedule.Interactive, Silos: s.Silo != nil, Cohort: s.Schedule.Cohort > 0,
		Continuous: s.Schedule.Continuous}
	if l, err := s.Loss(); err == nil {
		c.Minimizers = c.Smooth && convex.SlopeOf(l) != nil
	}
	c.All, c.ByUser = s.Silo == nil || s.Silo.Reports == s.Silo.Count, s.Privacy.ByUser()
	c.Scores, c.Set = s.Validation != nil && !s.Validation.Off, s.SetDeclaration().Kind
	if s.Privacy.Trust.HasIntruder() {
		c.Floors = s.Privacy.Trust.String()
	}
	return c
}

// A Duration is a time.Duration that is written as in "90s" or "1m30s".
type Duration time.Duration

// MarshalText writes d as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration accepts.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("a duration such as 60s or 1m30s")
	}
	*d = Duration(v)
	return nil
}

// String writes d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }
