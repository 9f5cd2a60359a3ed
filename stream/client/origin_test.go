package client

import "testing"

// A row of a pattern of files has the key that it has where its file alone is read; a live row never has a key that it had.
func TestOriginOfRows(t *testing.T) {
	for _, c := range []struct {
		source, file string
		live         bool
		want         string
	}{
		{"/data/a.csv", "", false, "/data/a.csv"},
		{"/data/*.csv", "/data/a.csv", false, "/data/a.csv"},
		{"random", "", true, "random"},
		{"random", "/data/a.csv", true, "random\x00/data/a.csv"},
	} {
		if got := origin(c.source, c.file, c.live); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
