package natsjs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

func TestErrorsSayTheFix(t *testing.T) {
	api := func(code jetstream.ErrorCode, text string) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{ErrorCode: code, Description: text})
	}
	for _, test := range []struct {
		err       error
		is        error
		conflict  bool
		notStored bool
		text      string
	}{
		{api(10071, "wrong last sequence: 3"), nil, true, false, "3"},
		{api(10164, "wrong last sequence"), nil, true, false, ""},
		{api(10077, "maximum messages per subject exceeded"), nil, true, true, "opened"},
		{api(10077, "maximum messages exceeded"), nil, false, true, "stage"},
		{api(10023, "insufficient resources"), nil, false, true, "max_file_store"},
		{api(10002, "resource limits exceeded for account"), nil, false, true, "account may keep no more"},
		{api(10158, "duplicate message id is in process"), nil, false, false, ""},
		{api(10077, "maximum bytes exceeded"), nil, false, true, "max_bytes"},
		{api(10077, "write 1.blk: no space left on device"), ErrFullDisk, false, false, "restart nats-server"},
		{api(10051, "write 1.blk: no space left on device"), ErrFullDisk, false, false, "restart nats-server"},
		{api(10076, "JetStream not enabled"), nil, false, false, "restart nats-server"},
		{api(10054, "message size exceeds maximum allowed"), stream.ErrRefused, false, true, "dimension"},
		{api(10060, "expected stream does not match"), stream.ErrRefused, false, false, "another stream"},
		{api(10059, "stream not found"), ErrNoStream, false, false, "learner provision"},
		{api(10047, "insufficient storage resources available"), nil, false, false, "max_file_store"},
		{api(10074, "replicas > 1 not supported in non-clustered mode"), nil, false, false, "one replica"},
		{api(10039, "JetStream not enabled for account"), nil, false, false, "enable JetStream"},
		{nats.ErrNoResponders, ErrNoStream, false, false, "learner provision"},
		{nats.ErrMaxPayload, stream.ErrRefused, false, true, ""},
		{nats.ErrAuthorization, nil, false, false, "credentials"},
		{context.Canceled, context.Canceled, false, false, ""},
	} {
		got := explain(test.err)
		if test.is != nil && !errors.Is(got, test.is) || !errors.Is(got, test.err) ||
			!strings.Contains(got.Error(), test.text) {
			t.Errorf("explain(%v) = %v", test.err, got)
		}
		if conflict(test.err) != test.conflict || notStored(test.err) != test.notStored {
			t.Errorf("%v: conflict %t, not stored %t", test.err, conflict(test.err), notStored(test.err))
		}
	}
	if explain(nil) != nil {
		t.Error("explain(nil)")
	}
}

func FuzzDirectAnswer(f *testing.F) {
	f.Add("", "panlearn.churn.round.1", "1")
	f.Add("404", "", "")
	f.Add("408", "panlearn.churn.round.1", "1")
	f.Add("", "panlearn.churn.round.x", "1")
	f.Add("", "panlearn.churn.round.1", "-1")
	f.Fuzz(func(t *testing.T, status, subject, sequence string) {
		m := &nats.Msg{Header: nats.Header{"Status": {status}, "Nats-Subject": {subject}, "Nats-Sequence": {sequence}},
			Data: []byte("x")}
		got, err := directAnswer(m)
		if err == nil && (got.Sequence == 0 || got.Subject != subject) {
			t.Errorf("%+v", got)
		}
	})
}

// TestViolations: the words of a server about what it does not permit.
func TestViolations(t *testing.T) {
	for _, test := range []struct{ text, verb, subject string }{
		{`nats: permissions violation: Permissions Violation for Publish to "a.b"`, "publish", "a.b"},
		{`nats: Permissions Violation for Subscription to "_INBOX.>"`, "subscription", "_INBOX.>"},
		{`nats: permissions violation: Permissions Violation for Subscription to "a" using queue "q"`, "subscription", "a"},
		{`nats: permissions violation for publish to "a.b"`, "publish", "a.b"},
		{`nats: permissions violation: Permissions Violation for Publish with Reply of "$JS.ACK.x"`,
			"publish with reply of \"$js.ack.x\"", ""},
		{"permissions violation for", "", ""}, {"", "", ""}, {`permissions violation for publish to "`, "publish", ""},
	} {
		if verb, subject := violation(test.text); verb != test.verb && test.subject != "" || subject != test.subject {
			t.Errorf("%q: %q %q, want %q %q", test.text, verb, subject, test.verb, test.subject)
		}
	}
}

// TestUserOfAToken: the public key in a user's JWT names its inbox.
func TestUserOfAToken(t *testing.T) {
	for token, want := range map[string]string{
		"eyJ0eXAiOiJKV1QifQ.eyJzdWIiOiJVQUJDIn0.c2ln": "UABC",
		"eyJ0eXAiOiJKV1QifQ.eyJzdWIiOiJVLj4ifQ.c2ln":  "", // U.> would be a wildcard
		"a.b": "", "": "", "a.!.c": "", "a.e30.c": "",
	} {
		if got := subjectOf(token); got != want {
			t.Errorf("%q: %q, want %q", token, got, want)
		}
	}
}
