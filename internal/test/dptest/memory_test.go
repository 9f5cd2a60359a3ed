package dptest

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type inner struct {
	words []uint64
	next  *inner
}

type outer struct {
	name   string
	set    map[[2]byte]struct{}
	raw    []byte
	any    any
	in     inner
	twice  *inner
	call   func()
	Logger *inner
}

// Dump finds what is hidden behind unexported fields, pointers, interfaces, maps, and the length of a slice.
func TestDumpFindsWhatIsHidden(t *testing.T) {
	make1 := func() *outer {
		loop := &inner{words: []uint64{7}}
		loop.next = loop
		return &outer{name: "n", set: map[[2]byte]struct{}{{1, 2}: {}}, raw: []byte{0xab, 0xcd, 0xef}[:1],
			any: inner{words: make([]uint64, 2, 5)[:0]},
			in:  inner{words: []uint64{1, 2}}, twice: loop, call: nothing, Logger: &inner{words: []uint64{9}}}
	}
	base := Dump(make1(), "Logger")
	base.NoGenerator(t, "no generator")
	if len(base.Funcs) != 1 || base.Funcs[0] != ".call" {
		t.Errorf("functions %v", base.Funcs)
	}
	if got := base.Holds([]byte{0xcd, 0xef}); !slices.Equal(got, []string{".raw"}) {
		t.Errorf("bytes behind a length: %v", got)
	}
	if got := base.Differences(Dump(make1(), "Logger")); len(got) != 0 {
		t.Errorf("equal values differ at %v", got)
	}
	for path, change := range map[string]func(*outer){
		".name":                  func(o *outer) { o.name = "m" },
		".raw":                   func(o *outer) { o.raw[:3][2]++ },
		".any.words[4]":          func(o *outer) { o.any.(inner).words[:5][4]++ },
		".in.words[1]":           func(o *outer) { o.in.words[1]++ },
		".twice.words[0]":        func(o *outer) { o.twice.words[0]++ },
		".in.next.words[0]":      func(o *outer) { o.in.next = &inner{words: []uint64{3}} },
		".set[map[:0304]] (key)": func(o *outer) { o.set[[2]byte{3, 4}] = struct{}{} },
		"":                       func(o *outer) { o.Logger.words[0]++ },
	} {
		o := make1()
		change(o)
		got := base.Differences(Dump(o, "Logger"))
		if want := []string{path}; path == "" && len(got) != 0 || path != "" && !slices.Equal(got, want) {
			t.Errorf("differences %v, want %q", got, path)
		}
	}
}

func TestDumpFindsGenerators(t *testing.T) {
	for name, hidden := range map[string]any{
		"by pointer": rand.NewChaCha8([32]byte{}), "by value": *rand.NewPCG(1, 2), "wrapped": rand.New(rand.NewPCG(1, 2)),
		"in a slice": []rand.Source{rand.NewPCG(1, 2)},
	} {
		r := &recorder{TB: t}
		if Dump(&outer{any: hidden}).NoGenerator(r, name); !r.failed {
			t.Errorf("%s: not found", name)
		}
	}
	r := &recorder{TB: t}
	if Dump(&struct{ src *rand.ChaCha8 }{}).NoGenerator(r, "nil"); r.failed {
		t.Error("a generator that is not there was found")
	}
}

func nothing() {}
