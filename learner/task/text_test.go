package task

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestText: the buckets of the words of a text share norm 1; cases, punctuation, order and repetition make no
// difference, and a text without words sets none.
func TestText(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, "intercept=0",
		"features.columns=[{column: x, kind: text, buckets: 1000, words: 3, missing: {tokens: [none]}}]"))
	at := func(words ...string) (out []int32) {
		for _, w := range words {
			out = append(out, int32(murmur3(w, murmur3("x", 0))%1000))
		}
		slices.Sort(out)
		return out
	}
	if m.Names()[17] != "x#17" || math.Abs(m.Bound()-1) > 1e-12 {
		t.Errorf("name %s, bound %v", m.Names()[17], m.Bound())
	}
	long := strings.Repeat("Z", 40)
	for text, want := range map[string][]int32{
		"Hello, world!": at("hello", "world"), "WORLD—hello hello": at("hello", "world"), "ÉTÉ 2024": at("été", "2024"),
		"a b c d": at("a", "b", "c"), "": {}, "none": {}, " .,;- ": {}, "don't": at("don", "t"), "नमस्ते": at("नमस्ते"),
		long: at(strings.Repeat("z", 32)), strings.Repeat(" ", 200) + "a": at("a"), strings.Repeat(".", 96) + "a": {},
		"a" + strings.Repeat(".", 94) + "bc": at("a", "b"), "bad \xff utf8": at("bad", "utf8"),
	} {
		e := mapped(t, m, Row{Fields: []string{text}, Label: "1"})
		if !slices.Equal(e.Index, want) {
			t.Errorf("%q: %v, want %v", text, e.Index, want)
		}
		if n := e.Norm(); len(want) > 0 && math.Abs(n-1) > 1e-12 || e.Validate(m.Dim()) != nil {
			t.Errorf("%q: norm %v", text, n)
		}
	}
}

// TestDecoyHasTheMostWords: a decoy's text is read to the end, and as many words of it count as may.
func TestDecoyHasTheMostWords(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, "intercept=0",
		"features.columns=[{column: x, kind: text, buckets: 1048576, words: 1000}]"))
	decoy := m.Decoy().Fields[0]
	if n := len([]rune(decoy)); n != LongestWord*1000 {
		t.Errorf("%d characters", n)
	}
	if e := mapped(t, m, Row{Fields: []string{decoy}, Label: "1"}); len(e.Index) < 990 { // some share a bucket
		t.Errorf("%d words", len(e.Index))
	}
	var e convex.Example
	row := Row{Fields: []string{decoy}, Label: "1"}
	if n := testing.AllocsPerRun(10, func() { _ = m.Map(row, &e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
