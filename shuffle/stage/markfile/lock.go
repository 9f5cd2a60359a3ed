package markfile

import (
	"errors"
	"os"
	"syscall"
)

// lock waits for the exclusive lock of a file, created if missing. The file is never removed: who then made it anew would
// not exclude who had it open. A process that dies gives its locks back.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // closing gives the lock back
}
