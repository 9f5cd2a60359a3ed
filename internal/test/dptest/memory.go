package dptest

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A Memory lists what can be found by following every pointer from a value: each plain value by its path. A
// slice is listed to its capacity, because the elements behind its length are in memory, too.
type Memory struct {
	Leaves map[string]string // path to value; a slice or array of bytes is one leaf, in hexadecimal
	// Generators are the paths of values from which later random numbers could be computed.
	Generators []string
	// Funcs are the paths of functions. What a closure holds cannot be listed.
	Funcs []string
}

// Dump lists the memory behind root, a pointer. Fields and interfaces with a name in prune, such as "Logger", are
// left out with all that is behind them.
func Dump(root any, prune ...string) Memory {
	m := Memory{Leaves: map[string]string{}}
	m.walk("", reflect.ValueOf(root), prune, map[visit]bool{})
	return m
}

type visit struct {
	at uintptr
	of reflect.Type
}

var source = reflect.TypeFor[rand.Source]()

func (m *Memory) walk(path string, v reflect.Value, prune []string, seen map[visit]bool) {
	if v.IsValid() && v.Kind() != reflect.Interface && (v.Type().Implements(source) ||
		reflect.PointerTo(v.Type()).Implements(source) ||
		v.Type() == reflect.TypeFor[rand.Rand]()) && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		m.Generators = append(m.Generators, path)
	}
	switch v.Kind() {
	case reflect.Invalid:
	case reflect.Pointer:
		if v.IsNil() || seen[visit{v.Pointer(), v.Type()}] {
			return
		}
		seen[visit{v.Pointer(), v.Type()}] = true
		m.walk(path, v.Elem(), prune, seen)
	case reflect.Interface:
		m.walk(path, v.Elem(), prune, seen)
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !slices.Contains(prune, name) {
				m.walk(path+"."+name, v.Field(i), prune, seen)
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			m.list(path, v.Slice(0, v.Cap()), prune, seen)
		}
	case reflect.Array:
		m.list(path, v, prune, seen)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			key := Memory{Leaves: map[string]string{}}
			key.walk("", it.Key(), nil, seen)
			m.walk(fmt.Sprintf("%s[%v]", path, key.Leaves), it.Value(), prune, seen)
			m.Leaves[fmt.Sprintf("%s[%v]", path, key.Leaves)+" (key)"] = ""
		}
	case reflect.Func:
		if !v.IsNil() {
			m.Funcs = append(m.Funcs, path)
			m.Leaves[path] = runtime.FuncForPC(v.Pointer()).Name()
		}
	case reflect.Chan, reflect.UnsafePointer:
	default:
		m.Leaves[path] = fmt.Sprint(v)
	}
}

func (m *Memory) list(path string, v reflect.Value, prune []string, seen map[visit]bool) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		raw := make([]byte, v.Len())
		for i := range raw {
			raw[i] = byte(v.Index(i).Uint())
		}
		m.Leaves[path] = hex.EncodeToString(raw)
		return
	}
	for i := range v.Len() {
		m.walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i), prune, seen)
	}
}

// Differences returns the paths at which two dumps differ, or which only one has, sorted.
func (m Memory) Differences(other Memory) (paths []string) {
	for path, v := range m.Leaves {
		if w, ok := other.Leaves[path]; !ok || v != w {
			paths = append(paths, path)
		}
	}
	for path := range other.Leaves {
		if _, ok := m.Leaves[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// Holds returns the paths of leaves that contain the bytes, sorted.
func (m Memory) Holds(data []byte) (paths []string) {
	needle := hex.EncodeToString(data)
	for path, v := range m.Leaves {
		if strings.Contains(v, needle) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// NoGenerator fails the test if random numbers could be computed from the memory.
func (m Memory) NoGenerator(t testing.TB, where string) {
	t.Helper()
	if len(m.Generators) > 0 {
		t.Errorf("%s: generators at %v", where, m.Generators)
	}
}
