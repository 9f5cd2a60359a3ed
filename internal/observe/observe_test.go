package observe

import (
	"reflect"
	"testing"
)

type observer struct {
	One func(string)
	Two func(int, bool)
	Not func()
}

// TestAll checks that each observer's funcs are called, in order, and that none is left out.
func TestAll(t *testing.T) {
	var told []any
	say := func(who string) func(string) { return func(what string) { told = append(told, who, what) } }
	all := All(observer{One: say("first")}, observer{}, All(observer{One: say("last"),
		Two: func(n int, is bool) { told = append(told, n, is) }}))
	Tell(all.One, "event")
	Tell2(all.Two, 3, true)
	if all.Not != nil || All[observer]().One != nil {
		t.Error("a func of nobody")
	}
	Tell(All[observer]().One, "nobody")
	if want := []any{"first", "event", "last", "event", 3, true}; !reflect.DeepEqual(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
