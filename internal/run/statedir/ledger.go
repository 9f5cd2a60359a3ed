package statedir

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A LedgerReport is the privacy ledger for people and scripts, without its lines. As a JSON document it has two more
// fields, of [LedgerEntry]: entries has one line a round, the one that counts: what its batch cost (spent, or void),
// or, while the round is open, its reservation; chain is the whole append-only ledger, reservations and what settled
// them. [writeLedger] writes the document, and [ReadLedger] reads it, in constant memory however long the ledger is.
type LedgerReport struct {
	Epsilon float64 `json:"epsilon"` // for the unit that is charged most
	Delta   float64 `json:"delta"`
	// RoundsPerUser bounds the rounds that one user takes part in. Each round of an interactive phase is charged with what
	// all rounds of the phase cost one user together, so the largest charge is the sum and nothing is added up.
	RoundsPerUser uint32 `json:"rounds_per_user"`
	Intact        bool   `json:"intact"` // the hash chain was verified, and its sums
	Ended         bool   `json:"ended"`
	EndReason     string `json:"end_reason,omitempty"`
	Adversaries
}

// A LedgerEntry is one line of the ledger.
type LedgerEntry struct {
	Sequence    uint64     `json:"sequence"`
	Kind        string     `json:"kind"`
	Round       uint64     `json:"round"`
	Attempt     uint64     `json:"attempt"`
	Users       uint64     `json:"users"`
	NoiseTrials uint64     `json:"noise_trials"`
	Phase       uint64     `json:"phase,omitempty"` // from 1, where the same users answer all rounds of a phase
	Epsilon     float64    `json:"epsilon"`
	Delta       float64    `json:"delta"`
	Previous    state.Hash `json:"previous"`
	Hash        state.Hash `json:"hash"`
}

func ledgerEntry(e state.Entry) LedgerEntry {
	return LedgerEntry{Sequence: e.Sequence, Kind: e.Kind.String(), Round: e.Round, Attempt: e.Attempt, Users: e.Users,
		Phase: e.Phase, NoiseTrials: e.NoiseTrials, Epsilon: e.Epsilon, Delta: e.Delta, Previous: e.Previous, Hash: e.Hash}
}

// LedgerReport sums up the ledger of a view. It leaves Intact false; a caller that has verified the entries sets it.
func (v View) LedgerReport() (out LedgerReport, err error) {
	spent := v.Checkpoint.Ledger.Spent()
	out = LedgerReport{Epsilon: spent.Epsilon, Delta: spent.Delta, Ended: v.Checkpoint.Ended()}
	if out.EndReason, err = v.endReason(); err != nil {
		return LedgerReport{}, err
	}
	if out.Adversaries, err = v.adversaries(spent.Epsilon); err != nil {
		return LedgerReport{}, err
	}
	out.RoundsPerUser = manifest.RoundsPerUser(v.Task.Plan)
	return out, nil
}

// upTo yields the first n entries of a store, which may have more by now.
func upTo(ctx context.Context, store state.Store, n uint64) iter.Seq2[state.Entry, error] {
	return func(yield func(state.Entry, error) bool) {
		if n == 0 {
			return
		}
		for e, err := range store.Ledger(ctx) {
			if !yield(e, err) || err != nil || e.Sequence >= n {
				return
			}
		}
	}
}

// writeLedger verifies all entries of a store, archived ones too, and writes its report with them. Where they do not
// verify it writes nothing.
func writeLedger(ctx context.Context, store state.Store, w io.Writer) error {
	view, err := Look(ctx, store)
	if err != nil {
		return err
	}
	entries := upTo(ctx, store, view.Checkpoint.Ledger.Head.Length)
	if err := view.Checkpoint.VerifyLedger(state.Ledger{}, entries); err != nil {
		return err
	}
	report, err := view.LedgerReport()
	if err != nil {
		return err
	}
	report.Intact = true
	rest, err := json.Marshal(report)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	out.WriteString("{\n  \"entries\": ") // a bufio.Writer keeps its first error until Flush
	if err := writeEntries(out, state.Charged(entries)); err != nil {
		return err
	}
	out.WriteString(",\n  \"chain\": ")
	if err := writeEntries(out, entries); err != nil {
		return err
	}
	out.WriteString(",\n  ")
	out.Write(rest[1:])
	out.WriteString("\n")
	return out.Flush()
}

// writeEntries writes an array, a line for each entry.
func writeEntries(out *bufio.Writer, entries iter.Seq2[state.Entry, error]) error {
	between := "["
	for e, err := range entries {
		if err != nil {
			return err
		}
		line, err := json.Marshal(ledgerEntry(e))
		if err != nil {
			return err
		}
		out.WriteString(between + "\n    ")
		if _, err := out.Write(line); err != nil {
			return err
		}
		between = ","
	}
	if between == "[" {
		out.WriteString(between)
	}
	_, err := out.WriteString("]")
	return err
}

// ReadLedger reads the document that writeLedger wrote, and calls with each line of entries and of chain, by their
// names.
func ReadLedger(r io.Reader, line func(field string, e LedgerEntry) error) (report LedgerReport, err error) {
	d := json.NewDecoder(r)
	rest := map[string]json.RawMessage{}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return report, errors.Join(err, errors.New("no JSON object"))
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return report, err
		}
		field, _ := t.(string)
		if field != "entries" && field != "chain" {
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				return report, err
			}
			rest[field] = value
			continue
		}
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return report, errors.Join(err, fmt.Errorf("%s is no list", field))
		}
		for d.More() {
			var e LedgerEntry
			if err := d.Decode(&e); err != nil {
				return report, err
			}
			if err := line(field, e); err != nil {
				return report, err
			}
		}
		if _, err := d.Token(); err != nil {
			return report, err
		}
	}
	if _, err := d.Token(); err != nil { // a document that ends early is no ledger
		return report, err
	}
	all, err := json.Marshal(rest)
	if err != nil {
		return report, err
	}
	return report, json.Unmarshal(all, &report)
}
