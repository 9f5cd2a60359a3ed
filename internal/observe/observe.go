// Package observe is the one way in which a part of the system tells others what it does. An observer is a struct of
// funcs, one for each kind of event, and any of them may be nil: an observer sets those that it wants to be told. The
// part that tells calls them with Tell, which passes nil over, and All makes one observer of several.
package observe

import "reflect"

// Tell calls f, unless it is nil.
func Tell[A any](f func(A), a A) {
	if f != nil {
		f(a)
	}
}

// Tell2 is Tell for an event of two values.
func Tell2[A, B any](f func(A, B), a A, b B) {
	if f != nil {
		f(a, b)
	}
}

// Tell3 is Tell for an event of three values.
func Tell3[A, B, C any](f func(A, B, C), a A, b B, c C) {
	if f != nil {
		f(a, b, c)
	}
}

// All returns an observer that tells each of some observers, in their order. Its funcs are nil where all theirs are. O
// is a struct of funcs without results.
func All[O any](list ...O) O {
	var all O
	into := reflect.ValueOf(&all).Elem()
	for i := range into.NumField() {
		var told []reflect.Value
		for _, one := range list {
			if f := reflect.ValueOf(one).Field(i); !f.IsNil() {
				told = append(told, f)
			}
		}
		switch len(told) {
		case 0:
		case 1:
			into.Field(i).Set(told[0])
		default:
			into.Field(i).Set(reflect.MakeFunc(into.Field(i).Type(), func(event []reflect.Value) []reflect.Value {
				for _, f := range told {
					f.Call(event)
				}
				return nil
			}))
		}
	}
	return all
}
