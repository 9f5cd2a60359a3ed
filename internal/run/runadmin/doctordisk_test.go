package runadmin

import (
	"errors"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestDoctorOfDisk: a disk on which the next commit may not fit is a failure, one on which soon none will a warning.
func TestDoctorOfDisk(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	store, err := pebblestore.Open(folder, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtest.Learned(t, runtest.Job(t, runtest.Small(t)), store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var held []byte
	err = statedir.Copy(t.Context(), statedir.Where{StateDir: folder}, func(c state.Checkpoint, _ iter.Seq2[state.Entry,
		error], _ iter.Seq2[state.Kept, error]) (err error) {
		held, err = c.MarshalBinary()
		return err
	})
	if err != nil || len(held) == 0 {
		t.Fatal(len(held), err)
	}
	full, nothing := uint64(1<<20+4*len(held)), uint64(1<<20) // room for a commit of what is held, and of nothing yet
	for _, test := range []struct {
		dir    string
		free   uint64
		err    error
		status natsadmin.Status
		text   string
	}{
		{folder, 0, nil, natsadmin.Failure, "0.0 MB free, and a commit may take "},
		{folder, nothing, nil, natsadmin.Failure, "exit code 75"},
		{folder, full - 1, nil, natsadmin.Failure, "make room"},
		{folder, full, nil, natsadmin.Warning, "make room soon"},
		{folder, 100*full - 1, nil, natsadmin.Warning, "make room soon"},
		{folder, 100 * full, nil, natsadmin.OK, "free"},
		{folder, 0, errors.New("no such call"), natsadmin.Warning, "no such call"},
		{t.TempDir(), nothing - 1, nil, natsadmin.Failure, "make room"},
		{t.TempDir(), 100 * nothing, nil, natsadmin.OK, "free"},
	} {
		v := &visit{Config: Config{StateDir: test.dir, Logger: runtest.Discard()}, free: func(dir string) (uint64, error) {
			if dir != test.dir {
				t.Errorf("the disk of %s is asked for, not that of %s", dir, test.dir)
			}
			return test.free, test.err
		}}
		v.folder(t.Context())
		found := 0
		for _, f := range v.list {
			if f.Check != "disk" {
				continue
			}
			if found++; f.Status != test.status || !strings.Contains(f.Text, test.text) {
				t.Errorf("%d bytes free, %v: %+v, want %s with %q", test.free, test.err, f, test.status, test.text)
			}
		}
		if found != 1 {
			t.Errorf("%d findings of the disk in %+v", found, v.list)
		}
	}
}
