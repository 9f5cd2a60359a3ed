package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// index is the page that leads to all others.
const index = root + "/docs/README.md"

// documents returns the pages that speak to readers.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"/*.md", "/docs/*.md", "/docs/*/*.md", "/docs/*/*/*.md", "/deploy/*/README.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: nothing found, %v", pattern, err)
		}
		for _, page := range found {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Clean(page)] = string(text)
		}
	}
	return out
}

// link is a link or a picture; a target with a colon is elsewhere.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)]*)?\)`)

// Links lead somewhere, to a heading where they name one.
func TestDocumentsLinkToFiles(t *testing.T) {
	for page, text := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target := page
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(page), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, match[1])
			} else if match[2] != "" && !headings(t, target)[match[2]] {
				t.Errorf("%s links to %s%s, which has no such heading", page, match[1], match[2])
			}
		}
	}
}

// The table of all pages in the index has every page, and README.md leads to it.
func TestNoPageIsOrphaned(t *testing.T) {
	pages := documents(t)
	_, table, found := strings.Cut(pages[filepath.Clean(index)], "\n## All pages\n")
	if !found {
		t.Fatal("the index has no table of all pages")
	}
	listed := map[string]bool{filepath.Clean(index): true}
	for _, match := range link.FindAllStringSubmatch(table, -1) {
		listed[filepath.Join(filepath.Dir(index), match[1])] = true
	}
	for page := range pages {
		if !listed[page] && filepath.Base(page) != "CHANGELOG.md" {
			t.Errorf("%s is not in the table of %s", page, index)
		}
	}
	if !strings.Contains(pages[filepath.Clean(root+"/README.md")], "](docs/README.md)") {
		t.Error("README.md does not link to the index")
	}
}

// Pictures and samples in docs/ are shown by some page.
func TestNoPictureIsOrphaned(t *testing.T) {
	shown := map[string]bool{}
	for page, text := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			shown[filepath.Join(filepath.Dir(page), match[1])] = true
		}
	}
	for _, pattern := range []string{"/docs/pictures/*.svg", "/docs/pictures/*.png"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: nothing found, %v", pattern, err)
		}
		for _, picture := range found {
			if !shown[filepath.Clean(picture)] {
				t.Errorf("no page shows %s", picture)
			}
		}
	}
}

// A page begins with whom it is for, and what they need.
func TestPagesSayForWhomTheyAre(t *testing.T) {
	begins := regexp.MustCompile(`(?s)\A# [^\n]+\n\n(?:[^\n]+\n\n)?\*For .{0,300}?You\s+need`)
	for page, text := range documents(t) {
		top := filepath.Dir(page) == filepath.Clean(root)
		if page == filepath.Clean(index) || top {
			continue
		}
		if !begins.MatchString(text) {
			t.Errorf("%s does not begin with *For whom it is. You need: what comes before.*", page)
		}
	}
}

// The glossary explains a word once, and those by which this field is known elsewhere too.
func TestGlossary(t *testing.T) {
	seen := map[string]bool{}
	text := documents(t)[filepath.Clean(root+"/docs/reference/glossary.md")]
	for _, match := range regexp.MustCompile(`\*\*([^*]+)\*\*`).FindAllStringSubmatch(text, -1) {
		word := strings.ToLower(strings.Join(strings.Fields(match[1]), " "))
		if seen[word] {
			t.Errorf("the glossary explains %q twice", word)
		}
		seen[word] = true
	}
	for _, word := range []string{"differential privacy", "neighbours", "replace-one", "privacy loss", "shuffle model",
		"local dp", "central dp", "pan-private",
		"floor", "top-up", "tally", "cohort", "attempt", "claim", "void round", "moreau envelope", "excess risk",
		"progressive validation", "prequential"} {
		if !seen[word] {
			t.Errorf("the glossary does not explain %q", word)
		}
	}
}
