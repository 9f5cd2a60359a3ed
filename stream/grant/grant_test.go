package grant

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/panlearn/panlearn/stream"
)

// signerOf returns the signer of docs/vectors/grants.json, so that tests need not search for primes.
func signerOf(t testing.TB) *Signer {
	t.Helper()
	var file struct {
		Private string `json:"private_key"`
	}
	data, err := os.ReadFile(vectorsFile)
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	der, err := hex.DecodeString(file.Private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSigner(key.(*rsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tokensOf(t testing.TB, spki []byte, task stream.Hash) *Task {
	t.Helper()
	out, err := Of(spki, task)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTokenOfTheRFC: the first vector of RFC 9578, appendix B.2, verifies, and its request is read.
func TestTokenOfTheRFC(t *testing.T) {
	var v struct {
		Key       string `json:"pkS"`
		Challenge string `json:"token_challenge"`
		Request   string `json:"token_request"`
		Token     string `json:"token"`
	}
	data, err := os.ReadFile("testdata/rfc9578.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	of := func(text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	task, token := tokensOf(t, of(v.Key), stream.Hash{}), of(v.Token)
	challenge, id := sha256.Sum256(of(v.Challenge)), KeyID(of(v.Key))
	task.rest = append(challenge[:], id[:]...)
	nonce := [NonceSize]byte(token[2:])
	if input := task.Input(nonce); !bytes.Equal(input, token[:len(input)]) {
		t.Errorf("token input %x", input)
	}
	sent := append(nonce[:], token[len(token)-SignatureSize:]...)
	if _, err := task.Verify(sent); err != nil {
		t.Error(err)
	}
	sent[NonceSize+9] ^= 1
	if _, err := task.Verify(sent); err == nil {
		t.Error("a changed signature verifies")
	}
	if _, err := ParseRequest(of(v.Request), id); err != nil {
		t.Error(err)
	}
}

// TestIssuance: a device's request is signed, finished and verified; the message follows from the stored request alone,
// and holds nothing that two devices share.
func TestIssuance(t *testing.T) {
	s := signerOf(t)
	task := tokensOf(t, s.Public(), stream.Hash{1})
	r := NewRequest()
	one, err := task.Blind(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := task.Blind(r)
	if err != nil || !bytes.Equal(one.Message(), again.Message()) {
		t.Fatalf("a request was blinded in two ways: %v", err)
	}
	blinded, err := ParseRequest(one.Message(), KeyID(s.Public()))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Sign(blinded)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := s.Sign(blinded); !bytes.Equal(answer, second) {
		t.Error("one message was signed in two ways")
	}
	token, err := again.Finish(answer) // after a restart
	if err != nil {
		t.Fatal(err)
	}
	hash, err := task.Verify(token)
	if err != nil || hash != task.Spent(r.Nonce) {
		t.Fatalf("%v, %x", err, hash)
	}
	if bytes.Contains(one.Message(), token[:NonceSize]) || bytes.Contains(answer, token[NonceSize:NonceSize+16]) {
		t.Error("the issuer sees a part of the token")
	}
	answer[5] ^= 1
	if _, err := one.Finish(answer); err == nil {
		t.Error("a wrong answer is finished")
	}
}

// TestTokensOfAnotherTask: a token of one task is refused in another, also where both have one key, and also where the
// message was blinded for the one with the entitlement of the other: then the other key signed it.
func TestTokensOfAnotherTask(t *testing.T) {
	s := signerOf(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	one, two := tokensOf(t, s.Public(), stream.Hash{1}), tokensOf(t, s.Public(), stream.Hash{2})
	b, err := one.Blind(NewRequest())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Sign(b.message)
	if err != nil {
		t.Fatal(err)
	}
	token, err := b.Finish(answer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Verify(token); err == nil {
		t.Error("a token of another task hash verifies")
	}
	// The person of task 3, whose key is other's, has a token of task 1 signed there.
	forged, err := other.Sign(b.message)
	if err != nil { // one of two messages is above the other's modulus
		return
	}
	if _, err := b.Finish(forged); err == nil {
		t.Error("an entitlement in another task makes a token of this one")
	}
}

// TestKeysHaveOneEncoding: no other bytes are a key, whatever decodes.
func TestKeysHaveOneEncoding(t *testing.T) {
	spki := signerOf(t).Public()
	plain, err := plainKey(spki)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParsePKIXPublicKey(plain); err != nil {
		t.Error(err)
	}
	even := bytes.Clone(spki)
	even[keySize-len(keyEnds)-1] &^= 1
	small := bytes.Clone(spki)
	small[len(keyBegins)] &= 0x7f
	for name, bad := range map[string][]byte{"empty": nil, "rsaEncryption": plain, "even": even, "small": small,
		"longer": append(bytes.Clone(spki), 0), "exponent": append(bytes.Clone(spki[:keySize-1]), 3)} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("%s: is read", name)
		}
	}
}

// TestLists: lists read back, and nothing else does.
func TestLists(t *testing.T) {
	before := First(stream.Hash{1})
	for _, n := range []int{0, 1, 2, ListHashes, ListHashes + 1} {
		spent := make([]Hash, n)
		for i := range spent {
			spent[i] = Hash{byte(i >> 16), byte(i >> 8), byte(i)}
		}
		lists := Lists(before, 7, spent)
		if uint64(len(lists)) != Parts(uint64(n)) {
			t.Fatalf("%d hashes in %d lists", n, len(lists))
		}
		var got []Hash
		for i, data := range lists {
			l, err := ParseList(data, uint64(i+1))
			if err != nil || l.Before != before || l.Step != 7 || l.Spent != uint64(n) {
				t.Fatalf("list %d of %d hashes: %v", i+1, n, err)
			}
			got = append(got, l.Hashes...)
			if _, err := ParseList(data[:len(data)-1], uint64(i+1)); err == nil {
				t.Error("a short list is read")
			}
			if _, err := ParseList(data, uint64(i+2)); err == nil {
				t.Error("a list is read as the next one")
			}
		}
		all := Next(before, 3, 2, spent)
		if Next(before, 3, 2, got) != all || Next(before, 4, 2, spent) == all || Next(before, 3, 1, spent) == all {
			t.Error("the chain does not follow from round and hashes")
		}
	}
	twice := Lists(before, 1, []Hash{{2}, {2}})[0]
	if _, err := ParseList(twice, 1); err == nil {
		t.Error("a list with a hash twice is read")
	}
}

func BenchmarkVerify(b *testing.B) {
	s := signerOf(b)
	task := tokensOf(b, s.Public(), stream.Hash{1})
	one, err := task.Blind(NewRequest())
	if err != nil {
		b.Fatal(err)
	}
	answer, err := s.Sign(one.message)
	if err != nil {
		b.Fatal(err)
	}
	token, err := one.Finish(answer)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := task.Verify(token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Sign(one.message); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("blind", func(b *testing.B) {
		for b.Loop() {
			if _, err := task.Blind(NewRequest()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// plainKey returns the same key as an rsaEncryption SubjectPublicKeyInfo, which most libraries read.
func plainKey(spki []byte) ([]byte, error) {
	key, err := ParseKey(spki)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKIXPublicKey(key)
}
