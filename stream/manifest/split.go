package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// Prio3 is the only version of Prio3 used for shares of reports: draft-irtf-cfrg-vdaf-14, with which later drafts are
// not compatible.
const Prio3 = "draft-14"

// maxShared bounds the bits d k of one report, as package shuffle/split does.
const maxShared = 1 << 24

// HasOperators reports whether a plan's reports are shared between two operators.
func HasOperators(plan *wire.Plan) bool { return plan.GetTrust() == wire.Trust_TRUST_SPLIT }

// validateSplit refuses a task of two operators that names one of them only, or twice, or that anybody could read, and
// a task of one operator that speaks of two.
func validateSplit(task *wire.Task) error {
	split, p := HasOperators(task.Plan), task.Plan.Prio3
	switch {
	case split && p != Prio3:
		return fmt.Errorf("prio3 %q: this program shares reports by %q", p, Prio3)
	case !split && p != "":
		return fmt.Errorf("prio3 %q: want none but under trust split", p)
	case split != (len(task.HelperKey) > 0):
		return fmt.Errorf("helper_key of %d bytes: want one under trust split, and none elsewhere", len(task.HelperKey))
	case split && bytes.Equal(task.HelperKey, task.StageKey):
		return errors.New("helper_key is the stage_key: want two operators")
	case split && task.Suite != wire.Suite_SUITE_MLKEM768_X25519:
		return fmt.Errorf("suite %v: want %v under trust split", task.Suite, wire.Suite_SUITE_MLKEM768_X25519)
	}
	return nil
}

// validateShared refuses a phase if its reports have more bits than can be shared.
func validateShared(plan *wire.Plan, m *wire.Mechanism) error {
	if k := bits.Len32(m.Levels); HasOperators(plan) && uint64(m.Dim)*uint64(k) > maxShared {
		return fmt.Errorf("dim %d of %d bits a coordinate: two operators share at most %d bits", m.Dim, k, maxShared)
	}
	return nil
}

// attempted is a message that ends an attempt, or claims for it: Claim, Batch or Close.
type attempted interface {
	GetAttempt() uint64
	GetOpenHash() []byte
	GetJoinHash() []byte
}

// CheckAttempt refuses a Claim, Batch or Close that does not name its attempt as the plan requires: with two operators
// by its number and the hashes of the signed Open and Join, otherwise by the number alone. A void batch of no attempt
// needs no hashes.
func CheckAttempt(plan *wire.Plan, m attempted) error {
	want := HasOperators(plan) && m.GetAttempt() > 0
	if want != (len(m.GetOpenHash()) > 0) || want != (len(m.GetJoinHash()) > 0) {
		return fmt.Errorf("open_hash of %d bytes, join_hash of %d: want both under trust split, and none elsewhere",
			len(m.GetOpenHash()), len(m.GetJoinHash()))
	}
	return nil
}

// A Part holds the bytes that one user adds to a message of reports.
type Part struct {
	Leader int // plaintext that is sealed to the stage: all counts, or the leader's share
	Helper int // plaintext that is sealed to the helper, 0 where there is none
	Public int // public share, 0 where there is none
	Grant  int // token, sealed to the stage behind the counts or shares of all users; 0 where there is none
}

// PartOf returns what one user of a phase sends in a task.
func PartOf(task *wire.Task, p randomizer.Params) Part {
	part := Part{Leader: p.ReportBytes()}
	if HasOperators(task.GetPlan()) {
		part = SharedPart(p.Dim, p.Levels)
	}
	if HasGrants(task) {
		part.Grant = grant.Size
	}
	return part
}

// SharedPart returns what one user sends to two operators, of so many coordinates of 0 to levels.
func SharedPart(dim int, levels uint32) Part { return shareLengths(dim, bits.Len32(levels)) }

// Bytes returns what one user adds to a message before it is sealed.
func (p Part) Bytes() int { return p.sealed() + p.Helper + p.Public }

// sealed returns what is sealed to the stage of one user.
func (p Part) sealed() int { return p.Leader + p.Grant }

// ReportSize returns the length in bytes of an encoded message of that many users.
func (p Part) ReportSize(suite wire.Suite, users int) int {
	if p.Helper == 0 {
		return seal.ReportSize(suite, users, users*p.sealed())
	}
	return seal.SharedReportSize(suite, users, users*p.sealed(), users*p.Helper, p.Public)
}

// Fits reports whether the parts of a report have the lengths that its number of ids gives.
func (p Part) Fits(suite wire.Suite, r *wire.Report) bool {
	users := len(r.Ids)
	enc, ciphertext := seal.SealedSize(suite, users*p.sealed())
	ok := len(r.Encapsulated) == enc && len(r.Ciphertext) == ciphertext
	if p.Helper == 0 {
		return ok && len(r.PublicShares) == 0
	}
	enc, ciphertext = seal.SealedSize(suite, users*p.Helper)
	ok = ok && len(r.HelperEncapsulated) == enc && len(r.HelperCiphertext) == ciphertext && len(r.PublicShares) == users
	for _, public := range r.PublicShares {
		ok = ok && len(public) == p.Public
	}
	return ok
}

// Lengths of what Prio3 is made of, in bytes.
const (
	elementBytes = stream.ElementSize
	seedBytes    = 32
)

// shareLengths returns the lengths of the shares of d coordinates of k bits, in Prio3SumVec with two aggregators and a
// joint seed. The leader's share is the counts' bits and the proof, one element each, and a blind.
func shareLengths(dim, bits int) Part {
	n := uint64(dim) * uint64(bits)
	chunk := chunkOf(n)
	points := uint64(1) // P, of the gadget's polynomial: a power of two above the calls
	for points < 1+(n+chunk-1)/chunk {
		points *= 2
	}
	proof := 2*chunk + 2*(points-1) + 1
	return Part{Leader: int((n+proof)*elementBytes + seedBytes), Helper: 2 * seedBytes, Public: 2 * seedBytes}
}

// chunkOf returns the length of a chunk of a proof of n bits: the shortest that fills P - 1 calls of the gadget, where
// P is the largest power of two up to the chunk.
func chunkOf(n uint64) uint64 {
	for size := uint64(2); ; size *= 2 {
		if next := 2 * size; (n+next-2)/(next-1) < next {
			return (n + size - 2) / (size - 1)
		}
	}
}
