package task

import (
	"encoding"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
)

// TestReferenceIsComplete: the reference names every key, and every word that a key takes.
func TestReferenceIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../docs/reference/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	seen := 0
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || reflect.PointerTo(typ).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return
		}
		for i, key := range keysOf(typ) {
			seen++
			at := join(path, key)
			if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, at+"`") {
				t.Errorf("the reference does not name %s", at)
			}
			walk(at, typ.Field(i).Type)
		}
	}
	walk("", reflect.TypeFor[Spec]())
	if seen < 50 {
		t.Errorf("found only %d keys", seen)
	}
	var words []string
	words = append(words, convex.LossNames()...)
	words = append(words, convex.SetKinds()...)
	words = append(words, schedule.Auto)
	words = append(words, schedule.Names()...)
	words = append(words, schedule.Constant, schedule.Decaying, schedule.Epochs)
	for _, w := range []Scale{Raw, Unit, Symmetric, Standard, Log} {
		words = append(words, string(w))
	}
	for _, w := range []ColumnKind{Numeric, Indicator, Categorical, Hashed, Bucketed, Hats, Text, OneHot} {
		words = append(words, string(w))
	}
	for _, w := range allParts() {
		words = append(words, string(w))
	}
	for _, w := range []Unknown{Invalid, Drop, Other} {
		words = append(words, string(w))
	}
	for _, w := range Formats() {
		words = append(words, string(w))
	}
	for _, w := range words {
		if !strings.Contains(text, "`"+w+"`") {
			t.Errorf("the reference does not name %s", w)
		}
	}
}
