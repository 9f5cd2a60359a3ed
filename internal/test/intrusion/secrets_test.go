package intrusion

import (
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// openReport decrypts a recorded report with the attempt's key.
func (w *world) openReport(a *attempt, m stream.Message) (id [16]byte, packed []byte) {
	var r wire.Report
	must(stream.Unmarshal(m.Data, &r))
	context := seal.Context{ManifestHash: a.manifest, Attempt: a.number, StageKey: w.stage.Public(), Public: a.public}
	a.key.use(func(key []byte) {
		k, err := private(w.suite, key)
		must(err)
		recipient, err := hpke.NewRecipient(r.Encapsulated, k, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), context.Info())
		must(err)
		packed, err = recipient.Open(r.Ids[0], r.Ciphertext)
		must(err)
	})
	return [16]byte(r.Ids[0]), packed
}

// A view holds what the test knows about an attempt once it has the key.
type view struct {
	users   []draw     // accepted, in order
	running [][]uint64 // totals after each of them
}

func (w *world) view(a *attempt) (v view) {
	totals := make([]uint64, w.users)
	for i, m := range a.taken {
		if !a.accepted[i] {
			continue
		}
		id, packed := w.openReport(a, m)
		w.mu.Lock()
		d := w.drawn[id]
		w.mu.Unlock()
		if string(d.counts) != string(packed) || d.round != a.round {
			panic(fmt.Sprintf("round %d: a report that no device drew", a.round))
		}
		for j, c := range w.unpack(packed) {
			totals[j] += uint64(c)
		}
		v.users = append(v.users, d)
		v.running = append(v.running, slices.Clone(totals))
	}
	return v
}

func (w *world) unpack(packed []byte) []uint32 {
	counts, err := w.params().Unpack(make([]uint32, w.users), packed)
	must(err)
	return counts
}

// gradient returns the gradient that a device computes from its event: clipped, and not yet noisy.
func (w *world) gradient(user int, round uint64) []float64 {
	loss, err := convex.NewLoss("logistic")
	must(err)
	out := make([]float64, w.users)
	loss.Gradient(out, w.rounds[round].Point, convex.Example{Index: []int32{int32(user)}, Value: []float64{1}, Label: -1})
	convex.Clip(out, clip)
	return out
}

// secrets returns all that must not be found, except for identities.
func (w *world) secrets() (all []secret) {
	for _, a := range w.attempts {
		if a.key != nil {
			for i, part := range a.key.parts(w.suite) {
				s := secret{name: fmt.Sprintf("part %d of the key of round %d, attempt %d", i, a.round, a.number)}
				part.use(func(key []byte) { s.raw(slices.Clone(key)) })
				all = append(all, s)
			}
		}
		all = append(all, w.ofAttempt(a)...)
	}
	return all
}

func (w *world) ofAttempt(a *attempt) (all []secret) {
	v := w.view(a)
	sum := make([]float64, w.users)
	levels := make([]uint64, w.users)
	for i, d := range v.users {
		report := vector(fmt.Sprintf("the report of user %d in round %d", d.user, a.round), w.unpack(d.counts))
		report.raw(d.counts)
		gradient := w.gradient(d.user, a.round)
		all = append(all, report, floats(fmt.Sprintf("the gradient of user %d in round %d", d.user, a.round), gradient))
		for j, x := range gradient {
			sum[j] += x
			levels[j]++
		}
		levels[d.user]++ // two levels: zero is the first, the clip norm the second
		released := w.batches[a.round]
		last := i == len(v.users)-1
		if last && released.Attempt == a.number && slices.Equal(v.running[i], released.Totals) {
			continue // a full cohort: its totals are the release
		}
		all = append(all, vector(fmt.Sprintf("the totals of round %d after %d users", a.round, i+1), v.running[i]))
	}
	mean := slices.Clone(sum)
	for j := range mean {
		mean[j] /= float64(max(1, len(v.users)))
	}
	exact := vector(fmt.Sprintf("the levels of round %d without noise", a.round), levels)
	return append(all, floats(fmt.Sprintf("the sum of gradients of round %d", a.round), sum),
		floats(fmt.Sprintf("the mean gradient of round %d without noise", a.round), mean), exact)
}

// identitySeed returns the private key in an identity's file.
func (w *world) identitySeed(file string) []byte {
	data, err := os.ReadFile(filepath.Join(w.dir, "keys", file))
	must(err)
	block, _ := pem.Decode(data)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	must(err)
	return key.(ed25519.PrivateKey).Seed()
}
