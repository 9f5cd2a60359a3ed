// Package observe lets a part of the system report what it does to others. An observer is a struct of
// funcs, one for each kind of event, and any of them may be nil: an observer sets those that it needs. The
// reporting part calls them with Tell, which skips nil, and All makes one observer of several.
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

// All returns an observer that passes everything on to each of some observers, in order. Its funcs are nil where all
// theirs are. O is a struct of funcs without results.
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
