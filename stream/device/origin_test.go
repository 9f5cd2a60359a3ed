package device

import (
	"testing"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A row of a pattern of files has the key that it has where its file alone is read; a live row never has a key that it
// had; and a row with a key of its own has that one, wherever it comes from.
func TestRowsAreNamed(t *testing.T) {
	at := participation.RowKey
	for _, c := range []struct {
		names naming
		row   task.Row
		want  participation.Key
	}{
		{naming{source: "/data/a.csv"}, task.Row{Number: 7}, at("/data/a.csv", 7)},
		{naming{source: "/data/*.csv"}, task.Row{Number: 7, File: "/data/a.csv"}, at("/data/a.csv", 7)},
		{naming{source: "random", live: true}, task.Row{Number: 7}, at("random", 7)},
		{naming{source: "random", live: true}, task.Row{Number: 7, File: "/data/a.csv"}, at("random\x00/data/a.csv", 7)},
		{naming{source: "random", live: true, keys: true}, task.Row{Number: 7, File: "/data/a.csv", Key: "anna"},
			participation.EventKey("anna")},
		{naming{source: "/data/a.csv", keys: true}, task.Row{Number: 8, Key: "anna"}, participation.EventKey("anna")},
		{naming{source: "/data/a.csv", keys: true}, task.Row{Number: 8}, participation.Key{}},
	} {
		if got, ok := c.names.key(c.row); got != c.want || ok == (got == participation.Key{}) {
			t.Errorf("%+v: another key, %t", c.names, ok)
		}
	}
}
