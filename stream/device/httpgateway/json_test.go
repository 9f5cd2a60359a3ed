package httpgateway

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// An event in JSON is an example, or none of the task, and never an error that a program could act on: what does not
// fit takes the mapping of a row, and is said in the local log, without its content.
func TestJSONNeverFails(t *testing.T) {
	w := newWorld(t, columns, nil)
	defer w.gateway.Close()
	var log bytes.Buffer
	j, err := newJSON(w.agreement, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	mapped := 0
	j.mapper.onMap = func() { mapped++ }
	if e := j.Example([]byte(`{"age": 50, "sector": "public", "income": ">50K"}`)); w.agreement.Valid(e) != nil ||
		e.Label != 1 || log.Len() > 0 {
		t.Errorf("an event that fits: label %v, log %s", e.Label, log.String())
	}
	for i, event := range []string{`{"age": "yes", "sector": "public", "income": ">50K"}`,
		`{"age": 5, "sector": "secret", "income": "yes"}`,
		`{"age": 5, "sector": "public", "income": null}`, `{"age": 5, "sector": "public"}`, `null`, `"yes"`, `7`, `[]`, `{`,
		``, "\x00",
		`{"x": "` + strings.Repeat("secret", 20_000) + `"}`} {
		e := j.Example([]byte(event))
		if w.agreement.Valid(e) == nil {
			t.Errorf("%.60s is an example of the task", event)
		}
		if lines := strings.Count(log.String(), "sent as the zero vector"); lines != i+1 || mapped != i+1 {
			t.Errorf("%.60s: %d lines are logged and %d decoys mapped, want %d", event, lines, mapped, i+1)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("content in the log: %s", log.String())
	}
	for range 100 {
		j.Example(nil)
	}
	if lines := strings.Count(log.String(), "\n"); lines != maxUnfitLogged {
		t.Errorf("%d lines are logged, want %d", lines, maxUnfitLogged)
	}
}
