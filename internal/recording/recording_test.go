package main

import (
	"encoding/xml"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// texts are the lines that a film shows, in order, without those that are blank.
func texts(t *testing.T, film string) []string {
	t.Helper()
	var doc struct {
		Role  string `xml:"role,attr"`
		Title string `xml:"title"`
		Desc  string `xml:"desc"`
		Texts []struct {
			Label string `xml:"tspan"`
			Rest  string `xml:",chardata"`
		} `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(film), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Role != "img" || doc.Title != command || doc.Desc == "" {
		t.Errorf("role %q, title %q, description %q: a screen reader has nothing to say", doc.Role, doc.Title, doc.Desc)
	}
	var out []string
	for _, x := range doc.Texts {
		out = append(out, x.Label+x.Rest)
	}
	return out
}

func filled(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return l == "" })
}

// The film shows what the page shows as text, of which TestPages in internal/test/doctest says that the program prints it.
func TestFilmIsOfThisProgram(t *testing.T) {
	drawn, err := os.ReadFile("../../" + film)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := between(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(t, string(drawn)); !slices.Equal(got, append([]string{"$", command}, filled(want)...)) {
		t.Errorf("%s shows %q and %s %q: run make recording", film, got, page, want)
	}
	if len(drawn) > 100_000 {
		t.Errorf("%s has %d bytes, want at most 100,000", film, len(drawn))
	}
	for _, part := range []string{"http:", "https:", "<script", "<image", "@import", "url("} {
		if n := strings.Count(string(drawn), part); n > strings.Count(`<svg xmlns="http://www.w3.org/2000/svg">`, part) {
			t.Errorf("%s has %q: it does not stand alone", film, part)
		}
	}
}

func TestDraw(t *testing.T) {
	got := texts(t, draw(command, []line{{0, "a < b & c"}, {time.Second, ""}, {time.Second, "label  1"}, {time.Second, "round  1"}}))
	if want := []string{"$", command, "a < b & c", "label  1", "round  1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPace(t *testing.T) {
	quick := pace([]line{{time.Second, "a"}, {4 * time.Second, "b"}})
	if quick[0].at != typing+time.Second || quick[1].at != typing+4*time.Second {
		t.Errorf("a short run does not keep its time: %v", quick)
	}
	slow := pace([]line{{30 * time.Second, "a"}, {60 * time.Second, "b"}})
	if slow[0].at != typing+(shown-typing)/2 || slow[1].at != shown {
		t.Errorf("a long run does not fit: %v", slow)
	}
}

func TestCapture(t *testing.T) {
	lines, err := capture(t.Context(), []string{"sh", "-c", "echo one; echo two >&2; echo; echo three"})
	if err != nil || plain(lines) != "one\ntwo\n\nthree\n" {
		t.Errorf("%q, %v", plain(lines), err)
	}
	if !slices.IsSortedFunc(lines, func(a, b line) int { return int(a.at - b.at) }) {
		t.Errorf("not in the order of time: %v", lines)
	}
	if _, err := capture(t.Context(), []string{"sh", "-c", "echo one; exit 3"}); err == nil {
		t.Error("a run that failed was recorded")
	}
}
