package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Flags are the names of all flags of both programs. One environment may hold variables for any of them, because
// several roles share files of variables. Tests of the programs compare the names.
var Flags = strings.Fields(`
	absent-classes accept-rollback algorithm algorithms all at b baselines bundle by-reports check class client-address-header coin columns
	compare cost creds data days delta dim drain-timeout drift embedded epsilon events every exit-when-done floor-trials force format
	from g gap gateway-token helper-key holdout honest-fraction host http http-cert http-key http-no-token http-rate http-token http-waiting hub identity
	in-order inbox-prefix issuer issuer-key issuer-token json jwt-audience jwt-issuer jwt-key label leaf-listen learner-key lease line listen live log-format log-level loss max-bits max-block-rows
	metrics minimizer model nats nats-wait newest nkey no-public-labels no-public-trees noise now origin out output p
	patience per-address person-header plot policy pprof present profile public publishers ready relay relay-ca relay-token replicas
	report-bytes reports role round rounds-per-user route seal seed seeds server set shuffle silo-rows slack solver split stage-http stage-key state
	sweep-users task task-file tasks test threshold tls-ca tls-cert tls-key trials trust truth truth-norm units users waiting
	workers`)

// elsewhere are variables of this prefix that are no flag's: tests and measurements read them.
var elsewhere = []string{"PANLEARN_DATA", "PANLEARN_DEEP"}

// strangers returns the variables with our prefix that belong to no flag. One that is close to a flag's name
// is an error: the setting, a policy or an authority perhaps, would be ignored unnoticed. Others may belong
// to another program (Kubernetes makes PANLEARN_PORT of a service by that name), so they are returned to be
// reported.
func strangers(environment []string) (told []string, err error) {
	var errs []error
	for _, pair := range environment {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, environmentPrefix) || value == "" || slices.Contains(elsewhere, name) ||
			slices.ContainsFunc(Flags, func(f string) bool { return variable(f) == name }) {
			continue
		}
		nearest, far := "", typos+1
		for _, f := range Flags {
			if d := distance(name, variable(f)); d < far {
				nearest, far = variable(f), d
			}
		}
		// In a short name two letters are too many to be a slip.
		if nearest != "" && far <= (len(name)-len(environmentPrefix))/3 {
			errs = append(errs, fmt.Errorf("%s: no flag has this variable: did you mean %s?", name, nearest))
			continue
		}
		told = append(told, fmt.Sprintf("%s is no flag's variable, and changes nothing", name))
	}
	slices.Sort(told)
	return told, Usage(errors.Join(errs...))
}

// distance returns the Levenshtein distance: the least number of letters to change, to add or to take away.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			same := left
			if a[i] != b[j] {
				same++
			}
			left = row[j+1]
			row[j+1] = min(same, row[j]+1, left+1)
		}
	}
	return row[len(b)]
}
