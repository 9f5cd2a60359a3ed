package httpgateway

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// A key with half a surrogate pair is no text, and decoders make the same character of all of them: it is refused as
// any other unreadable key, wherever it is and however the body comes. Whatever else a body holds decides nothing.
func TestKeysOfHalfACharacter(t *testing.T) {
	for key, want := range map[string]string{
		`\ud800`: "", `\uDFFF`: "", `a\ud83d`: "", `\ud83d\ud83d\ude00`: "", `\ude00\ud83d`: "", `\ud83da\ude00`: "",
		`\ud83d\n\ude00`: "", `\\\ud800`: "", `\ud83d\\ude00`: "", `\ud800\u0041`: "", `\ud800\ufffd`: "",
		`\ud83d\ude00`: "\U0001f600", `\uD83D\uDE00!`: "\U0001f600!", `\\ud800`: `\ud800`, `\ufffd`: "\ufffd",
		"\ufffd": "\ufffd", `\\`: `\`, `\"\\ud800`: `"\ud800`, `anna`: "anna",
	} {
		for _, body := range []string{`{"key": "` + key + `", "event": {}}`,
			`{"event": {"age": "` + strings.Repeat("x", 5000) + `\ud800"}, "key": "` + key + `"}`,
			`{"\ud800": ["\"", "\ud800"], "k\u0065y":"` + key + `"`} {
			for _, size := range []int{len(body), 1, 7} {
				b := newBody(1 << 10)
				for at := 0; at < len(body); at += size {
					_, _ = b.Write([]byte(body[at:min(at+size, len(body))]))
				}
				if got := b.name(); got != want {
					t.Errorf("%.80s in parts of %d: %q, want %q", body, size, got, want)
				}
			}
		}
	}
}

// Two users whose keys are halves of characters are not one: both get an error, alone and in a batch, and a question
// about one is refused. A value of an event that is half a character decides nothing.
func TestUsersOfHalfACharacterAreRefused(t *testing.T) {
	w := newWorld(t, columns, nil)
	defer w.end()
	half := strings.Replace(goodEvent, "anna", `\ud800`, 1)
	if status, a := w.post("", half); status != http.StatusBadRequest || a["error"] != errNoKey.Error() {
		t.Errorf("a post: %d %v", status, a)
	}
	within := strings.Replace(goodEvent, "passed over", `\ud800`, 1)
	status, answers := w.batch("", strings.Replace(goodEvent, "anna", `\ud801`, 1), within)
	if status != http.StatusOK || answers[0]["error"] != errNoKey.Error() || answers[0]["key"] != "" ||
		answers[1]["outcome"] != "waiting" {
		t.Errorf("a batch: %d %v", status, answers)
	}
	for body, want := range map[string]int{`{"keys": ["anna", "\ud800"]}`: http.StatusBadRequest,
		`{"keys": ["\ud83d\ude00", "\\ud800"]}`: http.StatusOK} {
		if status, _ := w.do(w.request(http.MethodPost, "/v1/outcomes", bytes.NewReader([]byte(body)))); status != want {
			t.Errorf("%s: %d, want %d", body, status, want)
		}
	}
}
