package main

import (
	"fmt"
	"io"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/learner/method"
)

// printValidation says what the users' scores say: nothing where there are none.
func printValidation(w io.Writer, v *method.Validation) error {
	if v == nil {
		return nil
	}
	rounds := "the only round"
	if v.Rounds != 1 {
		rounds = "all " + cli.Count(v.Rounds, "round")
	}
	line := func(name string, s method.Scores, unit string, times float64) error {
		text := func(b method.Band) string {
			return fmt.Sprintf("%.3g%s (%.3g to %.3g)", times*b.Value, unit, times*b.Low, times*b.High)
		}
		_, err := fmt.Fprintf(w, "progressive %-9s %s of late, %s over %s\n", name, text(s.Recent), text(s.Overall), rounds)
		return err
	}
	if v.Accuracy != nil {
		if err := line("accuracy", *v.Accuracy, " %", 100); err != nil {
			return err
		}
	}
	if err := line("loss", v.Loss, "", 1); err != nil {
		return err
	}
	if v.Repeated {
		_, err := fmt.Fprintln(w, "              on the events of users who are asked in every round: the model has learned from them")
		return err
	}
	return nil
}
