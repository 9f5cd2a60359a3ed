//go:build !linux && !windows

package disk

import (
	"os"
	"syscall"
)

// PlaceOf returns the place of a file.
func PlaceOf(path string) (p Place, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return p, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		p.Number = uint64(s.Ino)
	}
	return p, nil
}
