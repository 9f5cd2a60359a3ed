package stream_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestOldMessagesKeepTheirBytes: messages of tasks without two operators have the bytes that they had before there were
// such, so that hashes of tasks, rounds and batches in old folders and policies stay what they are.
func TestOldMessagesKeepTheirBytes(t *testing.T) {
	h, in := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{9}, 16)
	for name, c := range map[string]struct {
		m    proto.Message
		want string
	}{
		"Task": {&wire.Task{Version: 1, Name: "churn", Life: in, Declaration: []byte("{}"), LearnerKey: h, StageKey: h,
			Suite: wire.Suite_SUITE_X25519, Public: []byte{1}, Plan: &wire.Plan{Algorithm: "psgd", Trust: wire.Trust_TRUST_PAN,
				HonestFraction: "1", Epsilon: 1, Delta: 1e-6, EpsilonBudget: 1, DeadlineMs: 5, ClipNorm: 1, Places: true,
				Phases: []*wire.Phase{{Users: 9, Rounds: 1, Cohort: 9, Minimum: 8, RoundsPerUser: 1,
					Mechanism: &wire.Mechanism{Dim: 3, ClipNorm: 1, Levels: 8, Coin: 1 << 23, CoinBits: 24, FloorTrials: 77,
						MaxBundle: 2}}}}},
			"58b008f840940edc"},
		"Claim": {&wire.Claim{Version: 1, TaskHash: h, Round: 3, Attempt: 2, ManifestHash: h, Instance: in}, "fbf19f830b48d54c"},
		"Batch": {&wire.Batch{Version: 1, TaskHash: h, Round: 3, Attempt: 2, ManifestHash: h, Users: 4, NoiseTrials: 9,
			Totals: []uint64{1, 300}, Cutoff: 8}, "8f4237bc7a3b7b61"},
		"Close": {&wire.Close{Version: 1, TaskHash: h, Round: 3, Attempt: 2, ManifestHash: h, BatchHash: h, Cutoff: 8},
			"1d18521c43569e0c"},
		"Report": {&wire.Report{Version: 1, TaskHash: h, Ids: [][]byte{in}, Encapsulated: h, Ciphertext: in}, "eb968bf72b75d7f9"},
	} {
		data, err := stream.Marshal(c.m)
		if err != nil {
			t.Fatal(err)
		}
		hash := stream.HashOf(data)
		if got := hex.EncodeToString(hash[:8]); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if err := stream.Unmarshal(data, c.m.ProtoReflect().New().Interface()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
