package object

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestMemberIsFound: the key of an object is found in any order of members, whatever the others hold and
// however the text is cut into parts.
func TestMemberIsFound(t *testing.T) {
	deep := strings.Repeat(`[`, 100_000) + strings.Repeat(`]`, 100_000)
	for text, want := range map[string]string{
		`{"key":"a"}`: "a", ` {"event": NaN, "key": "a"}`: "a", `{"event":` + deep + `,"key":"a"}`: "a", `{"key":"a"`: "a",
		`{"key":"a","event":"open`: "a",
		`{"k\u0065y":"\u0061"}`:    "a", `{"key":1,"key":"a","key":"b"}`: "a", `{"event":{"key":"b"},"key":"a"}`: "a",
		`{"event":["key","b"],"key":"a"}`: "a",
		`{"x":"\"key\":\"b\"","key":"a"}`: "a", `{"x":"key","key":"a"}`: "a", `{"key":"a" "event":{}} trailing`: "a",
		`{"event":,"key":"a"}`: "a",
		`{,,"key":"a"`:         "a", `{"event":{"x":` + strings.Repeat("1", 1<<20) + `},"key":"a"}`: "a", `{"` + strings.Repeat("n",
			1<<20) + `":1,"key":"a"}`: "a",
		`{"event":{"key":"a"}}`: "", `["key","a"]`: "", `"key"`: "", `null`: "", `{"key":"a`: "", `{"key":"\x"}`: "",
		"{\"key\":\"\xff\"}": "", `{"key":""}`: "",
		`{"key":null}`: "", `{"key":["a"]}`: "", `{"key":{"key":"a"}}`: "", `{"key":true}`: "", `{"key":7}`: "",
		`{}{"key":"a"}`: "", ``: "",
		`{"key":"` + strings.Repeat("k", 256) + `"}`: strings.Repeat("k", 256), `{"key":"` + strings.Repeat("k", 257) +
			`"}`: "",
		`{"key":"` + strings.Repeat(`\u006b`, 256) + `"}`: strings.Repeat("k", 256), `{"key":"` + strings.Repeat("k", 1<<20) +
			`"}`: "",
	} {
		for _, size := range []int{len(text), 1, 7} {
			m := &Member{Name: "key", Most: 256}
			for part := range slices.Chunk([]byte(text), max(1, size)) {
				_, _ = m.Write(part)
			}
			if m.Key() != want || cap(m.text) > 1<<14 {
				t.Errorf("%.60s in parts of %d: %.20q, want %.20q; %d bytes held", text, size, m.Key(), want, cap(m.text))
			}
		}
	}
	numbers := &Member{Name: "id", Numbers: true, Most: 256}
	for text, want := range map[string]string{`{"id": 17}`: "17", `{"id":17,"x":`: "17", `{"id":-1.50 }`: "-1.50",
		`{"id":17`: "", `{"id":NaN}`: "", `{"id":true}`: "",
		`{"id":01}`: "", `{"id":[17]}`: "", `{"x":17,"id":"18"}`: "18"} {
		numbers.Reset()
		_, _ = numbers.Write([]byte(text))
		if numbers.Key() != want {
			t.Errorf("%s: %q, want %q", text, numbers.Key(), want)
		}
	}
}

// FuzzMembers: names and values of an object are those that the standard library reads.
func FuzzMembers(f *testing.F) {
	f.Add(`{"a":1,"\u00e9\ud834\udd1e\ud834\n\ud834\u0041\/":"\\\"}"," b":[{"c":"]"},-1e5],"":{"a":[]}}`)
	f.Add(" {\t\"\xff\" :\r null ,\"\u00FF\": true}\n")
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, object string) {
		d := json.NewDecoder(strings.NewReader(object))
		if token, err := d.Token(); err != nil || token != json.Delim('{') || !json.Valid([]byte(object)) {
			return
		}
		for quoted, value := range All([]byte(object)) {
			name, err := d.Token()
			var want json.RawMessage
			if err = errors.Join(err, d.Decode(&want)); err != nil {
				t.Fatal(err)
			}
			if got := string(AppendText(nil, quoted)); got != name || string(value) != string(want) {
				t.Fatalf("%q: member %q is %q, want %q, %q", object, got, value, name, want)
			}
		}
		if token, err := d.Token(); token != json.Delim('}') {
			t.Fatalf("%q: a member was left out before %v, %v", object, token, err)
		}
	})
}
