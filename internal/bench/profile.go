package main

import (
	"bytes"
	"context"
	"errors"
	"runtime/pprof"
	"strings"

	"github.com/google/pprof/profile"
)

// profiles says where the CPU goes when every device seals its own report.
func profiles(ctx context.Context, l *lab) (err error) {
	b, err := startBroker(ctx, l, syncLazily)
	if err != nil {
		return err
	}
	defer b.end()
	rounds, users := l.of(5, 1), l.of(8192, 256)
	w, err := newWorld(ctx, l, b, shape{dim: 100, sealed: true, cohort: users, rounds: rounds})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	g, err := w.newGateway(1)
	if err != nil {
		return err
	}
	shares := map[string]series{}
	for r := range rounds {
		if err := g.seen.wait(w.ctx, uint64(r+1)); err != nil {
			return err
		}
		var data bytes.Buffer
		if err := pprof.StartCPUProfile(&data); err != nil {
			return err
		}
		_, err := g.fill(uint64(r+1), users)
		pprof.StopCPUProfile()
		if err != nil {
			return err
		}
		p, err := profile.Parse(&data)
		if err != nil {
			return err
		}
		for role, s := range sharesOf(p, hpke) {
			shares[role] = append(shares[role], 100*s)
		}
	}
	const group = "CPU in HPKE, when each of 100-dimensional reports is sealed by itself"
	for _, role := range [...]string{"device", "stage"} {
		share := shares[role]
		l.add(newRow(group, role, "% of its CPU", share).atLeast("at least 90", share.median(), 90))
	}
	l.add(newRow(group, "both, with what the runtime does for them", "% of the process's CPU", shares[everybody]))
	return nil
}

// hpke is in the name of every function of the encryption and what it encapsulates keys with.
const hpke = "crypto/hpke."

// everybody stands for the whole process: its garbage collector and scheduler have no role of their own.
const everybody = ""

// sharesOf is how much of each role's CPU time is spent below functions of a package, by the roles' labels.
func sharesOf(p *profile.Profile, function string) map[string]float64 {
	inside, all := map[string]int64{}, map[string]int64{}
	for _, s := range p.Sample {
		nanoseconds := s.Value[len(s.Value)-1]
		below := under(s, function)
		for _, role := range append([]string{everybody}, s.Label[roleLabel]...) {
			all[role] += nanoseconds
			if below {
				inside[role] += nanoseconds
			}
		}
	}
	shares := map[string]float64{}
	for role, n := range all {
		shares[role] = float64(inside[role]) / float64(max(n, 1))
	}
	return shares
}

func under(s *profile.Sample, function string) bool {
	for _, location := range s.Location {
		for _, line := range location.Line {
			if line.Function != nil && strings.HasPrefix(line.Function.Name, function) {
				return true
			}
		}
	}
	return false
}
