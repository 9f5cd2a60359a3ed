package splitwire

import (
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// named is a message of the wire that names an attempt of two operators.
type named interface {
	GetTaskHash() []byte
	GetRound() uint64
	GetAttempt() uint64
	GetOpenHash() []byte
	GetJoinHash() []byte
}

// AttemptOf returns the attempt that a valid Share, Exchange, Claim, Batch or Close names.
func AttemptOf(m named) split.Attempt {
	return split.Attempt{Task: split.Hash(m.GetTaskHash()), Round: m.GetRound(), Number: m.GetAttempt(),
		Open: split.Hash(m.GetOpenHash()), Join: split.Hash(m.GetJoinHash())}
}

// ContextOf returns the context to which reports of an attempt are sealed.
func ContextOf(x split.Attempt, manifest stream.Hash) seal.SharedContext {
	return seal.SharedContext{ManifestHash: manifest, TaskHash: x.Task, Open: x.Open, Join: x.Join}
}

// ConfigOf returns the configuration of an attempt, the same at leader and helper: from the round's own mixer, the hash
// of its manifest, the verify key, and the largest message in bytes that the broker takes, 0 for any.
func ConfigOf(m shuffle.Config, x split.Attempt, manifest stream.Hash, key split.VerifyKey, maxPayload int) split.Config {
	c := split.Config{X: x, Params: m.Params, Context: ContextOf(x, manifest).Prio3(), Key: key, Cohort: m.Cohort,
		Minimum: m.Minimum, MaxBundle: m.MaxBundle}
	if half := maxPayload / 2; maxPayload > 0 && half < split.MaxRequestBytes {
		c.MaxRequest = half
	}
	return c
}

// UsersOf returns the users of a report, with their public shares, and no prep shares.
func UsersOf(r *wire.Report) []split.User {
	users := make([]split.User, len(r.Ids))
	for i, id := range r.Ids {
		users[i] = split.User{ID: shuffle.ReportID(id), Public: r.PublicShares[i]}
	}
	return users
}

// OpenerOf returns a split.Opener of one party's part of a report, with the key that the party drew for the attempt.
// The users' input shares follow one another, all of one length.
func OpenerOf(k *seal.RoundKey, c seal.SharedContext, p seal.Party) split.Opener {
	return OpenerWith(k, c, p, 0, func([]byte, int) []bool { return nil })
}

// OpenerWith is OpenerOf of plaintexts that have so many more bytes of each user behind all shares. admits is given these
// bytes of all users, and returns which users are admitted; nil: all.
func OpenerWith(k *seal.RoundKey, c seal.SharedContext, p seal.Party, more int, admits func(data []byte, users int) []bool,
) split.Opener {
	return func(sealed []byte, users []split.User) ([][]byte, error) {
		plaintext, err := k.OpenShares(c, p, sealed, split.AssociatedData(users))
		if err != nil {
			return nil, err
		}
		shares := make([][]byte, len(users))
		if len(users) == 0 || len(plaintext)%len(users) != 0 || len(plaintext)/len(users) < more {
			for i := range shares {
				shares[i] = []byte{} // it opened, so that its ids are spent, and has no share of anybody
			}
			return shares, nil
		}
		size := len(plaintext)/len(users) - more
		admitted := admits(plaintext[size*len(users):], len(users))
		for i := range shares {
			if admitted != nil && !admitted[i] {
				clear(plaintext[i*size : (i+1)*size])
				continue
			}
			shares[i] = plaintext[i*size : (i+1)*size : (i+1)*size]
		}
		return shares, nil
	}
}
