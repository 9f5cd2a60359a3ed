package disk

// A Place tells a file from every copy of it on its file system. It stays over renames, restarts and mounts, and while
// the file's content is replaced where it lies.
type Place struct {
	Number uint64 // of the file in its file system; 0: not known
	Born   uint64 // Unix nanoseconds at which the file was made; 0: not known
}

// Same reports whether both can be the place of one file. What one of them does not know is not compared.
func (p Place) Same(q Place) bool {
	same := func(a, b uint64) bool { return a == 0 || b == 0 || a == b }
	return same(p.Number, q.Number) && same(p.Born, q.Born)
}
