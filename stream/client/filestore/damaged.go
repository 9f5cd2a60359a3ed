package filestore

import (
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

// errDamaged says that the file is not what was written. Its bytes are not to be trusted in anything then: an event may
// have taken part and look fresh.
var errDamaged = errors.New("the file is damaged")

// guard runs what bbolt does with the file. bbolt has no checksums on its pages and panics on one that makes no sense, or
// follows it out of the file, which would take the process with it.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errDamaged, p) // bbolt's panics name pages, not contents
		}
	}()
	return f()
}

// openFile is bbolt.Open for files of whatever content.
func openFile(path string, o *bbolt.Options) (db *bbolt.DB, err error) {
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, o)
		return err
	})
	return db, err
}

// closeAfter closes the file and returns both errors. After a panic bbolt's locks may be held for ever, so that a damaged
// file stays open until the process ends.
func closeAfter(err error, db *bbolt.DB) error {
	if errors.Is(err, errDamaged) {
		return err
	}
	return errors.Join(err, guard(db.Close))
}
