package convex_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestDocumentsListLosses: where a page lists losses, it lists those of the table.
func TestDocumentsListLosses(t *testing.T) {
	pages := map[string]string{}
	page := func(name string) string {
		if pages[name] == "" {
			data, err := os.ReadFile("../../docs/" + name)
			if err != nil {
				t.Fatal(err)
			}
			pages[name] = strings.Join(strings.Fields(string(data)), " ")
		}
		return pages[name]
	}
	names := func(have func(convex.Traits) bool) []string {
		return slices.DeleteFunc(convex.LossNames(), func(name string) bool { return !have(convex.TraitsOf(name)) })
	}
	of := func(kind convex.Labels) string {
		return strings.Join(names(func(r convex.Traits) bool { return r.Labels == kind }), ", ")
	}
	sloped := strings.ReplaceAll(convex.SlopedLosses(), " or ", ", ")
	smooth := strings.Join(names(func(r convex.Traits) bool { return r.Smooth }), ", ")
	publicly := names(func(r convex.Traits) bool { return r.Scores.Probable() || r.HalfSquare })
	last := len(publicly) - 1
	wants := map[string][]string{
		"reference/tasks.md": {"| `positive` `negative` | " + of(convex.TwoClasses) + " |",
			"| `classes` | " + of(convex.ManyClasses) + " |", "| `min` `max` `scale` | " + of(convex.Numbers) + " |",
			"| `max` | " + of(convex.Counts) + " |", "| `offset` | " + of(convex.Numbers) + " |"},
		"reference/algorithms.md": {"Smooth losses: " + smooth + ".", "(" + sloped + ")"},
		"proofs/reports.md":       {"(" + sloped + ")"},
		"reference/drafts.md": {"losses other than " + strings.Join(publicly[:last], ", ") + " and " + publicly[last] +
			";"},
	}
	for _, name := range convex.LossNames() {
		wants["reference/tasks.md"] = append(wants["reference/tasks.md"], "| `"+name+"` |")
		for _, table := range []string{"reference/algorithms.md", "reference/statistics.md"} {
			if !strings.Contains(page(table), "| "+name+" |") && !strings.Contains(page(table), "| "+name+", ") {
				t.Errorf("docs/%s has no row of %s", table, name)
			}
		}
	}
	for name, texts := range wants {
		for _, want := range texts {
			if !strings.Contains(page(name), want) {
				t.Errorf("docs/%s does not list %q", name, want)
			}
		}
	}
}
