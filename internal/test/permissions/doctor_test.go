package permissions

import (
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

var roleOf = map[string]natsadmin.Role{admin: natsadmin.Admin, learner: natsadmin.Learner, stage: natsadmin.Stage,
	helper: natsadmin.Helper, publisher: natsadmin.Publisher}

// examine returns the doctor's findings of one check, a line each.
func examine(t *testing.T, s *scene, role string, expect natsadmin.Expect, check string) (natsadmin.Status, string) {
	t.Helper()
	if expect.Now.IsZero() {
		expect.Now = time.Now()
	}
	list, err := natsadmin.Examine(t.Context(), s.conn(t, role), s.task, expect)
	if err != nil {
		t.Fatal(err)
	}
	status, text := natsadmin.Status("nothing"), ""
	for _, f := range list {
		if f.Check == check {
			status, text = f.Status, text+f.Text+"\n"
		}
	}
	return status, text
}

// TestDoctorKnowsRoles: under the shipped configuration each role's credentials allow what the role needs and
// no more; where permissions are missing or one account serves all, they allow more.
func TestDoctorKnowsRoles(t *testing.T) {
	safe, bare := shipped(t).scene(t), open(t).scene(t)
	for name, role := range roleOf {
		for other, expected := range roleOf {
			want := natsadmin.Failure
			if other == name {
				want = natsadmin.OK
			}
			if got, text := examine(t, safe, name, natsadmin.Expect{Role: expected}, "permissions"); got != want {
				t.Errorf("credentials of %s, examined as %s: %s %s, want %s", name, other, got, text, want)
			}
		}
		if got, text := examine(t, safe, name, natsadmin.Expect{}, "permissions"); got != natsadmin.OK {
			t.Errorf("credentials of %s: %s %s", name, got, text)
		}
		if got, text := examine(t, bare, name, natsadmin.Expect{}, "permissions"); got != natsadmin.Warning ||
			!strings.Contains(text, "overhear reports") {
			t.Errorf("no permissions: %s %s", got, text)
		}
		if got, text := examine(t, bare, name, natsadmin.Expect{Role: role}, "permissions"); got != natsadmin.Failure ||
			!strings.Contains(text, "overhear reports") {
			t.Errorf("no permissions, examined as %s: %s %s", name, got, text)
		}
	}
	// The one account for all: publishers overhear what is answered to others.
	if got, text := examine(t, permissions(t).scene(t), publisher, natsadmin.Expect{Role: natsadmin.Publisher},
		"permissions"); got != natsadmin.Failure ||
		!strings.Contains(text, "overhear answers") {
		t.Errorf("one inbox for all: %s %s", got, text)
	}
	// Probes leave nothing behind.
	for of, want := range map[stream.Stream]uint64{stream.Rounds: 1, stream.Attempts: 0, stream.Leases: 0,
		stream.Batches: 1, stream.Reports: 1} {
		for place, s := range map[string]*scene{"shipped": safe, "open": bare} {
			if got := s.stream(t, of).CachedInfo().State.Msgs; got != want {
				t.Errorf("%s: %v holds %d messages after all probes, want %d", place, of, got, want)
			}
		}
	}
}

// TestDoctorSeesTLS: encryption, its end, and whether the server asks who connects.
func TestDoctorSeesTLS(t *testing.T) {
	safe, bare := shipped(t).scene(t), open(t).scene(t)
	for _, test := range []struct {
		s     *scene
		check string
		now   time.Duration
		want  natsadmin.Status
		text  string
	}{
		{safe, "tls", -60 * 24 * time.Hour, natsadmin.OK, "encrypted"},
		{safe, "tls", 0, natsadmin.OK, "encrypted"},
		{safe, "certificates", -60 * 24 * time.Hour, natsadmin.OK, "first to end"},
		// the test's certificates last an hour
		{safe, "certificates", 0, natsadmin.Warning, "our certificate (--tls-cert) ends"},
		{safe, "certificates", 0, natsadmin.Warning, "authority in --tls-ca ends"},
		{safe, "certificates", 0, natsadmin.Warning, "the server's certificate of 127.0.0.1:"},
		{safe, "certificates", 2 * time.Hour, natsadmin.Failure, "our certificate (--tls-cert) ended"},
		{bare, "certificates", 0, "nothing", ""},
		{bare, "tls", 0, natsadmin.OK, "this machine only"},
		{safe, "authentication", 0, natsadmin.OK, "asks"},
		{bare, "authentication", 0, natsadmin.Warning, "anybody"},
	} {
		got, text := examine(t, test.s, stage, natsadmin.Expect{Now: time.Now().Add(test.now)}, test.check)
		if got != test.want || !strings.Contains(text, test.text) {
			t.Errorf("%s: %s %s, want %s %s", test.check, got, text, test.want, test.text)
		}
	}
}

// TestDoctorSeesLimits: what the account may keep, compared with what one more task needs.
func TestDoctorSeesLimits(t *testing.T) {
	for limits, want := range map[string]string{
		"max_file: 1TB": "", "max_file: 300MB": "not reserved", "max_file: 1TB, max_streams: 9": "at most 9 streams",
	} {
		config := write(t, "jetstream: enabled\naccounts { A { jetstream: {"+limits+
			"}, users: [{user: u, password: p}] } }\n")
		s := start(t, config, func(string) natsjs.ConnectConfig { return natsjs.ConnectConfig{URL: "u:p@"} }).scene(t)
		got, text := examine(t, s, admin, natsadmin.Expect{}, "room")
		if want == "" && got != natsadmin.OK || want != "" && (got != natsadmin.Warning || !strings.Contains(text, want)) {
			t.Errorf("%s: %s %s, want %q", limits, got, text, want)
		}
	}
}

// TestDoctorSeesClocks: who may not ask the server for its time learns from the newest record that his clock is behind.
func TestDoctorSeesClocks(t *testing.T) {
	s := shipped(t).scene(t)
	for _, role := range []string{learner, publisher} {
		for off, want := range map[time.Duration]natsadmin.Status{0: natsadmin.OK, -time.Hour: natsadmin.Warning} {
			got, text := examine(t, s, role, natsadmin.Expect{Clock: func() time.Time { return time.Now().Add(off) }}, "clock")
			if got != want || !strings.Contains(text, "behind") {
				t.Errorf("%s, %v off: %s %s, want %s", role, off, got, text, want)
			}
		}
	}
}
