package stream_test

import (
	"math"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// kinds makes an empty message of every kind that travels.
func kinds() map[string]func() proto.Message {
	return map[string]func() proto.Message{
		"Signed":        func() proto.Message { return &wire.Signed{} },
		"StageIdentity": func() proto.Message { return &wire.StageIdentity{} },
		"Task":          func() proto.Message { return &wire.Task{} }, "Round": func() proto.Message { return &wire.Round{} },
		"Open": func() proto.Message { return &wire.Open{} }, "Claim": func() proto.Message { return &wire.Claim{} },
		"Batch": func() proto.Message { return &wire.Batch{} }, "Close": func() proto.Message { return &wire.Close{} },
		"End": func() proto.Message { return &wire.End{} }, "Report": func() proto.Message { return &wire.Report{} },
		"HelperIdentity": func() proto.Message { return &wire.HelperIdentity{} },
		"Join":           func() proto.Message { return &wire.Join{} }, "Share": func() proto.Message { return &wire.Share{} },
		"Exchange": func() proto.Message { return &wire.Exchange{} },
	}
}

func sized(t *rapid.T, n int) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes") }

func count(t *rapid.T, least, most uint64) uint64 {
	return rapid.Uint64Range(least, most).Draw(t, "count")
}

func aboveZero(t *rapid.T) float64 { return rapid.Float64Range(1e-12, 1e12).Draw(t, "positive") }

func validTrust(t *rapid.T) wire.Trust {
	return rapid.SampledFrom([]wire.Trust{wire.Trust_TRUST_SHUFFLE, wire.Trust_TRUST_PAN,
		wire.Trust_TRUST_SHUFFLE_PAN}).Draw(t, "trust")
}

func validSuite(t *rapid.T) wire.Suite {
	return wire.Suite(rapid.Int32Range(int32(wire.Suite_SUITE_NONE), int32(wire.Suite_SUITE_MLKEM768_X25519)).Draw(t,
		"suite"))
}

func validMechanism(t *rapid.T, trust wire.Trust) *wire.Mechanism {
	m := &wire.Mechanism{
		Dim: uint32(count(t, 1, 8)), ClipNorm: aboveZero(t), Levels: uint32(count(t, 1, 1<<20)), CoinBits: 24,
		Coin: uint32(count(t, 1, 1<<24-1)), MaxBundle: uint32(count(t, 1, stream.MaxBundle)),
	}
	if trust != wire.Trust_TRUST_PAN {
		m.Trials = uint32(count(t, 1, 1<<28))
	}
	if trust != wire.Trust_TRUST_SHUFFLE {
		m.FloorTrials = count(t, 1, 1<<40)
	}
	return m
}

func validSmoothing(t *rapid.T) float64 {
	return rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-9, 1e9)).Draw(t, "smoothing")
}

func validPhases(t *rapid.T, trust wire.Trust) (all []*wire.Phase) {
	for range count(t, 1, 4) {
		n := count(t, 1, 1<<30)
		rounds := count(t, 1, 1000)
		all = append(all, &wire.Phase{Users: rounds + count(t, 0, 1<<40), Rounds: rounds, Cohort: n, Minimum: count(t, 1, n),
			Mechanism: validMechanism(t, trust), RoundsPerUser: uint32(count(t, 0, 1000))})
		if last := all[len(all)-1]; rapid.Bool().Draw(t, "moments") {
			last.Statistic = wire.Statistic_STATISTIC_MOMENTS
		} else {
			last.Smoothing = validSmoothing(t)
		}
	}
	return all
}

// valid draws a message that Check accepts.
func valid(t *rapid.T, kind string) proto.Message {
	const v = stream.Version
	round, attempt, trust := count(t, 1, math.MaxUint64), count(t, 1, math.MaxUint64), validTrust(t)
	hash := func() []byte { return sized(t, stream.HashSize) }
	pair := func() (open, join []byte) { // of trust split
		if rapid.Bool().Draw(t, "split") {
			return hash(), hash()
		}
		return nil, nil
	}
	reason := rapid.StringMatching(`[a-z ]{0,64}`)
	switch kind {
	case "Signed":
		return &wire.Signed{Version: v, Kind: wire.Kind(count(t, 1, 12)), Body: sized(t, 9), Key: sized(t, 32),
			Signature: sized(t, 64)}
	case "StageIdentity":
		return &wire.StageIdentity{Version: v, Task: rapid.StringMatching(`[a-z0-9_-]{1,32}`).Draw(t, "name"),
			Key: sized(t, 32)}
	case "Task":
		return &wire.Task{Version: v, Life: sized(t, stream.LifeSize), Name: rapid.StringMatching(`[a-z0-9_-]{1,32}`).Draw(t,
			"name"), Declaration: sized(t, 5),
			Public:     rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "public"),
			LearnerKey: sized(t, 32), StageKey: sized(t, 32), Suite: validSuite(t), Plan: &wire.Plan{
				Algorithm: "psgd", Phases: validPhases(t, trust), Continuous: wire.Continuous(count(t, 0, 3)), Ridge: aboveZero(t),
				Set:   &wire.Set{Kind: "box", Max: aboveZero(t)},
				Trust: trust, HonestFraction: "4/5", Epsilon: aboveZero(t),
				Delta: aboveZero(t), EpsilonBudget: aboveZero(t), DeadlineMs: count(t, 0, 1<<40), RetentionMs: count(t, 0, 1<<40),
				StaleMs: count(t, 0, 1<<40),
			}}
	case "Round":
		return &wire.Round{Version: v, TaskHash: hash(), Round: round, Step: round,
			Point:      rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 0, 5).Draw(t, "point"),
			Frame:      &wire.Frame{Scale: rapid.SliceOfN(rapid.Float64Range(1e-12, 1e12), 0, 5).Draw(t, "scales"), Clip: 1},
			DeadlineMs: count(t, 0, math.MaxUint64)}
	case "Open":
		return &wire.Open{Version: v, TaskHash: hash(), Round: round, Attempt: attempt, ManifestHash: hash(),
			Suite:     validSuite(t),
			PublicKey: sized(t, 32), Instance: sized(t, 16), StartedUnixMs: rapid.Int64().Draw(t, "started")}
	case "Claim":
		m := &wire.Claim{Version: v, TaskHash: hash(), Round: round, Attempt: attempt, ManifestHash: hash(),
			Instance: sized(t, 16)}
		m.OpenHash, m.JoinHash = pair()
		return m
	case "Batch":
		m := &wire.Batch{Version: v, TaskHash: hash(), Round: round, Attempt: attempt, ManifestHash: hash(),
			Cutoff: count(t, 0, math.MaxUint64)}
		m.OpenHash, m.JoinHash = pair()
		if rapid.Bool().Draw(t, "void") {
			m.Void, m.Reason = true, reason.Draw(t, "reason")
		} else {
			m.Users, m.NoiseTrials = count(t, 1, 1<<40), count(t, 0, 1<<60)
			m.Totals = rapid.SliceOfN(rapid.Uint64(), 1, 9).Draw(t, "totals")
		}
		for _, r := range []string{"duplicate", "late", "length", "malformed"} {
			if n := count(t, 0, 5); n > 0 {
				m.Rejects = append(m.Rejects, &wire.Reject{Reason: r, Count: n})
			}
		}
		return m
	case "Close":
		m := &wire.Close{Version: v, TaskHash: hash(), Round: round, Attempt: attempt, ManifestHash: hash(),
			BatchHash: hash(),
			Cutoff:    count(t, 0, math.MaxUint64), Void: rapid.Bool().Draw(t, "void")}
		m.OpenHash, m.JoinHash = pair()
		return m
	case "End":
		return &wire.End{Version: v, TaskHash: hash(), LastRound: count(t, 0, 1<<40), Reason: reason.Draw(t, "reason")}
	case "Report":
		m := &wire.Report{Version: v, TaskHash: hash(), Encapsulated: sized(t, 32), Ciphertext: sized(t, 40)}
		for range count(t, 1, 5) {
			m.Ids = append(m.Ids, sized(t, 16))
		}
		if rapid.Bool().Draw(t, "split") {
			m.HelperEncapsulated, m.HelperCiphertext = sized(t, 32), sized(t, 50)
			for range m.Ids {
				m.PublicShares = append(m.PublicShares, sized(t, 64))
			}
		}
		return m
	case "HelperIdentity":
		return &wire.HelperIdentity{Version: v, Task: rapid.StringMatching(`[a-z0-9_-]{1,32}`).Draw(t, "name"),
			Key: sized(t, 32)}
	case "Join":
		return &wire.Join{Version: v, TaskHash: hash(), Round: round, Attempt: attempt, ManifestHash: hash(),
			OpenHash: hash(), Suite: wire.Suite(count(t, 2, 3)), PublicKey: sized(t, 32), Instance: sized(t, 16),
			VerifyKeyHash: hash(), KeyEncapsulated: sized(t, 32), KeyCiphertext: sized(t, 48),
			StartedUnixMs: rapid.Int64().Draw(t, "started")}
	case "Share":
		m := &wire.Share{Version: v, TaskHash: hash(), Round: round, Attempt: attempt, OpenHash: hash(), JoinHash: hash(),
			Chain: hash()}
		if rapid.Bool().Draw(t, "refusal") {
			m.Refusal = "marked"
		} else {
			m.Users, m.Requests, m.Aggregate = count(t, 1, 1<<40), count(t, 1, 1<<40), sized(t, 48)
		}
		return m
	case "Exchange":
		m := &wire.Exchange{Version: v, Verb: wire.Verb(count(t, 1, 7)), TaskHash: hash(), Round: round, Attempt: attempt,
			OpenHash: hash(), JoinHash: hash()}
		if m.Verb <= wire.Verb_VERB_REPLY {
			m.Number, m.Encapsulated, m.Ciphertext = count(t, 1, 1<<40), sized(t, 32), sized(t, 40)
		} else {
			m.Plain = sized(t, 20)
		}
		return m
	}
	panic(kind)
}
