package stream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream/wire"
)

// MaxShards bounds the workers of one attempt.
const MaxShards = 16

// ShardPrefix is how many leading bytes of a report id choose its shard. The reports of one message share them, so that
// a bundle lies in one shard however many shards an attempt has.
const ShardPrefix = 8

// ShardOf is the shard of a report in an attempt with that many shards: from 1, or 0 where the attempt has one worker
// and so is not sharded. It is the first ShardPrefix bytes of the id, a big-endian number, modulo the shards, plus 1: ids
// are random, so no further hash is needed, and who chooses an id chooses no more than a worker.
func ShardOf(id [ReportIDSize]byte, shards int) uint32 {
	if shards <= 1 {
		return 0
	}
	return uint32(binary.BigEndian.Uint64(id[:ShardPrefix])%uint64(shards)) + 1
}

// ShardKeys are the public keys of an attempt's shards in their order: one key where it is not sharded.
func ShardKeys(o *wire.Open) [][]byte {
	keys := [][]byte{o.PublicKey}
	for _, s := range o.Shards {
		keys = append(keys, s.PublicKey)
	}
	return keys
}

// checkShards: no process, seat or key may serve two shards, else one worker's totals could be asked for twice.
func checkShards(m *wire.Open) error {
	switch {
	case len(m.Shards) == 0 && len(m.HandoverKey) != 0:
		return errors.New("handover_key: want none without shards")
	case len(m.Shards) == 0:
		return nil
	case len(m.Shards) >= MaxShards:
		return fmt.Errorf("%d shards beside the first: want at most %d", len(m.Shards), MaxShards-1)
	case len(m.HandoverKey) == 0:
		return errors.New("handover_key: missing")
	}
	instances, keys, seats := map[string]bool{string(m.Instance): true}, map[string]bool{string(m.HandoverKey): true}, map[uint32]bool{}
	for i, key := range ShardKeys(m) {
		if len(key) > 0 && keys[string(key)] {
			return fmt.Errorf("shard %d: its public_key is another's", i+1)
		}
		keys[string(key)] = true
	}
	for i, s := range m.Shards {
		err := errors.Join(length("instance", s.Instance, InstanceSize), seat(s.Seat))
		if err == nil && (instances[string(s.Instance)] || seats[s.Seat]) {
			err = errors.New("instance or seat is another's")
		}
		if err != nil {
			return fmt.Errorf("shard %d: %w", i+2, err)
		}
		instances[string(s.Instance)], seats[s.Seat] = true, true
	}
	return nil
}

func seat(n uint32) error {
	if n < 1 || n >= MaxShards {
		return fmt.Errorf("seat %d: want 1 to %d", n, MaxShards-1)
	}
	return nil
}

func checkQuota(m *wire.Quota) error {
	err := errors.Join(header(m), atLeastOne("attempt", m.Attempt), length("manifest_hash", m.ManifestHash, HashSize),
		length("owner", m.Owner, InstanceSize))
	switch n := len(m.Caps); {
	case m.Number == 0 && (n != 0 || m.Frozen):
		err = errors.Join(err, errors.New("a call with caps"))
	case m.Number > 0 && (n < 2 || n > MaxShards):
		err = errors.Join(err, fmt.Errorf("%d caps: want 2 to %d", n, MaxShards))
	}
	return err
}

func checkSeat(m *wire.Seat) error {
	err := errors.Join(length("task_hash", m.TaskHash, HashSize), seat(m.Seat), length("instance", m.Instance, InstanceSize),
		atLeastOne("beat", m.Beat))
	if m.Round == 0 {
		if m.Attempt != 0 || len(m.Owner) != 0 || len(m.PublicKey) != 0 || m.Quota != 0 || m.Users != 0 || m.Hungry {
			err = errors.Join(err, errors.New("an idle seat says how far it is"))
		}
		return err
	}
	return errors.Join(err, atLeastOne("attempt", m.Attempt), length("owner", m.Owner, InstanceSize))
}

func checkPart(m *wire.Part) error {
	err := errors.Join(header(m), atLeastOne("attempt", m.Attempt), length("manifest_hash", m.ManifestHash, HashSize),
		seat(m.Seat), length("instance", m.Instance, InstanceSize))
	if m.Shard < 2 || m.Shard > MaxShards {
		err = errors.Join(err, fmt.Errorf("shard %d: want 2 to %d", m.Shard, MaxShards))
	}
	if len(m.Encapsulated) == 0 || len(m.Ciphertext) == 0 {
		err = errors.Join(err, errors.New("not sealed"))
	}
	return err
}

func checkPartial(m *wire.Partial) error {
	if len(m.Totals) == 0 || len(m.Totals) > MaxDim {
		return fmt.Errorf("%d totals: want 1 to %d", len(m.Totals), MaxDim)
	}
	return checkRejects(m.Rejects)
}
