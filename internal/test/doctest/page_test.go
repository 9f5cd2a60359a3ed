package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// A block is one fenced block of a page.
type block struct {
	page  string // from the repository's root
	line  int    // of its first fence, from 1
	lang  string
	words map[string]string // after the language; a word without = has the value ""
	text  string            // without the indentation of the fence
}

func (b block) at() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

func (b block) has(word string) bool { _, ok := b.words[word]; return ok }

// needs lists what has to be there for the block to run.
func (b block) needs() []string {
	return strings.FieldsFunc(b.words["needs"], func(r rune) bool { return r == ',' })
}

// pages returns the documents that speak to readers.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "deploy/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: nothing found, %v", pattern, err)
		}
		for _, p := range found {
			out = append(out, filepath.ToSlash(strings.TrimPrefix(p, root+"/")))
		}
	}
	return out
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence = regexp.MustCompile("^( *)```([^`]*)$")
	odd   = regexp.MustCompile("^ *(?:````|~~~|```.*`)") // fences of other forms, which would escape
	word  = regexp.MustCompile(`([^\s=]+)(?:=("[^"]*"|\S+))?`)
)

// parse finds the blocks of a page, and its prose, which is all else.
func parse(page, text string) (out []block, prose string, err error) {
	open, indent := false, ""
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case odd.MatchString(line):
			return nil, "", fmt.Errorf("%s:%d: want a fence of three backticks, and none after its language", page, i+1)
		case m == nil && open:
			last := &out[len(out)-1]
			last.text += strings.TrimPrefix(line, indent) + "\n"
		case m != nil && open:
			if m[2] != "" {
				return nil, "", fmt.Errorf("%s:%d: a fence within a fence", page, i+1)
			}
			open = false
		case m != nil:
			b := block{page: page, line: i + 1, words: map[string]string{}}
			b.lang, m[2], _ = strings.Cut(m[2], " ")
			for _, w := range word.FindAllStringSubmatch(m[2], -1) {
				b.words[w[1]] = strings.Trim(w[2], `"`)
			}
			out, open, indent = append(out, b), true, m[1]
		default:
			prose += line + "\n"
		}
	}
	if open {
		return nil, "", fmt.Errorf("%s: a fence is not closed", page)
	}
	return out, prose, nil
}

func parsed(t *testing.T, page string) (blocks []block, prose string) {
	t.Helper()
	blocks, prose, err := parse(page, read(t, page))
	if err != nil {
		t.Fatal(err)
	}
	return blocks, prose
}
