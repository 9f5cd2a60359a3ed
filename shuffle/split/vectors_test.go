package split

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
)

// vectorFile is docs/vectors/split.json: one attempt from secrets to totals. A change of Prio3, of the generator that
// feeds it, or of one hash changes it.
const vectorFile = "../../docs/vectors/split.json"

// A vectorUser is one user of a vector: what the device draws and makes, and what the two make of it.
type vectorUser struct {
	Draw    string   `json:"draw_secret"`
	Fresh   string   `json:"fresh"`
	Counts  []uint32 `json:"counts"`
	ID      string   `json:"id"`
	Public  string   `json:"public_share"`
	Leader  string   `json:"leader_share"`
	Helper  string   `json:"helper_share"`
	Prep    string   `json:"leader_prep_share"`
	Message string   `json:"prep_message"`
}

// A splitVector is one attempt. In its request a SHA-256 of role, associated data and shares, and the shares, replace a
// ciphertext.
type splitVector struct {
	Name       string       `json:"name"`
	Prio3      string       `json:"prio3"`
	Dim        int          `json:"dim"`
	Bits       int          `json:"bits"`
	Chunk      uint         `json:"chunk"`
	Sizes      [6]int       `json:"bytes_public_leader_helper_prep_message_aggregate"`
	Context    string       `json:"context"`
	Task       string       `json:"task"`
	Round      uint64       `json:"round"`
	Number     uint64       `json:"attempt"`
	Open       string       `json:"open"`
	Join       string       `json:"join"`
	Key        string       `json:"verify_key"`
	KeyHash    string       `json:"verify_key_hash"`
	Users      []vectorUser `json:"users"`
	Data       string       `json:"associated_data"`
	Request    string       `json:"request"`
	Digest     string       `json:"request_digest"`
	FirstChain string       `json:"chain_0"`
	Chain      string       `json:"chain_1"`
	Floors     uint64       `json:"floor_trials"`
	Entropy    [2]string    `json:"floor_fresh_and_secret"`
	Seeds      [2]string    `json:"floor_seeds"`
	Aggregates [2]string    `json:"floored_aggregate_shares"`
	Totals     []uint64     `json:"totals"`
}

// splitVectors makes every vector from seeds.
func splitVectors(t *testing.T) (all []splitVector) {
	for seed, c := range []struct {
		name      string
		dim, bits int
	}{{"one coordinate of one bit", 1, 1}, {"three coordinates of two bits", 3, 2}, {"seven coordinates of five bits", 7, 5}} {
		cfg := config(c.dim, c.bits, 4)
		cfg.Key = VerifyKey(slices.Repeat([]byte{byte(seed + 1)}, 32))
		w := newWorld(t, cfg, uint64(seed))
		v := splitVector{Name: c.name, Prio3: "draft-14", Dim: c.dim, Bits: c.bits, Chunk: cfg.sharing().chunk(),
			Context: hex.EncodeToString(cfg.Context[:]), Task: hex.EncodeToString(cfg.X.Task[:]), Round: cfg.X.Round,
			Number: cfg.X.Number, Open: hex.EncodeToString(cfg.X.Open[:]), Join: hex.EncodeToString(cfg.X.Join[:]),
			Key: hex.EncodeToString(cfg.Key[:]), Floors: cfg.Params.FloorTrials}
		hash := cfg.Key.Hash()
		v.KeyHash = hex.EncodeToString(hash[:])
		sizes, err := Sizes(c.dim, c.bits)
		w.must(err)
		v.Sizes = [6]int{sizes.Public, sizes.Leader, sizes.Helper, sizes.Prep, len(PrepMessage{}), sizes.Aggregate}
		var m message
		var parts [2][][]byte
		for range 2 {
			counts, draw, fresh := w.counts(), w.bytes32(), w.bytes32()
			id := ID(draw, cfg.X.Open, cfg.X.Join)
			s, err := w.devices.Shard(counts, id, fresh)
			w.must(err)
			v.Users = append(v.Users, vectorUser{Draw: hex.EncodeToString(draw[:]), Fresh: hex.EncodeToString(fresh[:]),
				Counts: counts, ID: hex.EncodeToString(id[:]), Public: hex.EncodeToString(s.Public),
				Leader: hex.EncodeToString(s.Leader), Helper: hex.EncodeToString(s.Helper)})
			m.users = append(m.users, User{ID: id, Public: s.Public})
			parts[leader], parts[helper] = append(parts[leader], s.Leader), append(parts[helper], s.Helper)
			for what, b := range map[string][2]int{"public": {len(s.Public), sizes.Public},
				"leader": {len(s.Leader), sizes.Leader}, "helper": {len(s.Helper), sizes.Helper}} {
				if b[0] != b[1] {
					t.Errorf("%s: %s share of %d bytes, Sizes has %d", c.name, what, b[0], b[1])
				}
			}
		}
		m.seal(parts)
		v.Data = hex.EncodeToString(AssociatedData(m.users))
		w.give(m)
		r, _ := w.leader.Cut()
		digest, first := r.digest(), firstChain(cfg.X)
		v.Request, v.Digest = hex.EncodeToString(r.Append(nil)), hex.EncodeToString(digest[:])
		v.FirstChain = hex.EncodeToString(first[:])
		reply := w.decide(r)
		v.Chain = hex.EncodeToString(reply.Chain[:])
		for i := range v.Users {
			v.Users[i].Prep = hex.EncodeToString(r.Bundles[0].Users[i].Prep)
			v.Users[i].Message = hex.EncodeToString(reply.Messages[i][:])
			if len(r.Bundles[0].Users[i].Prep) != sizes.Prep {
				t.Errorf("%s: a prep share of %d bytes, Sizes has %d", c.name, len(r.Bundles[0].Users[i].Prep), sizes.Prep)
			}
		}
		_, err = w.leader.Handle(reply)
		w.must(err)
		e := [2]Entropy{{Fresh: w.bytes32(), Secret: w.bytes32()}, {Fresh: w.bytes32(), Secret: w.bytes32()}}
		p, err := w.leader.Prepare(e[leader], Note{})
		w.must(err)
		a := w.desk.Finish(p.Finish, e[helper])
		for role := range e {
			v.Entropy[role] = hex.EncodeToString(append(e[role].Fresh[:], e[role].Secret[:]...))
			s := floorSeed(e[role], byte(role), p.Finish)
			v.Seeds[role] = hex.EncodeToString(s[:])
		}
		v.Aggregates = [2]string{hex.EncodeToString(p.Aggregate), hex.EncodeToString(a.Commit.Aggregate)}
		if len(p.Aggregate) != sizes.Aggregate {
			t.Errorf("%s: an aggregate share of %d bytes, Sizes has %d", c.name, len(p.Aggregate), sizes.Aggregate)
		}
		release, err := combine(cfg.Params, p, *a.Commit)
		w.must(err)
		v.Totals = release.Totals
		all = append(all, v)
	}
	return all
}

// What is made from fixed secrets stays the same byte for byte, and has the lengths that Sizes tells the planner.
func TestSplitVectors(t *testing.T) { golden.JSON(t, vectorFile, splitVectors(t), 0) }
