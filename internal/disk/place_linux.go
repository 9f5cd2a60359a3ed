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
	var of unix.Statfs_t
	if err := unix.Statfs(path, &of); err != nil {
		return Place{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	if !numbers(int64(of.Type)) {
		return Place{}, nil
	}
	p := Place{Number: s.Ino}
	if s.Mask&unix.STATX_BTIME != 0 {
		p.Born = uint64(s.Btime.Sec)*1e9 + uint64(s.Btime.Nsec)
	}
	return p, nil
}

// numbers reports whether a file system, by its magic number, keeps the numbers of its files and the times at which
// they were made. FUSE numbers files as its server chooses, FAT and exFAT at each mount, with times that depend on the
// mount's time zone, and SMB where the server does not.
func numbers(magic int64) bool {
	switch uint32(magic) {
	case unix.FUSE_SUPER_MAGIC, unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return false
	}
	return true
}
