package split

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/panlearn/panlearn/shuffle"
)

// A Hash is a SHA-256.
type Hash = [sha256.Size]byte

// An Instance names one process of an operator, as in Open and Join.
type Instance = [16]byte

// An Attempt names one attempt of a round by all that leader and helper said of it; the documents call it X. Attempts
// are compared whole: two that differ in one hash have nothing in common.
type Attempt struct {
	Task   Hash   // of the signed Task
	Round  uint64 // from 1
	Number uint64 // of the attempt in its round, from 1
	Open   Hash   // of the leader's signed Open
	Join   Hash   // of the helper's signed Join
}

// attemptBytes is the length of an encoded Attempt.
const attemptBytes = 3*sha256.Size + 2*8

// A User is one user of a bundle, as the leader shows it to the helper.
type User struct {
	// ID is the report id in clear, Prio3's nonce. Only a ciphertext that authenticates it makes it true.
	ID shuffle.ReportID
	// Public is the public share: Lengths.Public bytes.
	Public []byte
	// Prep is the leader's prep share, Lengths.Prep bytes; nil where the leader refused the user already.
	Prep []byte
}

// Format hides the prep share.
func (User) Format(f fmt.State, _ rune) { fmt.Fprint(f, "user of a bundle") }

// MarshalText returns the placeholder of Format, for encoding/json.
func (u User) MarshalText() ([]byte, error) { return fmt.Append(nil, u), nil }

// A Bundle is one message of a device: its users, with shares that were sealed together, and the ciphertext for the
// helper. It goes into one request whole, and is decided user by user.
type Bundle struct {
	Users  []User
	Sealed []byte // to the helper's key of the attempt, opened with AssociatedData(Users)
}

// Format hides what is in the bundle.
func (b Bundle) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "bundle of %d users", len(b.Users)) }

// MarshalText returns the placeholder of Format, for encoding/json.
func (b Bundle) MarshalText() ([]byte, error) { return fmt.Append(nil, b), nil }

// AssociatedData returns what each of the two ciphertexts of a bundle authenticates: the number of users, their ids,
// and all their public shares, in order. Layout: uint32 users, big-endian, as all numbers here; the ids, 16 bytes
// each; for each public share its length as uint32, and its bytes.
func AssociatedData(users []User) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(users)))
	for _, u := range users {
		out = append(out, u.ID[:]...)
	}
	for _, u := range users {
		out = appendBytes(out, u.Public)
	}
	return out
}

// A Request shows the helper the N-th group of bundles of an attempt. It is signed by the leader, and sealed to the
// helper's key of the attempt beside (X, N) in clear.
type Request struct {
	X       Attempt
	N       uint64 // from 1, without gaps
	Base    uint64 // the highest number up to which the leader has all replies; not in the digest
	Bundles []Bundle
}

// users returns the number of users in the request's bundles.
func (r Request) users() int {
	n := 0
	for _, b := range r.Bundles {
		n += len(b.Users)
	}
	return n
}

// fits reports whether a leader can have made the request: it is within the bounds of users and bytes, and each of its
// bundles has users.
func (r Request) fits() bool {
	users, size := 0, requestHead
	for _, b := range r.Bundles {
		if len(b.Users) == 0 {
			return false
		}
		users += len(b.Users)
		size += leastBundle + len(b.Sealed)
		for _, u := range b.Users {
			size += leastUser + len(u.Public) + len(u.Prep)
		}
	}
	return users <= maxUsers && size <= MaxRequestBytes
}

// Format hides what is in the request.
func (r Request) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "request %d of %d users", r.N, r.users())
}

// MarshalText returns the placeholder of Format, for encoding/json.
func (r Request) MarshalText() ([]byte, error) { return fmt.Append(nil, r), nil }

// digest returns q_n, the hash of all of the request except Base.
func (r Request) digest() Hash {
	h := labelled("panlearn split request v1")
	h.Write(r.X.Append(nil))
	h.Write(binary.BigEndian.AppendUint64(nil, r.N))
	h.Write(appendBundles(nil, r.Bundles))
	return sum(h)
}

// A PrepMessage is Prio3's message that finishes an accepted report.
type PrepMessage = [32]byte

// A Reply decides the users of one request. It is signed by the helper, and sealed to the leader's key of the attempt
// beside (X, N) in clear. The same request gets the same bytes each time.
type Reply struct {
	X        Attempt
	N        uint64
	Request  Hash          // q_n, the request's digest
	Outcomes []Outcome     // one for each user, in the request's order
	Messages []PrepMessage // one for each user who was accepted, in order
	Chain    Hash          // c_n
}

// firstChain returns c_0 of an attempt.
func firstChain(x Attempt) Hash {
	h := labelled("panlearn split chain v1")
	h.Write(x.Append(nil))
	return sum(h)
}

// nextChain returns c_n from c_(n-1), the digest of request n and the outcomes of its users.
func nextChain(last, request Hash, outcomes []Outcome) Hash {
	h := labelled("panlearn split link v1")
	h.Write(last[:])
	h.Write(request[:])
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(outcomes))))
	for _, o := range outcomes {
		h.Write([]byte{byte(o)})
	}
	return sum(h)
}

// A Ping asks the helper whether it still holds X. It is signed by the leader and not sealed, as all messages below
// except Share are by their senders.
type Ping struct {
	X       Attempt
	Highest uint64 // the highest round for which the leader has stored a Share, 0 for none
}

// A Pong answers a Ping of an attempt that the helper holds or has released.
type Pong struct {
	X        Attempt
	Instance Instance
	Show     uint64 // a round above the helper's mark for which it needs to see the Share, 0 for none
}

// A Finish asks the helper to end X in the leader's state, after Requests replies. The leader sends the same bytes
// until the attempt has ended.
type Finish struct {
	X        Attempt
	Requests uint64 // N
	Users    uint64 // counted
	Chain    Hash   // c_N
}

// A Gone is the helper's word that it neither holds X nor released it, and never will.
type Gone struct {
	X        Attempt
	Instance Instance
	Marked   uint64 // the highest round that the helper has marked, 0 for none
}

// A Differs is the helper's word that X ended because leader and helper saw different things in it. The helper holds
// nothing of X from then on and never releases it.
type Differs struct {
	X        Attempt
	Instance Instance
}

// A Share is the helper's release of a round, or its refusal to take part in one: its aggregate share with its floor.
// It is signed by the helper, once a round, and public.
type Share struct {
	X         Attempt
	Requests  uint64  // N
	Users     uint64  // counted
	Chain     Hash    // c_N
	Aggregate []byte  // Lengths.Aggregate bytes; empty in a refusal
	Refusal   Refusal // None in a release
}

// A Refusal is the reason for which a helper released nothing of a round.
type Refusal uint8

const (
	// None: the Share is a release.
	None Refusal = iota
	// Marked: the helper's mark is of this round or a later one, and it has no Share of the round to put again.
	Marked

	refusals
)

var refusalNames = [refusals]string{"none", "marked"}

// String returns the refusal's label.
func (r Refusal) String() string {
	if r >= refusals {
		return "unknown"
	}
	return refusalNames[r]
}

// An Outcome names the decision about one user of a bundle. The numbers are those on the wire, and the labels a small
// fixed set, fit for metrics.
type Outcome uint8

const (
	// Accepted: the user is in the totals.
	Accepted Outcome = iota
	// Refused: the leader refused the user before it asked the helper.
	Refused
	// Unopened: the ciphertext does not open with these ids and public shares.
	Unopened
	// Duplicate: the id was spent before in this attempt.
	Duplicate
	// BadLength: a share of another length than the attempt's.
	BadLength
	// BadShare: a share that Prio3 does not take: numbers outside the field, or another public share than its own.
	BadShare
	// BadProof: the counts are not proved to be in 0..g.
	BadProof

	outcomes
)

var outcomeNames = [outcomes]string{"accepted", "refused", "unopened", "duplicate", "bad_length", "bad_share", "bad_proof"}

// String returns the outcome's label.
func (o Outcome) String() string {
	if o >= outcomes {
		return "unknown"
	}
	return outcomeNames[o]
}

// Rejects counts refused users by outcome; index it with one. The entry of Accepted is zero.
type Rejects [outcomes]uint64

// A VerifyKey is the secret that leader and helper of one attempt share: from it and a report's id follows the point
// at which Prio3 checks that report. The helper draws it.
type VerifyKey [32]byte

// Hash returns the hash by which Join commits to the key.
func (k VerifyKey) Hash() Hash {
	h := labelled("panlearn split verify key v1")
	h.Write(k[:])
	return sum(h)
}

// Format hides the key.
func (VerifyKey) Format(f fmt.State, _ rune) { fmt.Fprint(f, "verify key") }

// MarshalText returns the placeholder of Format, for encoding/json.
func (v VerifyKey) MarshalText() ([]byte, error) { return fmt.Append(nil, v), nil }

// labelled returns a hash that has read a label of its own and no other hash here.
func labelled(label string) hash.Hash {
	h := sha256.New()
	h.Write([]byte(label))
	h.Write([]byte{0})
	return h
}

// sum returns what h has read as a Hash.
func sum(h hash.Hash) (out Hash) {
	h.Sum(out[:0])
	return out
}
