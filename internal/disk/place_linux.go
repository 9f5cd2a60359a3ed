package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// PlaceOf returns the place of a file.
func PlaceOf(path string) (Place, error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return Place{}, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	p := Place{Number: s.Ino}
	if s.Mask&unix.STATX_BTIME != 0 {
		p.Born = uint64(s.Btime.Sec)*1e9 + uint64(s.Btime.Nsec)
	}
	return p, nil
}
