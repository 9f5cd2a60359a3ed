package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/learner/task"
)

// TestCommandsRunWhatTheyIllustrate: a command under a heading of docs/reference/algorithms.md plans a method that the
// heading names, or one of those that --algorithms lists for its picture.
func TestCommandsRunWhatTheyIllustrate(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `="(.*)"$`).FindSubmatch(page)
		if m == nil {
			t.Fatalf("the page does not say what %s is", name)
		}
		return string(m[1])
	}
	all := strings.NewReplacer("$Q", of("Q"), "$S", of("S"), "\n", " ")
	// what a section is of, where its heading names no method
	sections := map[string]func(job run.Job) bool{
		"Pan-private versions": func(job run.Job) bool {
			return slices.Contains(schedule.Names(), job.Plan.Algorithm) && job.Problem.Trust.HasFloors()
		},
		"Streams without an end": func(job run.Job) bool { return job.Problem.Continuous == schedule.Epochs },
		"auto":                   func(job run.Job) bool { return strings.HasPrefix(job.Why, "auto took ") },
	}
	var illustrated []string
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		_, text, found := strings.Cut(text, "\n**Command.**")
		if !found {
			continue
		}
		text, _, _ = strings.Cut(text, "\n\n")
		names := regexp.MustCompile(`[a-z-]+`).FindAllString(heading, -1)
		for _, command := range regexp.MustCompile("`(learner [^`]*)`").FindAllStringSubmatch(text, -1) {
			args := strings.ReplaceAll(all.Replace(command[1]), "'", "")
			file := regexp.MustCompile(`-f (deploy/tasks/[a-z0-9-]+\.yaml)`).FindStringSubmatch(args)
			if file == nil {
				continue // of a task of the reader's
			}
			var sets []string
			for _, s := range regexp.MustCompile(`--set (\S+=(?:\{[^}]*\}|\S+))`).FindAllStringSubmatch(args, -1) {
				sets = append(sets, s[1])
			}
			illustrated = append(illustrated, names...)
			var listed []string
			if m := regexp.MustCompile(`--algorithms (\S+)`).FindStringSubmatch(args); m != nil {
				listed = strings.Split(m[1], ",")
			}
			spec, err := task.Load("../../"+file[1], sets)
			for _, m := range listed { // one of them is planned: auto would measure all
				if one, refused := task.Load("../../"+file[1], append(slices.Clone(sets), "schedule.algorithm="+m)); refused == nil {
					spec = one
				}
			}
			if err != nil {
				t.Errorf("%s: %s: %v", heading, args, err)
				continue
			}
			job, err := run.NewJob(spec)
			if err != nil {
				t.Errorf("%s: %s: %v", heading, args, err)
				continue
			}
			if listed != nil {
				if !slices.ContainsFunc(listed, func(m string) bool { return slices.Contains(names, m) }) &&
					sections[heading] == nil {
					t.Errorf("%s: the picture is of %v: %s", heading, listed, args)
				}
				for _, m := range listed {
					if err := job.Problem.Applies(m); err != nil {
						t.Errorf("%s: %s: %s: %v", heading, args, m, err)
					}
				}
				continue
			}
			if is := sections[heading]; is == nil && !slices.Contains(names, job.Plan.Algorithm) || is != nil && !is(job) {
				t.Errorf("%s: plans %s: %s", heading, job.Plan.Algorithm, args)
			}
		}
	}
	for _, name := range schedule.Names() {
		if !slices.Contains(illustrated, name) {
			t.Errorf("no command illustrates %s", name)
		}
	}
}
