package cli

import (
	"errors"

	"github.com/spf13/pflag"
)

// Data adds the flag --data. A second one is refused: it would replace the first, and nobody would notice that its rows
// are missing.
func Data(f *pflag.FlagSet, p *string, usage string) { f.Var(&once{p: p}, "data", usage) }

// A once is text that is given once.
type once struct {
	p   *string
	set bool
}

func (o *once) Set(value string) error {
	if o.set {
		return errors.New("given twice; several files are one pattern in quotes, such as 'day-*.csv'")
	}
	*o.p, o.set = value, true
	return nil
}

func (o *once) String() string {
	if o.p == nil {
		return ""
	}
	return *o.p
}

func (o *once) Type() string { return "string" }
