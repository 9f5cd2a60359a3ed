package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestStrangers: a variable that is close to a flag's is refused, with the flag's name; one that is far from
// all is reported; the rest is ignored.
func TestStrangers(t *testing.T) {
	for pair, want := range map[string]struct{ told, refused string }{
		"PANLEARN_NATS=nats://a":                 {},
		"PANLEARN_LOG_LEVEL=info":                {},
		"PANLEARN_DATA=/data":                    {},
		"PANLEARN_POLCY=":                        {}, // empty counts as not set
		"HOME=/root":                             {},
		"PANLEARN_POLCY=p.yaml":                  {refused: "did you mean PANLEARN_POLICY?"},
		"PANLEARN_TLSCA=ca.pem":                  {refused: "did you mean PANLEARN_TLS_CA?"},
		"PANLEARN_TLS_CERTS=c.pem":               {refused: "did you mean PANLEARN_TLS_CERT?"},
		"PANLEARN_NAST=nats://a":                 {told: "PANLEARN_NAST"}, // two letters of four may be another word
		"PANLEARN_PORT=tcp://10.0.0.1:80":        {told: "PANLEARN_PORT"},
		"PANLEARN_SERVICE_HOST=10.0.0.1":         {told: "PANLEARN_SERVICE_HOST"},
		"PANLEARN_PORT_80_TCP=tcp://10.0.0.1:80": {told: "PANLEARN_PORT_80_TCP"},
	} {
		told, err := strangers([]string{pair})
		var coded *codedError
		if refused := err != nil; refused != (want.refused != "") || refused &&
			(!strings.Contains(err.Error(), want.refused) || !errors.As(err, &coded) || coded.code != ExitUsage) {
			t.Errorf("%s: %v, want %q", pair, err, want.refused)
		}
		if text := strings.Join(told, "\n"); (text == "") != (want.told == "") || !strings.HasPrefix(text, want.told) {
			t.Errorf("%s: told %q, want %q", pair, text, want.told)
		}
	}
	for _, d := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"same", "same", 0}} {
		if got := distance(d.a, d.b); got != d.want || distance(d.b, d.a) != d.want {
			t.Errorf("distance(%q, %q) = %d, want %d", d.a, d.b, got, d.want)
		}
	}
}

// TestLastWord: a command that logs as JSON also logs its failure, and its notes on the environment, as JSON.
func TestLastWord(t *testing.T) {
	for format, isJSON := range map[string]bool{"json": true, "text": false, "": false} {
		for _, by := range []string{"flag", "environment"} {
			var out bytes.Buffer
			root := &cobra.Command{Use: "learner"}
			var log Log
			sub := &cobra.Command{Use: "fail", RunE: func(*cobra.Command,
				[]string) error {
				return Transient(errors.New("no\nbroker"))
			}}
			log.Flags(sub.Flags(), "info")
			root.AddCommand(sub)
			args := []string{"fail"}
			if format != "" && by == "flag" {
				args = append(args, "--log-format", format)
			} else if by == "environment" {
				t.Setenv("PANLEARN_LOG_FORMAT", format)
			}
			t.Setenv("PANLEARN_SOMETHING_ELSE", "1")
			if code := Main(root, args, &out); code != ExitTransient {
				t.Fatalf("exit code %d", code)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != 2 || !strings.Contains(lines[0], "PANLEARN_SOMETHING_ELSE") ||
				!strings.Contains(lines[1], "no; broker") {
				t.Errorf("%q by %s: %q", format, by, lines)
			}
			for _, l := range lines {
				var event struct {
					Level, Msg string
					Code       int `json:"exit_code"`
				}
				if err := json.Unmarshal([]byte(l), &event); (err == nil) != isJSON {
					t.Errorf("%q by %s: %q: %v", format, by, l, err)
				}
				if isJSON && event.Level == "ERROR" && event.Code != ExitTransient {
					t.Errorf("%q: %+v", l, event)
				}
			}
		}
		t.Setenv("PANLEARN_LOG_FORMAT", "")
	}
}
