package stage

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// panTrusts are the trusts under which one look at the stage is part of the guarantee.
var panTrusts = []wire.Trust{wire.Trust_TRUST_PAN, wire.Trust_TRUST_SHUFFLE_PAN}

// begin opens attempt 1 at round 1 of a world without a broker in between.
func (w *world) begin(c Config) *attempt {
	w.t.Helper()
	f := w.new(c).environment
	if err := f.enlist(&stream.Message{Subject: w.name.Task(), Data: w.sign(w.learner, w.task)}); err != nil {
		w.t.Fatal(err)
	}
	r, err := f.readRound(&stream.Message{Subject: w.name.Round(1), Data: w.sign(w.learner, w.round(1, 1))})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := newAttempt(f, r, 1, time.Unix(1, 0))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// reportOf returns the report of one user to an attempt, with its place in the stream as its id.
func (w *world) reportOf(a *attempt, sequence uint64, counts []uint32) *stream.Message {
	w.t.Helper()
	in := &invitation{round: 1, attempt: 1, suite: w.task.Suite, context: a.opener.context}
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], sequence)
	return &stream.Message{Subject: w.name.Report(1, 1), Sequence: sequence, Data: w.seal(in, [][16]byte{id},
		w.params.Pack(nil, counts))}
}

// look returns all that an intruder finds in an attempt, without the broker behind its ports, the public law of the
// floors, the type information of messages, and the generator that spreads polls, which makes no noise.
func look(a *attempt, prune ...string) dptest.Memory {
	return dptest.Dump(a, append(prune, "Records", "Reports", "Logger", "floor", "state", "jitter")...)
}

// On neighbouring streams nothing in the attempt's memory differs but the totals, from the replaced report on.
func TestIntrusionSeesAReportInTheTotalsAlone(t *testing.T) {
	const users = 5
	for _, trust := range panTrusts {
		w := newWorld(t, plan{cohort: users, trust: trust})
		open := func() *attempt {
			c, made := w.config(), uint64(0)
			c.Instance = [stream.InstanceSize]byte{1}
			c.Entropy = func() rand.Source {
				made++
				return rand.NewChaCha8(dptest.Seed(made))
			}
			return w.begin(c)
		}
		for target := range users {
			real, other := open(), open()
			for u := range users {
				counts := make([]uint32, users)
				counts[u] = 1
				replaced := slices.Clone(counts)
				if u == target {
					replaced[u], replaced[(u+1)%users] = 0, 1
				}
				for a, sent := range map[*attempt][]uint32{real: counts, other: replaced} {
					if got := a.examine(w.reportOf(a, uint64(u+1), sent)); got != Accepted {
						t.Fatalf("%v: user %d: %v", trust, u, got)
					}
				}
				var want []string
				if u >= target {
					want = []string{fmt.Sprintf(".mixer.totals[%d]", target), fmt.Sprintf(".mixer.totals[%d]", (target+1)%users)}
					slices.Sort(want)
				}
				if got := look(real, "Entropy").Differences(look(other, "Entropy")); !slices.Equal(got, want) {
					t.Errorf("%v: user %d replaced, after user %d: memory differs at %v, want %v", trust, target, u, got, want)
				}
			}
			for _, a := range []*attempt{real, other} {
				if _, err := a.close(); err != nil {
					t.Fatal(err)
				}
			}
			if got := look(real, "Entropy").Differences(look(other, "Entropy")); len(got) != 0 {
				t.Errorf("%v: user %d replaced: memory differs at %v after the close", trust, target, got)
			}
		}
	}
}

// With the production's entropy and sealing: at no position does an attempt hold a generator, what one user sent, or
// the sealed message that its own key would open.
func TestIntrusionFindsNoReportAndNoGenerator(t *testing.T) {
	const users = 64 // coordinates, so that a packed report has 8 bytes and more
	for _, trust := range panTrusts {
		w := newWorld(t, plan{cohort: users, minimum: 4, deadline: time.Second, trust: trust, suite: wire.Suite_SUITE_X25519})
		a := w.begin(w.config())
		var secrets [][]byte
		check := func(where string) {
			t.Helper()
			seen := look(a)
			seen.NoGenerator(t, where)
			for _, path := range seen.Funcs {
				// package shuffle looks into the first; the second is a hash of the standard library
				if path != ".mixer.cfg.Entropy" && path != ".opener.key.private.kem.kdf.hash" {
					t.Errorf("%s: a function at %v", where, path)
				}
			}
			for _, s := range secrets {
				if paths := seen.Holds(s); len(paths) > 0 {
					t.Errorf("%v, %s: a report is at %v", trust, where, paths)
				}
			}
			totals := 0
			for path, v := range seen.Leaves {
				switch {
				case strings.HasPrefix(path, ".mixer.totals["):
					totals++
				case strings.HasPrefix(path, ".mixer.ids"), strings.HasPrefix(path, ".mixer.rejects["), !strings.HasPrefix(path,
					".mixer."):
				case strings.Contains(path, "["): // any other place of the mixer that could keep a vector
					t.Errorf("%v, %s: %s is %s", trust, where, path, v)
				}
			}
			if totals != users {
				t.Errorf("%s: %d totals were found, want %d", where, totals, users)
			}
		}
		check("before the first report")
		for u := range uint64(6) {
			counts := make([]uint32, users)
			var raw [users]byte
			_, _ = crand.Read(raw[:])
			for j := range counts {
				counts[j] = uint32(raw[j] & 1)
			}
			m := w.reportOf(a, u+1, counts)
			var sealed wire.Report
			if err := stream.Unmarshal(m.Data, &sealed); err != nil {
				t.Fatal(err)
			}
			secrets = append(secrets, w.params.Pack(nil, counts), slices.Clone(sealed.Ciphertext[:8]))
			if got := a.examine(m); got != Accepted {
				t.Fatal(got)
			}
			check(fmt.Sprintf("after report %d", u+1))
		}
		out, err := a.close()
		if err != nil {
			t.Fatal(err)
		}
		seen := look(a)
		seen.NoGenerator(t, "after the close")
		for path := range seen.Leaves {
			for _, gone := range []string{".mixer.totals", ".mixer.ids", ".opener.key.private", ".single.ids"} {
				if strings.HasPrefix(path, gone) {
					t.Errorf("%v: %s after the close", trust, path)
				}
			}
		}
		for _, s := range secrets {
			if paths := append(seen.Holds(s), dptest.Dump(out, "Entropy").Holds(s)...); len(paths) > 0 {
				t.Errorf("%v: a report is at %v after the close", trust, paths)
			}
		}
	}
}

// What no floor covers is kept small: the sealed messages that lie beside the key.
func TestPanPrefetch(t *testing.T) {
	for _, c := range []struct {
		trust      wire.Trust
		configured int
		want       int
	}{
		{wire.Trust_TRUST_SHUFFLE, 0, defaultPrefetch},
		{wire.Trust_TRUST_PAN, 0, maxPanPrefetch}, {wire.Trust_TRUST_SHUFFLE_PAN, 0, maxPanPrefetch},
		{wire.Trust_TRUST_SHUFFLE, 3, 3}, {wire.Trust_TRUST_PAN, 1, 1}, {wire.Trust_TRUST_PAN, 100, maxPanPrefetch},
	} {
		w := newWorld(t, plan{cohort: 500, trust: c.trust})
		cfg := w.config()
		cfg.Prefetch, cfg.Workers = c.configured, 3
		a := w.begin(cfg)
		if a.Prefetch != c.want || (a.Workers == 1) != a.floors() {
			t.Errorf("%v, configured %d: prefetch %d and %d workers, want %d, and one worker under floors", c.trust,
				c.configured, a.Prefetch, a.Workers, c.want)
		}
	}
	if maxPanPrefetch > 16 {
		t.Errorf("%d sealed reports beside the key: want few", maxPanPrefetch)
	}
}
