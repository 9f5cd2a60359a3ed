package seal_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"testing"
	"testing/cryptotest"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

const sharesFile = "../../docs/vectors/shares.json"

// sharesVector is a report for two operators, and what its two parts open to, or that they must not: an empty part does
// not open. The shares are bytes of no meaning; split.json has real ones.
type sharesVector struct {
	Name       string `json:"name"`
	Suite      int32  `json:"suite"`
	Private    hexed  `json:"leader_private_key"`
	Private2   hexed  `json:"helper_private_key"`
	Public     hexed  `json:"leader_public_key"`
	Public2    hexed  `json:"helper_public_key"`
	Manifest   hexed  `json:"manifest_hash"`
	Task       hexed  `json:"task_hash"`
	Open       hexed  `json:"open_hash"`
	Join       hexed  `json:"join_hash"`
	Info       hexed  `json:"leader_info"`
	Info2      hexed  `json:"helper_info"`
	Prio3      hexed  `json:"prio3_context"`
	Associated hexed  `json:"associated_data"`
	Report     hexed  `json:"report"`
	Shares     hexed  `json:"leader_shares,omitempty"`
	Shares2    hexed  `json:"helper_shares,omitempty"`
}

func (v *sharesVector) context() seal.SharedContext {
	return seal.SharedContext{ManifestHash: stream.Hash(v.Manifest), TaskHash: stream.Hash(v.Task), Open: stream.Hash(v.Open),
		Join: stream.Hash(v.Join)}
}

// associatedOf returns the associated data of a report, as docs/reference/layouts.md has it.
func associatedOf(r *wire.Report) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(r.Ids)))
	for _, id := range r.Ids {
		out = append(out, id...)
	}
	for _, p := range r.PublicShares {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(p))), p...)
	}
	return out
}

// check compares a vector with what this package makes of it.
func (v *sharesVector) check(t *testing.T) {
	t.Helper()
	var keys [2]*seal.RoundKey
	for i, private := range [][]byte{v.Private, v.Private2} {
		var err error
		if keys[i], err = seal.RoundKeyForTest(wire.Suite(v.Suite), private); err != nil {
			t.Fatal(err)
		}
	}
	c, prio3 := v.context(), v.context().Prio3()
	for what, pair := range map[string][2][]byte{"leader's public key": {keys[0].Public(), v.Public},
		"helper's public key": {keys[1].Public(), v.Public2}, "leader's info": {c.Info(seal.Leader), v.Info},
		"helper's info": {c.Info(seal.Helper), v.Info2}, "context of Prio3": {prio3[:], v.Prio3}} {
		if !bytes.Equal(pair[0], pair[1]) {
			t.Errorf("%s: the %s is %x", v.Name, what, pair[0])
		}
	}
	var r wire.Report
	if err := stream.Unmarshal(v.Report, &r); err != nil {
		if len(v.Shares)+len(v.Shares2) > 0 {
			t.Errorf("%s: %v", v.Name, err)
		}
		return
	}
	if got := associatedOf(&r); !bytes.Equal(got, v.Associated) {
		t.Errorf("%s: associated data %x", v.Name, got)
	}
	for party, want := range map[seal.Party]hexed{seal.Leader: v.Shares, seal.Helper: v.Shares2} {
		got, err := keys[party].OpenShares(c, party, party.Sealed(&r), v.Associated)
		if (err == nil) != (len(want) > 0) || !bytes.Equal(got, want) {
			t.Errorf("%s: part %d opens to %x, %v", v.Name, party, got, err)
		}
	}
}

// TestSharesVectors: what another implementation sealed for two operators opens here, each part at its own party and
// under its own attempt alone.
func TestSharesVectors(t *testing.T) {
	if *update {
		data, err := json.MarshalIndent(makeShares(t), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sharesFile, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(sharesFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []sharesVector
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		v.check(t)
	}
	if len(all) < 10 {
		t.Errorf("%d reports: vectors are missing", len(all))
	}
}

func makeShares(t *testing.T) (all []sharesVector) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const suite = wire.Suite_SUITE_MLKEM768_X25519
	v := sharesVector{Suite: int32(suite), Private: bytes.Repeat([]byte{1}, 32), Private2: bytes.Repeat([]byte{2}, 32)}
	for i, of := range []*hexed{&v.Manifest, &v.Task, &v.Open, &v.Join} {
		*of = bytes.Repeat([]byte{byte(3 + i)}, 32)
	}
	leader, err := seal.RoundKeyForTest(suite, v.Private)
	must(err)
	helper, err := seal.RoundKeyForTest(suite, v.Private2)
	must(err)
	c, prio3 := v.context(), v.context().Prio3()
	v.Public, v.Public2 = leader.Public(), helper.Public()
	v.Info, v.Info2, v.Prio3 = c.Info(seal.Leader), c.Info(seal.Helper), prio3[:]
	add := func(name string, c seal.SharedContext, r *wire.Report, shares, shares2 []byte) {
		one := v
		one.Name, one.Shares, one.Shares2, one.Associated = name, shares, shares2, associatedOf(r)
		one.Manifest, one.Task, one.Open, one.Join = c.ManifestHash[:], c.TaskHash[:], c.Open[:], c.Join[:]
		prio3 := c.Prio3()
		one.Info, one.Info2, one.Prio3 = c.Info(seal.Leader), c.Info(seal.Helper), prio3[:]
		one.Report, err = proto.MarshalOptions{Deterministic: true}.Marshal(r)
		must(err)
		all = append(all, one)
	}
	var two *wire.Report
	const leaderShares, helperShares = "leader's shares", "helper's shares"
	for n := 1; n <= 2; n++ {
		cryptotest.SetGlobalRandom(t, uint64(n))
		in := seal.SharedReport{Leader: []byte(leaderShares), Helper: []byte(helperShares)}
		for i := range n {
			in.IDs = append(in.IDs, [16]byte{byte(n), byte(i + 1)})
			in.Public = append(in.Public, bytes.Repeat([]byte{byte(0x10*n + i)}, 64))
		}
		r := &wire.Report{PublicShares: in.Public}
		for _, id := range in.IDs {
			r.Ids = append(r.Ids, id[:])
		}
		in.Associated = associatedOf(r)
		two, err = seal.SealShares(suite, c, seal.SharedKeys{Leader: leader.Public(), Helper: helper.Public()}, in)
		must(err)
		add(map[int]string{1: "one user", 2: "a bundle of two"}[n], c, two, in.Leader, in.Helper)
	}
	changed := func(name string, change func(*seal.SharedContext, *wire.Report)) {
		other, r := c, proto.CloneOf(two)
		change(&other, r)
		add(name, other, r, nil, nil)
	}
	changed("another round's manifest", func(c *seal.SharedContext, _ *wire.Report) { c.ManifestHash[0] ^= 1 })
	changed("another task", func(c *seal.SharedContext, _ *wire.Report) { c.TaskHash[0] ^= 1 })
	changed("another Open", func(c *seal.SharedContext, _ *wire.Report) { c.Open[0] ^= 1 })
	changed("another Join", func(c *seal.SharedContext, _ *wire.Report) { c.Join[0] ^= 1 })
	changed("Open and Join in each other's place", func(c *seal.SharedContext, _ *wire.Report) { c.Open, c.Join = c.Join, c.Open })
	changed("ids in another order", func(_ *seal.SharedContext, r *wire.Report) { r.Ids[0], r.Ids[1] = r.Ids[1], r.Ids[0] })
	changed("another id", func(_ *seal.SharedContext, r *wire.Report) { r.Ids[1][15] ^= 1 })
	changed("public shares in another order", func(_ *seal.SharedContext, r *wire.Report) {
		r.PublicShares[0], r.PublicShares[1] = r.PublicShares[1], r.PublicShares[0]
	})
	changed("a public share that is changed", func(_ *seal.SharedContext, r *wire.Report) { r.PublicShares[1][63] ^= 1 })
	changed("one user less", func(_ *seal.SharedContext, r *wire.Report) { r.Ids, r.PublicShares = r.Ids[:1], r.PublicShares[:1] })
	changed("the parts in each other's place", func(_ *seal.SharedContext, r *wire.Report) {
		r.Encapsulated, r.HelperEncapsulated = r.HelperEncapsulated, r.Encapsulated
		r.Ciphertext, r.HelperCiphertext = r.HelperCiphertext, r.Ciphertext
	})
	changed("both parts changed", func(_ *seal.SharedContext, r *wire.Report) {
		r.Ciphertext[0] ^= 1
		r.HelperCiphertext[0] ^= 1
	})
	return all
}
