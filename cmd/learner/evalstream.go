package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/cli"
	released "github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/prequential"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// stream evaluates the models of a learner on rows in the order in which their users took part.
func (e evalConfig) stream(c *cobra.Command, asJSON cli.JSON) error {
	doc, err := e.where.ask(c.Context(), statedir.HistoryOf(0))
	if err != nil {
		return err
	}
	var h statedir.HistoryReport
	if err := json.Unmarshal(doc, &h); err != nil {
		return fmt.Errorf("the learner's answer: %w", err)
	}
	p, err := e.kept(c, statedir.AskSnapshot)
	if err != nil {
		return err
	}
	rows, err := source.OpenFitting(e.data, p.Features)
	if err != nil {
		return cli.Usage(err)
	}
	defer rows.Close()
	models := map[uint64]released.Predictor{} // the one that was asked for last
	s := prequential.Stream{Records: h.Rounds, Unfit: run.NameRows(c.ErrOrStderr(), "left out"),
		Model: func(round uint64) (released.Predictor, error) {
			if p, ok := models[round]; ok {
				return p, nil
			}
			p, err := e.kept(c, statedir.SnapshotOf(round))
			clear(models)
			models[round] = p
			return p, err
		}}
	result, err := s.Follow(p.Spec(), p.Features, rows.All())
	if err != nil {
		return err
	}
	return asJSON.Print(c.OutOrStdout(), result, func(w io.Writer) error { return printFollowed(w, result) })
}

// kept returns a model of the learner that is asked.
func (e evalConfig) kept(c *cobra.Command, q statedir.Question) (released.Predictor, error) {
	doc, err := e.where.ask(c.Context(), q)
	if err != nil {
		return released.Predictor{}, err
	}
	s, err := released.Parse(doc)
	if err != nil {
		return released.Predictor{}, fmt.Errorf("the learner's answer: %w", err)
	}
	p, err := released.NewPredictor(s, task.Format(e.format))
	if err == nil && p.Spec().Privacy.ByUser() {
		err = cli.Usagef("--in-order: privacy.unit is user: rows of one person are no users one after the other")
	}
	return p, err
}

func printFollowed(w io.Writer, f prequential.Followed) error {
	said := f.Score.String()
	if f.Score.Users == 0 {
		said = "no row was scored: no model is kept of before their rounds"
	}
	err := printed(w, "%s\n%d rows of %d by %s of %s", said, f.Score.Users, f.Rows, cli.Count(f.Models, "model"),
		cli.Count(f.Rounds, "round"))
	if f.Unscored > 0 {
		err = printed(w, "; %d came before a model was kept, in a first look, or in no round", f.Unscored)
	}
	if l := f.Score.RecentLoss; l != nil && err == nil {
		err = printed(w, "\nrecently: loss %.4f", *l)
		if a := f.Score.RecentAccuracy; a != nil {
			err = printed(w, ", accuracy %.4f", *a)
		}
	}
	if err == nil {
		err = printed(w, "\n")
	}
	return err
}
