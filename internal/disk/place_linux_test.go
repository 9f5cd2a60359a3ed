package disk

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPlace stays when a file is renamed, its folder is moved, and its content, mode and times change; a copy has another.
func TestPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	must(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "key")
	must(t, os.WriteFile(path, []byte("key"), 0o600))
	was, err := PlaceOf(path)
	must(t, err)
	must(t, os.Rename(path, path+"2"))
	must(t, os.Rename(dir, dir+"2"))
	path = filepath.Join(dir+"2", "key2")
	must(t, os.WriteFile(path, []byte("another"), 0o600))
	must(t, os.Chmod(path, 0o400))
	if is, err := PlaceOf(path); err != nil || is != was {
		t.Errorf("%+v, %v: want %+v", is, err, was)
	}
	must(t, os.CopyFS(dir+"3", os.DirFS(dir+"2")))
	if is, err := PlaceOf(filepath.Join(dir+"3", "key2")); err != nil || is.Same(was) {
		t.Errorf("a copy has the place %+v, %v", is, err)
	}
}

// TestPlaceIsNotKnown: of file systems that keep no numbers nothing is compared, so that a remount locks nobody out.
func TestPlaceIsNotKnown(t *testing.T) {
	for magic, keeps := range map[int64]bool{unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true,
		unix.TMPFS_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true, unix.NFS_SUPER_MAGIC: true,
		unix.FUSE_SUPER_MAGIC: false, unix.MSDOS_SUPER_MAGIC: false, unix.EXFAT_SUPER_MAGIC: false, unix.CIFS_SUPER_MAGIC: false,
		unix.SMB2_SUPER_MAGIC: false} {
		if numbers(magic) != keeps {
			t.Errorf("file system %x: keeps numbers %t", magic, !keeps)
		}
	}
	if text := (Place{Number: 7, Born: 8e18}).String(); text != "file 7, made 2223-07-06T14:13:20Z" {
		t.Error(text)
	}
	if unknown, known := (Place{}), (Place{Number: 7, Born: 8}); !unknown.Same(known) || !known.Same(unknown) {
		t.Error("an unknown place is compared")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
