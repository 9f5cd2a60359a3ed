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
	"github.com/panlearn/panlearn/stream"
)

// A taskStatus is the status of one of many tasks, or why there is none.
type taskStatus struct {
	*statedir.Status
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
}

// statuses are the answer of status --all.
type statuses struct {
	Tasks []taskStatus `json:"tasks"`
}

// listPatience bounds the wait for the list of a process's tasks.
const listPatience = 30 * time.Second

// statusOfAll asks each task of a process at a URL, or each state folder in a folder. A task that does not answer is a row
// with an error, and an error in the end.
func statusOfAll(ctx context.Context, where whereFlags) (out statuses, err error) {
	if (where.StateDir == "") == (where.URL == "") {
		return out, cli.Usagef("name the learners with either --state DIR or --http URL")
	}
	var names []string
	if where.URL != "" {
		names, err = listed(ctx, where.URL)
	} else {
		names, err = stateFolders(where.StateDir)
	}
	if err != nil {
		return out, err
	}
	failed := 0
	for _, name := range names {
		one := where
		if where.URL != "" {
			one.URL = strings.TrimSuffix(where.URL, "/") + "/tasks/" + name
		} else {
			one.StateDir = filepath.Join(where.StateDir, name)
		}
		row := taskStatus{Name: name, Status: new(statedir.Status)}
		doc, err := one.ask(ctx, statedir.AskStatus)
		if err == nil {
			err = json.Unmarshal(doc, row.Status)
		}
		if err != nil {
			row.Status, row.Error = nil, err.Error()
			failed++
		}
		out.Tasks = append(out.Tasks, row)
	}
	if failed > 0 {
		err = fmt.Errorf("no status of %s", cli.Count(uint64(failed), "task"))
	}
	return out, err
}

// listed returns the names of the tasks of a process.
func listed(ctx context.Context, url string) (names []string, err error) {
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
	for _, r := range doc.Tasks {
		if r.Task != "" {
			names = append(names, r.Task)
		}
	}
	return names, nil
}

// stateFolders returns the names of the state folders in a folder.
func stateFolders(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cli.Usagef("--state: %w", err)
	}
	for _, e := range entries {
		if _, err := stream.ParseTask(e.Name()); err == nil && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if names == nil {
		return nil, cli.Usage(errors.New("--state: no folder of a task is in it: want the --state of learner run --tasks"))
	}
	return names, nil
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
