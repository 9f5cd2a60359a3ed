package httpgateway

import "testing"

// A body is one object of key and event, each once and named as written here; what is not is no event.
func TestBodiesHaveOneEvent(t *testing.T) {
	for body, want := range map[string]string{
		`{"key":"a","event":{"x":1}}`:                      `{"x":1}`,
		" {\n\"event\" : {} ,\"\\u006bey\":\"a\"}\n":       `{}`,
		`{"key":"a","event":{"x":1},"event":{"x":1}}`:      "",
		`{"key":"a","key":"a","event":{"x":1}}`:            "",
		`{"key":"a","Event":{"x":1}}`:                      "",
		`{"key":"a","event":{"x":1},"more":{}}`:            "",
		`{"key":"a","event":[1]}`:                          "",
		`{"key":"a"}`:                                      "",
		`{"key":"a","event":{"x":NaN}}`:                    "",
		`{"key":"a","event":{"x":1}} {}`:                   "",
		`[{"key":"a","event":{"x":1}}]`:                    "",
		`{"event":{"x":1}}`:                                "",
		`{"key":"a","event":{"x":1}}` + "\x00":             "",
		`{"key":"a","event":{"x":1},"event":null}`:         "",
		`{"key":"a","event":null,"event":{"x":1}}`:         "",
		`{"key":"a","event":{"deep":[[{"event":{}}]]}}   `: `{"deep":[[{"event":{}}]]}`,
	} {
		got, err := parseEvent([]byte(body), 1<<10)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: event %q, %v, want %q", body, got, err, want)
		}
	}
}
