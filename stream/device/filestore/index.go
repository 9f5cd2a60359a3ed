package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A payload is one change, or a part of what a compaction kept: blocks, of which a later one overrides the earlier.
//
//	'p'  task hash, order (32 bytes each), source, units, number of trials, trials, length, keys of people: the pin, where there is none yet
//	'm'  round, manifest hash (32 bytes)
//	's'  record, keys: settled events that have one record
//	'c'  key's id (16 bytes), nonce, keys, length (4 bytes, little endian), sealed: charged events; sealed are as many records,
//	     each after its length (4 bytes, little endian), bound to the block's bytes before them
//	keys  runs: length, first key (16 bytes), the others counting up in its last 8 bytes, big endian; a run of length 0 ends them
//
// Numbers are uvarints; source and record stand after their lengths.
const (
	pinBlock     = 'p'
	roundBlock   = 'm'
	settledBlock = 's'
	chargedBlock = 'c'
)

// maxRun bounds the keys of a run: a damaged file must not grow memory.
const maxRun = 1 << 12

var errBlock = fmt.Errorf("%w: a block makes no sense", errDamaged)

// An index holds the content of a log in memory: some 45 bytes for each event, and more for each block with
// charged ones.
type index struct {
	pin    *participation.Pin
	rounds map[stream.Round]stream.Hash
	// of a settled one, its place in records; of a charged one, the number of its block
	events  map[participation.Key]uint32
	records []participation.Record // of settled events, without key
	places  map[string]uint32      // of records by their encoding
	blocks  map[uint32]*block      // with charged events
	last    uint32                 // number of a block: all are above firstBlock
	keys    map[keyID]*roundKey    // keys that are not erased and, while a log is read, keys of earlier rounds
	missing map[keyID]bool         // among keys: those without a file
}

// firstBlock is above all places.
const firstBlock = 1 << 31

// A block is one of charged events in the file.
type block struct {
	number uint32
	events int   // that it still says something of
	at     int64 // where it begins
	size   int
	key    *roundKey
}

func newIndex() *index {
	return &index{rounds: make(map[stream.Round]stream.Hash), events: make(map[participation.Key]uint32),
		places: make(map[string]uint32),
		blocks: make(map[uint32]*block), last: firstBlock, keys: make(map[keyID]*roundKey), missing: make(map[keyID]bool)}
}

// apply takes a payload that begins at some place of the file.
func (x *index) apply(at int64, payload []byte) error {
	r := reader{data: payload, all: payload}
	for len(r.data) > 0 {
		begin := len(payload) - len(r.data)
		var err error
		switch r.byte() {
		case pinBlock:
			var pin participation.Pin
			copy(pin.Task[:], r.take(len(pin.Task)))
			copy(pin.Order[:], r.take(len(pin.Order)))
			pin.Source = string(r.take(r.length()))
			pin.Units = r.number()
			n := r.length()
			r.bad = r.bad || n < 0
			for range n {
				pin.Trials = append(pin.Trials, r.number())
			}
			people := r.take(r.length())
			r.bad = r.bad || len(people)%len(participation.Key{}) != 0
			for some := range slices.Chunk(people, len(participation.Key{})) {
				if !r.bad {
					pin.People = append(pin.People, participation.Key(some))
				}
			}
			if x.pin == nil {
				x.pin = &pin
			}
		case roundBlock:
			round, hash := stream.Round(r.number()), stream.Hash{}
			copy(hash[:], r.take(len(hash)))
			x.rounds[round] = hash
		case settledBlock:
			var place uint32
			if place, err = x.place(r.take(r.length())); err == nil && !r.bad {
				r.keys(func(k participation.Key) { x.settle(k, place) })
			}
		case chargedBlock:
			var s sealed
			if s, err = x.sealed(&r); err == nil && !r.bad {
				b := &block{number: x.number(), at: at + int64(begin), size: len(payload) - len(r.data) - begin, key: s.key}
				x.blocks[b.number] = b
				keys := reader{data: s.keys}
				keys.keys(func(k participation.Key) { x.charge(k, b) })
			}
		default:
			r.bad = true
		}
		if err != nil {
			return err
		}
		if r.bad {
			return errBlock
		}
	}
	return nil
}

// place returns the place in records of the settled record with this encoding, which it adds if it is new.
func (x *index) place(data []byte) (uint32, error) {
	if n, found := x.places[string(data)]; found {
		return n, nil
	}
	var p participation.Record
	if err := p.UnmarshalBinary(data); err != nil {
		return 0, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if p.State == participation.Charged || len(x.records) == firstBlock {
		return 0, errBlock
	}
	n := uint32(len(x.records))
	x.records = append(x.records, p)
	x.places[string(data)] = n
	return n, nil
}

// number returns the number of a new block. Numbers are reused after 2^31 blocks, except those in use.
func (x *index) number() uint32 {
	for {
		if x.last++; x.last < firstBlock {
			x.last = firstBlock
		}
		if x.blocks[x.last] == nil {
			return x.last
		}
	}
}

func (x *index) settle(k participation.Key, place uint32) {
	if n := x.events[k]; n >= firstBlock {
		x.leave(n)
	}
	x.events[k] = place
}

func (x *index) charge(k participation.Key, b *block) {
	b.events++
	b.key.events++
	if n := x.events[k]; n >= firstBlock {
		x.leave(n)
	}
	x.events[k] = b.number
}

// leave takes one event from a block.
func (x *index) leave(number uint32) {
	b := x.blocks[number]
	b.key.events--
	if b.events--; b.events == 0 {
		delete(x.blocks, number)
	}
}

// charged returns the block of an event that is charged, else nil.
func (x *index) charged(k participation.Key) *block {
	if n := x.events[k]; n >= firstBlock {
		return x.blocks[n]
	}
	return nil
}

// A sealed is a block of charged events, read.
type sealed struct {
	key    *roundKey
	nonce  uint64
	keys   []byte // of the events
	before []byte // what the ciphertext is bound to
	text   []byte
}

// sealed reads a block behind its first byte. A key that is not known is noted as missing.
func (x *index) sealed(r *reader) (s sealed, err error) {
	whole := r.whole(1)
	id := keyID(r.take(len(keyID{})))
	s.nonce = r.number()
	s.keys = r.data
	r.keys(func(participation.Key) {})
	s.keys = s.keys[:len(s.keys)-len(r.data)]
	n := r.take(4)
	s.before = whole[:len(whole)-len(r.data)]
	if s.text = r.take(int(binary.LittleEndian.Uint32(n))); r.bad {
		return s, errBlock
	}
	if s.key = x.keys[id]; s.key == nil {
		s.key = &roundKey{id: id}
		x.keys[id], x.missing[id] = s.key, true
	}
	return s, nil
}

// complete checks that the key of every charged event is there, and forgets the keys of events that are settled.
func (x *index) complete() error {
	for id := range x.missing {
		if n := x.keys[id].events; n > 0 {
			return fmt.Errorf("%w: the key of %d charged events is gone: what they said cannot be sent again; "+
				"keep these users out of this task", errDamaged, n)
		}
		delete(x.keys, id)
	}
	x.missing = make(map[keyID]bool)
	return nil
}

// open decrypts a block, overwriting its bytes, and calls each for every record that is still current for its event.
func (x *index) open(b *block, data []byte, each func(participation.Record) error) error {
	defer clear(data)
	r := reader{data: data, all: data}
	if r.byte() != chargedBlock {
		return errBlock
	}
	s, err := x.sealed(&r)
	if err != nil || s.key != b.key {
		return errors.Join(errBlock, err)
	}
	plain, err := s.key.open(s.text, s.before, s.nonce)
	if err != nil {
		return err
	}
	var keys []participation.Key
	(&reader{data: s.keys}).keys(func(k participation.Key) { keys = append(keys, k) })
	p := reader{data: plain}
	records := make([]participation.Record, len(keys))
	last := make(map[participation.Key]int, len(keys))
	for i, k := range keys {
		n := p.take(4)
		records[i].Key, last[k] = k, i
		if err := records[i].UnmarshalBinary(p.take(int(binary.LittleEndian.Uint32(n)))); err != nil || p.bad {
			return errors.Join(errBlock, err)
		}
	}
	if len(p.data) > 0 {
		return errBlock
	}
	for i, k := range keys {
		if last[k] == i && x.charged(k) == b {
			if err := each(records[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// A reader takes fields off data; after a field that is not there it is bad and gives zeros.
type reader struct {
	data []byte
	all  []byte // what data was
	bad  bool
}

// whole returns the n bytes that were taken last, together with all that is still to be read.
func (r *reader) whole(n int) []byte { return r.all[len(r.all)-len(r.data)-n:] }

func (r *reader) take(n int) []byte {
	if n < 0 || len(r.data) < n {
		r.bad, r.data = true, nil
		return make([]byte, min(max(n, 0), 64)) // fields of a fixed size are shorter
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) byte() byte { return r.take(1)[0] }

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[n:]
	return v
}

// length reads the length of a field that follows.
func (r *reader) length() int {
	if n := r.number(); n <= uint64(len(r.data)) {
		return int(n)
	}
	return -1
}

// keys hands over the keys of a list, while it makes sense.
func (r *reader) keys(each func(participation.Key)) {
	for n := r.number(); n > 0; n = r.number() {
		k := participation.Key(r.take(len(participation.Key{})))
		low := binary.BigEndian.Uint64(k[8:])
		if n > maxRun || low > math.MaxUint64-(n-1) {
			r.bad, r.data = true, nil
		}
		if r.bad {
			return
		}
		for i := range n {
			binary.BigEndian.PutUint64(k[8:], low+i)
			each(k)
		}
	}
}

// appendKeys encodes a list of n keys.
func appendKeys(b []byte, n int, key func(int) participation.Key) []byte {
	for i := 0; i < n; {
		first := key(i)
		low, length := binary.BigEndian.Uint64(first[8:]), uint64(1)
		for i++; i < n && length < maxRun && low+length > low; i++ {
			k := key(i)
			if [8]byte(k[:8]) != [8]byte(first[:8]) || binary.BigEndian.Uint64(k[8:]) != low+length {
				break
			}
			length++
		}
		b = append(binary.AppendUvarint(b, length), first[:]...)
	}
	return append(b, 0)
}
