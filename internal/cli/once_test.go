package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Data that are named twice are refused: the first would be forgotten.
func TestDataOnce(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // in the error; empty: none
	}{
		{[]string{"--data", "a.csv"}, ""},
		{[]string{"--data", "a.csv", "--data=b.csv"}, "given twice; several files are one pattern"},
	} {
		var data string
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		Data(f, &data, "`FILE` of events")
		err := f.Parse(c.args)
		if c.want == "" && (err != nil || data != "a.csv") || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %q, %v", c.args, data, err)
		}
	}
}
