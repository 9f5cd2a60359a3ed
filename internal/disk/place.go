package disk

import (
	"fmt"
	"time"
)

// A Place distinguishes a file from every copy of it on its file system. It stays over renames, restarts and mounts,
// and while the file's content is replaced where it lies. Of file systems that keep no numbers it is not known: FUSE,
// FAT and SMB on Linux.
type Place struct {
	Number uint64 // of the file in its file system; 0: not known
	Born   uint64 // Unix nanoseconds at which the file was made; 0: not known
}

// String names both, for a person.
func (p Place) String() string {
	if p.Born == 0 {
		return fmt.Sprintf("file %d", p.Number)
	}
	return fmt.Sprintf("file %d, made %s", p.Number, time.Unix(0, int64(p.Born)).UTC().Format(time.RFC3339))
}

// Same reports whether both can be the place of one file. What one of them does not know is not compared.
func (p Place) Same(q Place) bool {
	same := func(a, b uint64) bool { return a == 0 || b == 0 || a == b }
	return same(p.Number, q.Number) && same(p.Born, q.Born)
}
