package seal_test

import (
	"bytes"
	"cmp"
	"crypto/ecdh"
	"crypto/mlkem"
	"crypto/mlkem/mlkemtest"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"testing"
	"testing/cryptotest"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

var update = flag.Bool("update", false, "write the files in docs/vectors again")

const vectorFile = "../../docs/vectors/seal.json"

// hexed is bytes as hexadecimal text.
type hexed []byte

func (h hexed) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

func (h *hexed) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// reportVector is a sealed report and what it must open to, or that it must not. Where it opens, the entropy of its
// encapsulation is there too, so that an implementation that takes its own can make the same bytes.
type reportVector struct {
	Name       string `json:"name"`
	Suite      int32  `json:"suite"`
	PrivateKey hexed  `json:"private_key"`
	PublicKey  hexed  `json:"public_key"`
	Manifest   hexed  `json:"manifest_hash"`
	Attempt    uint64 `json:"attempt"`
	StageKey   hexed  `json:"stage_key"`
	Info       hexed  `json:"info"`
	Associated hexed  `json:"associated_data,omitempty"`
	// Ephemeral is the X25519 private key of the encapsulation, Message the 32 bytes m of ML-KEM (FIPS 203, algorithm
	// 17).
	Ephemeral   hexed `json:"ephemeral_private_key,omitempty"`
	Message     hexed `json:"encapsulation_message,omitempty"`
	Report      hexed `json:"report"`
	Plaintext   hexed `json:"plaintext,omitempty"`
	MustNotOpen bool  `json:"must_not_open,omitempty"`
}

// signedVector is an envelope and what it must verify as, or that it must not.
type signedVector struct {
	Name          string `json:"name"`
	Kind          string `json:"kind"`
	Pinned        hexed  `json:"pinned_key"`
	Signed        hexed  `json:"signed"`
	Body          hexed  `json:"body,omitempty"`
	MustNotVerify bool   `json:"must_not_verify,omitempty"`
}

type vectors struct {
	Reports []reportVector `json:"reports"`
	Signed  []signedVector `json:"signed"`
}

func (v *reportVector) context() seal.Context {
	return seal.Context{ManifestHash: stream.Hash(v.Manifest), Attempt: v.Attempt, StageKey: []byte(v.StageKey),
		Public: v.PublicKey}
}

// TestVectors: what another implementation sent must open here, and what it must refuse is refused.
func TestVectors(t *testing.T) {
	if *update {
		data, err := json.MarshalIndent(makeVectors(t), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(vectorFile, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for _, v := range v.Reports {
		k, err := seal.RoundKeyForTest(wire.Suite(v.Suite), v.PrivateKey)
		if err != nil || !bytes.Equal(k.Public(), v.PublicKey) {
			t.Fatalf("%s: public key %x, %v", v.Name, k.Public(), err)
		}
		if got := v.context().Info(); !bytes.Equal(got, v.Info) {
			t.Errorf("%s: info %x", v.Name, got)
		}
		var r wire.Report
		err = stream.Unmarshal(v.Report, &r)
		var got []byte
		if err == nil {
			got, err = k.Open(v.context(), &r)
		}
		if (err != nil) != v.MustNotOpen || !bytes.Equal(got, v.Plaintext) {
			t.Errorf("%s: %x, %v", v.Name, got, err)
		}
		v.checkEntropy(t, &r)
	}
	empty := map[string]proto.Message{}
	for kind, m := range signable(make([]byte, 32)) {
		empty[kind.String()] = m.ProtoReflect().New().Interface()
	}
	for _, v := range v.Signed {
		body, err := seal.Verify(v.Signed, []byte(v.Pinned), empty[v.Kind])
		if (err != nil) != v.MustNotVerify {
			t.Errorf("%s: %v", v.Name, err)
		}
		if !v.MustNotVerify && !bytes.Equal(body, v.Body) {
			t.Errorf("%s: body %x", v.Name, body)
		}
	}
	if len(v.Reports) < 20 || len(v.Signed) < 20 {
		t.Errorf("%d reports and %d signed messages: vectors are missing", len(v.Reports), len(v.Signed))
	}
}

// findEntropy finds what a report was sealed with in the stream of the seed.
func (v *reportVector) findEntropy(t *testing.T, r *wire.Report, seed uint64) {
	if len(r.Encapsulated) == 0 {
		return
	}
	v.Associated = seal.AssociatedForTest(r.Ids)
	cryptotest.SetGlobalRandom(t, seed)
	drawn := make([]byte, 256)
	if _, err := rand.Read(drawn); err != nil {
		t.Fatal(err)
	}
	for at := range len(drawn) - 32 {
		v.Ephemeral = drawn[at : at+32]
		for to := range len(drawn) - 32 {
			if wire.Suite(v.Suite) == wire.Suite_SUITE_MLKEM768_X25519 {
				v.Message = drawn[to : to+32]
			}
			enc := v.encapsulate(t)
			if bytes.Equal(enc, r.Encapsulated) {
				return
			}
			if !bytes.Equal(enc[len(enc)-32:], r.Encapsulated[len(r.Encapsulated)-32:]) || len(v.Message) == 0 {
				break
			}
		}
	}
	t.Fatalf("%s: Go draws its entropy in another way", v.Name)
}

// encapsulate returns the encapsulation that the vector's entropy gives: of X25519 the ephemeral public key, before it
// in the hybrid the ciphertext of ML-KEM-768.
func (v *reportVector) encapsulate(t *testing.T) (enc []byte) {
	t.Helper()
	if len(v.Message) > 0 {
		key, err := mlkem.NewEncapsulationKey768(v.PublicKey[:mlkem.EncapsulationKeySize768])
		if err != nil {
			t.Fatal(err)
		}
		if _, enc, err = mlkemtest.Encapsulate768(key, v.Message); err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdh.X25519().NewPrivateKey(v.Ephemeral)
	if err != nil {
		t.Fatal(err)
	}
	return append(enc, key.PublicKey().Bytes()...)
}

// checkEntropy checks that the entropy gives the encapsulation. Key, nonce, info and associated data are functions of
// it, and the report opens: so its bytes are the only ones that the entropy can give.
func (v *reportVector) checkEntropy(t *testing.T, r *wire.Report) {
	t.Helper()
	if v.MustNotOpen || len(r.Encapsulated) == 0 {
		return
	}
	if got := v.encapsulate(t); !bytes.Equal(got, r.Encapsulated) {
		t.Errorf("%s: the entropy gives the encapsulation %x", v.Name, got)
	}
	if got := seal.AssociatedForTest(r.Ids); !bytes.Equal(got, v.Associated) {
		t.Errorf("%s: associated data %x", v.Name, got)
	}
}

func makeVectors(t *testing.T) vectors {
	var all vectors
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, suite := range suites() {
		seed := uint64(3 * i)
		cryptotest.SetGlobalRandom(t, seed) // the same vectors again, as long as Go draws in the same order
		k, c := attempt(t, suite)
		private, err := seal.RoundKeyBytesForTest(k)
		must(err)
		add := func(name string, c seal.Context, r *wire.Report, plaintext []byte) {
			data, err := stream.Marshal(r)
			must(err)
			all.Reports = append(all.Reports, reportVector{Name: suite.String() + ": " + name, Suite: int32(suite),
				PrivateKey: private,
				PublicKey:  k.Public(), Manifest: c.ManifestHash[:], Attempt: c.Attempt, StageKey: hexed(c.StageKey),
				Info: c.Info(), Report: data, Plaintext: plaintext, MustNotOpen: plaintext == nil})
		}
		cryptotest.SetGlobalRandom(t, seed+1)
		one, err := seal.Seal(suite, c, stream.Hash{9}, [][16]byte{{1, 2, 3}}, []byte("counts of one"))
		must(err)
		add("one user", c, one, []byte("counts of one"))
		all.Reports[len(all.Reports)-1].findEntropy(t, one, seed+1)
		cryptotest.SetGlobalRandom(t, seed+2)
		three, err := seal.Seal(suite, c, stream.Hash{9}, [][16]byte{{1}, {2}, {3}}, []byte("counts of three"))
		must(err)
		add("a bundle of three", c, three, []byte("counts of three"))
		all.Reports[len(all.Reports)-1].findEntropy(t, three, seed+2)
		if suite == wire.Suite_SUITE_NONE {
			continue // nothing is authenticated
		}
		for name, change := range map[string]func(*seal.Context, *wire.Report){
			"old attempt":           func(c *seal.Context, _ *wire.Report) { c.Attempt-- },
			"another manifest":      func(c *seal.Context, _ *wire.Report) { c.ManifestHash[0] ^= 1 },
			"another stage":         func(c *seal.Context, _ *wire.Report) { c.StageKey = bytes.Repeat([]byte{8}, 32) },
			"replay under new id":   func(_ *seal.Context, r *wire.Report) { r.Ids[0] = bytes.Repeat([]byte{4}, 16) },
			"id repeated":           func(_ *seal.Context, r *wire.Report) { r.Ids = append(r.Ids, r.Ids[0]) },
			"changed ciphertext":    func(_ *seal.Context, r *wire.Report) { r.Ciphertext[3] ^= 0x80 },
			"changed encapsulation": func(_ *seal.Context, r *wire.Report) { r.Encapsulated[3] ^= 0x80 },
			"zero encapsulation":    func(_ *seal.Context, r *wire.Report) { clear(r.Encapsulated) },
			"cut":                   func(_ *seal.Context, r *wire.Report) { r.Ciphertext = r.Ciphertext[:len(r.Ciphertext)-1] },
			"empty":                 func(_ *seal.Context, r *wire.Report) { r.Ciphertext = r.Ciphertext[:16] },
			"another version":       func(_ *seal.Context, r *wire.Report) { r.Version = 2 },
		} {
			other, r := c, proto.Clone(one).(*wire.Report)
			change(&other, r)
			add(name, other, r, nil)
		}
	}
	all.Signed = makeSigned(t)
	slices.SortFunc(all.Reports, func(a, b reportVector) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(all.Signed, func(a, b signedVector) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func makeSigned(t *testing.T) (all []signedVector) {
	id := seal.FixedIdentityForTest(bytes.Repeat([]byte{1}, 32))
	other := seal.FixedIdentityForTest(bytes.Repeat([]byte{2}, 32))
	for kind, m := range signable(id.Public()) {
		signed, err := id.Sign(m)
		body, bodyErr := stream.Marshal(m)
		if err := errors.Join(err, bodyErr); err != nil {
			t.Fatal(err)
		}
		add := func(name string, pinned hexed, signed []byte, ok bool) {
			v := signedVector{Name: kind.String() + ": " + name, Kind: kind.String(), Pinned: pinned, Signed: signed,
				MustNotVerify: !ok}
			if ok {
				v.Body = body
			}
			all = append(all, v)
		}
		change := func(f func(*wire.Signed)) []byte {
			var s wire.Signed
			if err := stream.Unmarshal(signed, &s); err != nil {
				t.Fatal(err)
			}
			f(&s)
			data, err := stream.Marshal(&s)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		add("good", hexed(id.Public()), signed, true)
		add("another pinned key", hexed(other.Public()), signed, false)
		add("changed signature", hexed(id.Public()), change(func(s *wire.Signed) { s.Signature[0] ^= 1 }), false)
		add("signature with s + group order", hexed(id.Public()), change(func(s *wire.Signed) { addOrder(s.Signature[32:]) }),
			false)
		add("changed body", hexed(id.Public()), change(func(s *wire.Signed) { s.Body[len(s.Body)-1] ^= 1 }), false)
		add("another version", hexed(id.Public()), change(func(s *wire.Signed) { s.Version = 2 }), false)
		add("unknown field", hexed(id.Public()), append(bytes.Clone(signed), 0x30, 0x01), false)
		add("field repeated", hexed(id.Public()), append(bytes.Clone(signed), signed[:2]...), false)
		add("cut", hexed(id.Public()), signed[:len(signed)-1], false)
	}
	return all
}

// addOrder adds the order of the group to a scalar, little endian: the same signature to a careless verifier.
func addOrder(s []byte) {
	order, _ := hex.DecodeString("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	carry := 0
	for i := range s {
		sum := int(s[i]) + int(order[i]) + carry
		s[i], carry = byte(sum), sum>>8
	}
}
