package task

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
)

// orderedKeys appends, for a type and the types of its fields, the keys of the canonical form in their order; those in
// brackets are left out where they are zero, false or empty.
func orderedKeys(path string, t reflect.Type, out *strings.Builder) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	text := reflect.TypeFor[encoding.TextMarshaler]()
	if t.Kind() != reflect.Struct || t.Implements(text) || reflect.PointerTo(t).Implements(text) {
		return
	}
	var names []string
	for i := range t.NumField() {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" || name == "state" {
			continue
		}
		if name = "`" + name + "`"; strings.Contains(option, "omitempty") || strings.Contains(option, "omitzero") {
			name = "[" + name + "]"
		}
		names = append(names, name)
	}
	of := "the declaration"
	if path != "" {
		of = "`" + strings.TrimPrefix(path, ".") + "`"
	}
	fmt.Fprintf(out, "| %s | %s |\n", of, strings.Join(names, " "))
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" && name != "state" {
			orderedKeys(path+"."+name, t.Field(i).Type, out)
		}
	}
}

// TestKeysOfTheCanonicalForm keeps the order of keys that docs/reference/layouts.md tells authors of devices.
func TestKeysOfTheCanonicalForm(t *testing.T) {
	var out strings.Builder
	out.WriteString("| mapping | keys, in order; [those in brackets] are left out where they are 0, false or empty |\n" +
		"| --- | --- |\n")
	orderedKeys("", reflect.TypeFor[Spec](), &out)
	golden.Section(t, "../../docs/reference/layouts.md", "<!-- keys -->\n\n", out.String(), "\n<!-- end of keys -->")
}
