package main

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/picture"
	"github.com/panlearn/panlearn/learner/planning"
)

// validatePicture refuses a file name before anything is computed for it.
func validatePicture(file string) error {
	if err := picture.Validate(file); err != nil {
		return cli.Usagef("--plot %w", err)
	}
	return cli.Writable("--plot", file)
}

// drawn wraps the error of a picture as an error of the flag --plot; it returns nil for nil.
func drawn(err error) error {
	if err != nil {
		return cli.Usagef("--plot: %w", err)
	}
	return nil
}

// A riskCurve is one line of both pictures.
type riskCurve struct {
	name string
	at   func(users uint64, epsilon float64) float64
}

// curves returns the risk curves of the algorithms that apply and of the baselines.
func (s planSurvey) curves() ([]riskCurve, error) {
	var out []riskCurve
	for _, a := range s.alternatives {
		if a.Err != nil {
			continue
		}
		c, err := s.job.Problem.Curve(a.Proposal)
		if err != nil {
			return nil, err
		}
		out = append(out, riskCurve{name: a.Method, at: c.At})
	}
	for _, b := range s.baselines {
		if b.Err != nil || b.Name == planning.BaselinePaper {
			continue
		}
		c, err := b.Curve(s.job.Problem)
		if err != nil {
			return nil, err
		}
		out = append(out, riskCurve{name: b.Name + ": " + b.Method, at: c.At})
	}
	return out, nil
}

// orders returns the lower bounds of theorems, constants left out.
func (s planSurvey) orders() (out []riskCurve) {
	for i, o := range s.report.Orders {
		if !o.Lower {
			continue
		}
		out = append(out, riskCurve{name: "order of the " + o.Name, at: func(users uint64, epsilon float64) float64 {
			q := s.job.Problem
			q.Users, q.Epsilon = users, epsilon
			return q.Orders()[i].Value
		}})
	}
	return out
}

// draw writes two pictures beside each other: predicted risk over users and over epsilon.
func (s planSurvey) draw(file string) error {
	if s.job.Problem.Practical != nil {
		return cli.Usagef("--plot: no bound is known of a practical plan: want schedule.plan=proved")
	}
	curves, err := s.curves()
	if err != nil {
		return err
	}
	p := s.job.Problem
	users := riskPanel(fmt.Sprintf("%s: bound on the excess risk, epsilon = %g", s.report.Task, p.Epsilon),
		s.report.All().Many)
	epsilons := riskPanel(fmt.Sprintf("%s, delta = %g", s.report.All().Count(p.Users), p.Delta), "epsilon")
	add := func(c riskCurve, color, dashes int) {
		line := picture.Line{Name: c.name, Color: color, Dashes: dashes}
		line.Points = picture.Sampled(float64(p.Users), 64, 24, math.Inf(1), func(x float64) float64 {
			return c.at(uint64(x), p.Epsilon)
		})
		users.Lines = append(users.Lines, line)
		line.Name = ""
		line.Points = picture.Sampled(p.Epsilon, 8, 12, 60, func(x float64) float64 { return c.at(p.Users, x) })
		epsilons.Lines = append(epsilons.Lines, line)
	}
	for i, c := range curves {
		add(c, i, i/7)
	}
	for i, c := range s.orders() {
		add(c, i, 3)
	}
	users.Lines = append(users.Lines, startLine("the start", users.Lines, s.job.TrivialRisk))
	epsilons.Lines = append(epsilons.Lines, startLine("", epsilons.Lines, s.job.TrivialRisk))
	return drawn(picture.Write(file, users, epsilons))
}

func riskPanel(title, x string) picture.Panel {
	return picture.Panel{Title: title, X: x, Y: "expected excess risk, at most", LogX: true, LogY: true,
		Legend: picture.TopRight}
}

// startLine returns a horizontal line at the start's risk, as wide as the lines in beside.
func startLine(name string, beside []picture.Line, risk float64) picture.Line {
	low, high := math.Inf(1), 0.0
	for _, l := range beside {
		for _, p := range l.Points {
			low, high = min(low, p.X), max(high, p.X)
		}
	}
	if high < low {
		return picture.Line{}
	}
	return picture.Level(name, low, high, risk)
}
