package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fault returns the fault of a block's mark; "" if it has none.
func fault(b block, before []block) string {
	allowed := map[string][]string{
		"sh": {"test", "long", "users", "needs", "background", "norun"}, "python": {"test", "needs", "norun"},
		"text": {"output"}, "yaml": {"file", "norun"}, "go": {"in", "norun"}, "ts": {"norun"}, "mermaid": {}, "json": {},
		"csv": {},
	}
	words, known := allowed[b.lang]
	if !known {
		return "the language " + b.lang + " is none of ours: sh, python, text, yaml, go, ts, mermaid, json, csv"
	}
	for w := range b.words {
		if !slices.Contains(words, w) {
			return "the word " + w + " means nothing after " + b.lang
		}
	}
	switch b.lang {
	case "sh", "python":
		if b.has("test") == b.has("norun") || b.has("norun") && b.words["norun"] == "" {
			return `it is to be run (test), or to say why not (norun="why")`
		}
		if !b.has("test") && (b.has("long") || b.has("users")) {
			return "long and users= say how it is run, and it is not"
		}
	case "yaml", "go", "ts":
		if len(b.words) == 0 {
			return `nothing checks it: file=NAME, in=PATH, or norun="why"`
		}
	case "text":
		if b.has("output") && (len(before) == 0 || !before[len(before)-1].has("test")) {
			return "output of no block that is run"
		}
	}
	return ""
}

func TestEveryBlockIsMarked(t *testing.T) {
	run := 0
	for _, page := range pages(t) {
		all, _ := parsed(t, page)
		for i, b := range all {
			if f := fault(b, all[:i]); f != "" {
				t.Errorf("%s: %s", b.at(), f)
			}
			if b.has("test") {
				run++
			}
		}
	}
	if run < 15 {
		t.Errorf("%d blocks are run: the pattern is broken", run)
	}
}

// The mark cannot be left off or misspelled.
func TestMarks(t *testing.T) {
	for text, good := range map[string]bool{
		"```sh test\ntrue\n```": true, "```sh norun=\"a cluster\"\ntrue\n```": true,
		"```sh test needs=curl,jq\ntrue\n```":           true,
		"```sh test\ntrue\n```\n```text output\n1\n```": true, "```text\n1\n```": true,
		"```sh test long\ntrue\n```": true, "```sh norun=\"a cluster\" long\ntrue\n```": false, "```\ntrue\n```": false,
		"```sh\ntrue\n```": false, "```sh norun\ntrue\n```": false, "```sh norun=\"\"\ntrue\n```": false,
		"```sh test norun=\"a cluster\"\ntrue\n```": false, "```sh tset\ntrue\n```": false, "```bash test\ntrue\n```": false,
		"```text output\n1\n```": false, "```yaml\na: 1\n```": false,
	} {
		all, _, err := parse("page", text)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for i, b := range all {
			found += fault(b, all[:i])
		}
		if (found == "") != good {
			t.Errorf("%q: %q", text, found)
		}
	}
	for _, text := range []string{"```sh test\ntrue\n", "~~~sh\ntrue\n~~~", "````sh\ntrue\n````",
		"```sh norun=\"`x`\"\ntrue\n```"} {
		if _, _, err := parse("page", text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// A command that is indented and not fenced would escape.
func TestCommandsAreFenced(t *testing.T) {
	indented := regexp.MustCompile(
		`(?m)^(?: {4,}|\t)(?:\$ )?(?:[A-Z_]+=\S* )*(?:bin/|\./|docs/)?(?:learner|ingest|go|make|curl|python3?|docker|kubectl|npm|promtool|nats|\S+\.sh) .*$`)
	for _, page := range pages(t) {
		_, prose := parsed(t, page)
		for _, line := range indented.FindAllString(prose, -1) {
			t.Errorf("%s: %q is a command outside of a fence", page, strings.TrimSpace(line))
		}
	}
}

// Go in a page is Go that is compiled and tested elsewhere.
func TestGoStandsInItsFile(t *testing.T) {
	bare := func(text string) string { // without the indentation, in which page and file differ
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return strings.Join(lines, "\n")
	}
	for _, page := range pages(t) {
		blocks, _ := parsed(t, page)
		for _, b := range blocks {
			if !b.has("in") {
				continue
			}
			file, err := os.ReadFile(filepath.Join(root, b.words["in"]))
			if err != nil {
				t.Errorf("%s: %v", b.at(), err)
			} else if !strings.Contains(bare(string(file)), bare(b.text)) {
				t.Errorf("%s: %s does not have these lines", b.at(), b.words["in"])
			}
		}
	}
}
