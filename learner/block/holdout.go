package block

import (
	"crypto/sha256"
	"encoding/binary"
)

// A Holdout decides which rows of a file are held out of learning, to test on: about one unit in Every.
//
// Where rows are protected it counts places: neighbouring inputs differ in the contents of one row, so that
// numbers of rows and their places are public. Where people are, neighbours differ in how many rows a person
// has, so that a place would give everybody behind that person another role. There a hash of the person's name
// decides, wherever the rows are and however many: one person's rows change nobody's role, not even that
// person's.
type Holdout struct {
	Every  uint   // 0: nothing is held out
	Task   string // name of the task, the key of the hash
	People bool   // whether people are protected, not rows
}

// Has reports whether a row is held out: place is its number in the data, from 0, and person names its person.
// A row without a person is not held out: it stays among the rows to learn from, where it is left out of every
// unit and counted.
func (h Holdout) Has(place int, person string) bool {
	switch {
	case h.Every == 0 || h.People && person == "":
		return false
	case !h.People:
		return uint(place)%h.Every == h.Every-1
	}
	named := binary.BigEndian.AppendUint64([]byte("panlearn held out\x00"), uint64(len(h.Task)))
	sum := sha256.Sum256(append(append(named, h.Task...), person...))
	return binary.BigEndian.Uint64(sum[:8])%uint64(h.Every) == 0
}
