package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
)

// A taskStatus is the status of one of many tasks, or why there is none.
type taskStatus struct {
	*statedir.Status
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
}

// A faultyFile is a file of the folder of tasks that declares no valid task.
type faultyFile struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

// statuses is the output of status --all.
type statuses struct {
	Tasks  []taskStatus `json:"tasks"`
	Faulty []faultyFile `json:"faulty,omitempty"`
}

// listPatience bounds the wait for the list of a process's tasks.
const listPatience = 30 * time.Second

// statusOfAll asks each task of a process at a URL, or each state folder in a folder. A task that does not answer is a row
// with an error, as a file that is no task is, and an error in the end.
func statusOfAll(ctx context.Context, where whereFlags) (out statuses, err error) {
	if (where.StateDir == "") == (where.URL == "") {
		return out, cli.Usagef("name the learners with either --state DIR or --http URL")
	}
	var rows []many.Row
	if where.URL != "" {
		rows, err = listed(ctx, where.URL)
	} else {
		rows, err = stateFolders(where.StateDir)
	}
	if err != nil {
		return out, err
	}
	out.Tasks = []taskStatus{}
	var waiting, failed uint64
	for _, r := range rows {
		if r.State == many.Faulty {
			out.Faulty = append(out.Faulty, faultyFile{File: r.File, Error: r.Line})
			continue
		}
		one := where
		if where.URL != "" {
			one.URL = strings.TrimSuffix(where.URL, "/") + "/tasks/" + r.Task
		} else {
			one.StateDir = filepath.Join(where.StateDir, r.Task)
		}
		row := taskStatus{Name: r.Task, Status: new(statedir.Status)}
		doc, err := one.ask(ctx, statedir.AskStatus)
		if err == nil {
			err = json.Unmarshal(doc, row.Status)
		}
		switch {
		case errors.Is(err, state.ErrEmpty) && !r.Wrong:
			row.Status, row.Error = nil, strings.TrimSpace("has not begun yet. "+r.Line)
			waiting++
		case errors.Is(err, state.ErrEmpty):
			row.Status, row.Error = nil, string(r.State)+": "+r.Line
			failed++
		case err != nil:
			row.Status, row.Error = nil, err.Error()
			failed++
		}
		out.Tasks = append(out.Tasks, row)
	}
	return out, shortOf(failed, waiting, uint64(len(out.Faulty)))
}

// shortOf returns an error that counts the tasks and files without a status in status --all, or nil if there are none.
func shortOf(failed, waiting, faulty uint64) error {
	var parts []string
	if failed > 0 {
		parts = append(parts, "no status of "+cli.Count(failed, "task"))
	}
	if waiting > 0 {
		parts = append(parts, "not begun yet: "+cli.Count(waiting, "task"))
	}
	if faulty > 0 {
		parts = append(parts, "no task: "+cli.Count(faulty, "file"))
	}
	if parts == nil {
		return nil
	}
	return errors.New(strings.Join(parts, "; "))
}

// listed returns what a process shows of its tasks.
func listed(ctx context.Context, url string) ([]many.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/v1/tasks", nil)
	if err != nil {
		return nil, cli.Usagef("--http: want http://HOST:PORT of learner run --tasks --http")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, cli.Transient(fmt.Errorf("the learners do not answer: %w", err))
	}
	defer response.Body.Close()
	var doc many.Document[many.Row]
	if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&doc) != nil {
		return nil, cli.Usagef("--http: what answers is not learner run --tasks: without --all it may be the learner of one task")
	}
	return doc.Tasks, nil
}

// stateFolders returns a row for each state folder in a folder, with its name alone.
func stateFolders(dir string) (rows []many.Row, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cli.Usagef("--state: %w", err)
	}
	for _, e := range entries {
		if _, err := stream.ParseTask(e.Name()); err == nil && e.IsDir() {
			rows = append(rows, many.Row{Task: e.Name()})
		}
	}
	if rows == nil {
		return nil, cli.Usage(errors.New("--state: no folder of a task is in it: want the --state of learner run --tasks"))
	}
	return rows, nil
}

// print writes a line for each task.
func (s statuses) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "task\tsteps\tcounted\tepsilon spent\tstate")
	for _, t := range s.Tasks {
		switch {
		case t.Status == nil:
			fmt.Fprintf(w, "%s\t\t\t\t%s\n", t.Name, t.Error)
		case t.Rounds == 0:
			fmt.Fprintf(w, "%s\t%d\t%s\t%s of %g\t%s\n", t.Name, t.Steps, t.Counted().Count(t.Users),
				cli.Upper(t.EpsilonSpent, 6), t.EpsilonBudget, t.inWords())
		default:
			fmt.Fprintf(w, "%s\t%d of %d\t%s\t%s of %g\t%s\n", t.Name, t.Steps, t.Rounds, t.Counted().Count(t.Users),
				cli.Upper(t.EpsilonSpent, 6), t.EpsilonBudget, t.inWords())
		}
	}
	for _, f := range s.Faulty {
		fmt.Fprintf(w, "%s\t\t\t\tno task: %s\n", f.File, f.Error)
	}
	return w.Flush()
}

// inWords describes how far a task is.
func (t taskStatus) inWords() string {
	switch {
	case t.Ended:
		return "ended: " + t.EndReason
	case t.VoidsInARow > 0:
		return fmt.Sprintf("the last %s void", voidRounds(t.VoidsInARow))
	}
	return "learning"
}
