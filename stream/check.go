package stream

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream/wire"
)

// Sizes of fixed-length fields, in bytes.
const (
	HashSize     = 32
	KeySize      = 32 // Ed25519 public key
	SignatureLen = 64
	InstanceSize = 16
	LifeSize     = 16
	ReportIDSize = 16
)

// Bounds that no honest peer comes near; they keep what a peer sends from growing memory.
const (
	MaxDim    = 1 << 20
	MaxBundle = 1 << 16
	maxReason = 64 // bytes of a reason
	MaxPhases = 64
	// IssuerKeySize is the length of an issuer's public key, in bytes.
	IssuerKeySize = 342
	MaxPublic     = 256 << 10 // bytes of the file of a public model, as package task bounds it
)

// Check returns an error unless a body is well formed by itself: lengths, ranges, finiteness. The reader has to check
// that it belongs to the task and round.
func Check(m proto.Message) error {
	switch m := m.(type) {
	case *wire.Signed:
		return errors.Join(length("key", m.Key, KeySize), length("signature", m.Signature, SignatureLen))
	case *wire.StageIdentity:
		_, err := ParseTask(m.Task)
		return errors.Join(err, length("key", m.Key, KeySize))
	case *wire.Task:
		return validateTask(m)
	case *wire.Round:
		return validateRound(m)
	case *wire.Open:
		return errors.Join(header(m), length("instance", m.Instance, InstanceSize), suite(m.Suite),
			atLeastOne("attempt", m.Attempt), length("manifest_hash", m.ManifestHash, HashSize))
	case *wire.Claim:
		return errors.Join(header(m), length("instance", m.Instance, InstanceSize),
			atLeastOne("attempt", m.Attempt), length("manifest_hash", m.ManifestHash, HashSize), pairOrNone(m))
	case *wire.Batch:
		return validateBatch(m)
	case *wire.Close:
		return errors.Join(header(m), atLeastOne("attempt", m.Attempt),
			length("manifest_hash", m.ManifestHash, HashSize), length("batch_hash", m.BatchHash, HashSize), pairOrNone(m))
	case *wire.End:
		return errors.Join(length("task_hash", m.TaskHash, HashSize), short("reason", m.Reason))
	case *wire.Report:
		return validateReport(m)
	case *wire.HelperIdentity:
		_, err := ParseTask(m.Task)
		return errors.Join(err, length("key", m.Key, KeySize))
	case *wire.Join:
		return validateJoin(m)
	case *wire.Share:
		return validateShare(m)
	case *wire.Exchange:
		return validateExchange(m)
	}
	return fmt.Errorf("%s is not a message of its own", m.ProtoReflect().Descriptor().Name())
}

type headed interface {
	GetTaskHash() []byte
	GetRound() uint64
}

func header(m headed) error {
	return errors.Join(length("task_hash", m.GetTaskHash(), HashSize), atLeastOne("round", m.GetRound()))
}

func validateTask(m *wire.Task) error {
	_, err := ParseTask(m.Name)
	if m.Plan == nil {
		return errors.Join(err, errors.New("plan: missing"))
	}
	p := m.Plan
	if p.Continuous < wire.Continuous_CONTINUOUS_NO || p.Continuous > wire.Continuous_CONTINUOUS_ADAPTIVE {
		err = errors.Join(err, fmt.Errorf("continuous %d: unknown", p.Continuous))
	}
	if len(m.Public) > MaxPublic {
		err = errors.Join(err, fmt.Errorf("public: %d bytes, want at most %d", len(m.Public), MaxPublic))
	}
	if len(m.HelperKey) > 0 {
		err = errors.Join(err, length("helper_key", m.HelperKey, KeySize))
	}
	if len(m.IssuerKey) > 0 {
		err = errors.Join(err, length("issuer_key", m.IssuerKey, IssuerKeySize))
	}
	return errors.Join(err, length("learner_key", m.LearnerKey, KeySize), length("life", m.Life, LifeSize),
		length("stage_key", m.StageKey, KeySize),
		suite(m.Suite), validatePhases(p), validateStart(p), short("plan.prio3", p.Prio3),
		positive("plan.epsilon", p.Epsilon), positive("plan.delta", p.Delta), positive("plan.epsilon_budget",
			p.EpsilonBudget))
}

func validateRound(m *wire.Round) error {
	err := errors.Join(header(m), atLeastOne("step", m.Step))
	if len(m.Point) > MaxDim {
		return errors.Join(err, fmt.Errorf("point of %d values: want at most %d", len(m.Point), MaxDim))
	}
	return errors.Join(err, finite("point", m.Point))
}

// validateStart looks at a start alone; whether it is one of the plan's set is manifest.CheckTask's question.
func validateStart(p *wire.Plan) error {
	if len(p.Start) == 0 {
		if p.StartPrivacy != nil {
			return errors.New("plan.start_privacy without plan.start")
		}
		return length("plan.start_hash", p.StartHash, 0)
	}
	if len(p.Start) > MaxDim {
		return fmt.Errorf("plan.start of %d values: want at most %d", len(p.Start), MaxDim)
	}
	of := p.GetStartPrivacy()
	return errors.Join(length("plan.start_hash", p.StartHash, HashSize), finite("plan.start", p.Start),
		short("plan.start_privacy.task", of.GetTask()), notNegative("plan.start_privacy.epsilon", of.GetEpsilon()),
		notNegative("plan.start_privacy.delta", of.GetDelta()))
}

func finite(field string, values []float64) error {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s[%d]: not finite", field, i)
		}
	}
	return nil
}

func validateBatch(m *wire.Batch) error {
	err := errors.Join(header(m), length("manifest_hash", m.ManifestHash, HashSize), short("reason", m.Reason))
	if m.Void {
		if m.Users != 0 || m.NoiseTrials != 0 || len(m.Totals) != 0 {
			err = errors.Join(err, errors.New("a void batch carries totals"))
		}
	} else if m.Users == 0 || len(m.Totals) == 0 || m.Attempt == 0 {
		err = errors.Join(err, errors.New("a batch without users, attempt or totals"))
	}
	if len(m.Totals) > MaxDim {
		err = errors.Join(err, fmt.Errorf("%d totals: want at most %d", len(m.Totals), MaxDim))
	}
	if len(m.SpentHash) > 0 {
		err = errors.Join(err, length("spent_hash", m.SpentHash, HashSize))
	}
	return errors.Join(err, validateRejects(m.Rejects), pairOrNone(m))
}

func validateRejects(all []*wire.Reject) (err error) {
	for i, r := range all {
		if r.Count == 0 || (i > 0 && all[i-1].Reason >= r.Reason) {
			err = errors.Join(err, errors.New("rejects: want ascending reasons and positive counts"))
		}
		err = errors.Join(err, short("rejects.reason", r.Reason))
	}
	return err
}

func validateReport(m *wire.Report) error {
	err := length("task_hash", m.TaskHash, HashSize)
	if len(m.Ids) == 0 || len(m.Ids) > MaxBundle {
		err = errors.Join(err, fmt.Errorf("%d ids: want 1 to %d", len(m.Ids), MaxBundle))
	}
	for _, id := range m.Ids {
		if len(id) != ReportIDSize {
			return errors.Join(err, length("id", id, ReportIDSize))
		}
	}
	return errors.Join(err, validateShares(m))
}

func length(field string, b []byte, want int) error {
	if len(b) != want {
		return fmt.Errorf("%s has %d bytes: want %d", field, len(b), want)
	}
	return nil
}

func short(field, s string) error {
	if len(s) > maxReason {
		return fmt.Errorf("%s has %d bytes: want at most %d", field, len(s), maxReason)
	}
	return nil
}

func atLeastOne(field string, n uint64) error {
	if n == 0 {
		return fmt.Errorf("%s 0: want at least 1", field)
	}
	return nil
}

func notNegative(field string, v float64) error {
	if !(v >= 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%s %v: want a finite number, at least 0", field, v)
	}
	return nil
}

func positive(field string, v float64) error {
	if !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%s %v: want a positive finite number", field, v)
	}
	return nil
}

// mechanism checks a mechanism by itself. Package manifest checks whether it can be run in its plan.
func mechanism(m *wire.Mechanism) error {
	if m == nil {
		return errors.New("mechanism: missing")
	}
	return nil
}

func cohort(n, minimum uint64) error {
	if n == 0 || minimum == 0 || minimum > n {
		return fmt.Errorf("cohort %d, minimum %d: want 1 <= minimum <= cohort", n, minimum)
	}
	return nil
}

func suite(s wire.Suite) error {
	if s < wire.Suite_SUITE_NONE || s > wire.Suite_SUITE_MLKEM768_X25519 {
		return fmt.Errorf("suite %d: unknown", s)
	}
	return nil
}
