package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// PlaceOf returns the place of a file.
func PlaceOf(path string) (Place, error) {
	f, err := os.Open(path)
	if err != nil {
		return Place{}, err
	}
	var info windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	if err := errors.Join(err, f.Close()); err != nil {
		return Place{}, err
	}
	return Place{Number: uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)}, nil
}
