package deploy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const productionFile = "compose.production.yaml"

// secrets returns the names of a service's secrets, by the files at which it has them.
func (s service) secrets() map[string]string {
	all := map[string]string{}
	for _, from := range s.Secrets {
		switch from := from.(type) {
		case string:
			all["/run/secrets/"+from] = from
		case map[string]any:
			all["/run/secrets/"+from["target"].(string)] = from["source"].(string)
		}
	}
	return all
}

type deployment struct {
	Services map[string]service
	Secrets  map[string]struct{ File string }
	Volumes  map[string]any
}

var interpolated = regexp.MustCompile(`\$\{([A-Z_0-9]+):([-?])([^}]*)\}`)

// production returns the production file with variables in it, as Compose does.
func production(t *testing.T, variables map[string]string) (d deployment) {
	t.Helper()
	text, err := os.ReadFile(productionFile)
	if err != nil {
		t.Fatal(err)
	}
	text = interpolated.ReplaceAllFunc(text, func(all []byte) []byte {
		m := interpolated.FindSubmatch(all)
		if v := variables[string(m[1])]; v != "" {
			return []byte(v)
		}
		if string(m[2]) == "?" {
			t.Fatalf("%s: %s", m[1], m[3])
		}
		return m[3]
	})
	// A service may override what it is laid over.
	if err := yaml.UnmarshalWithOptions(text, &d, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatal(err)
	}
	return d
}

var image = map[string]string{"PANLEARN_IMAGE": "panlearn:v9"}

// productionLines returns the command lines of our services, those of the checks of their health too.
func productionLines(t *testing.T) (all []line) {
	t.Helper()
	for name, s := range production(t, image).Services {
		if s.Image != image["PANLEARN_IMAGE"] {
			continue
		}
		all = append(all, line{productionFile + ": " + name, s.Command, s.Environment})
		if check := s.Healthcheck.Test; len(check) > 0 {
			all = append(all, line{productionFile + ": health of " + name, check[1:], nil})
		}
	}
	return all
}

// TestProductionIsClosed: services gain nothing that they need not have, start again with their machine, are checked and
// bounded, and each has its own secrets alone.
func TestProductionIsClosed(t *testing.T) {
	d := production(t, image)
	names := map[string]string{"stage-1": "stage", "stage-2": "stage", "leader": "stage", "provision": "admin", "retain": "admin"}
	for name, s := range d.Services {
		once := slices.Contains(s.Profiles, "once")
		user := "65532:65532" // of secrets and roles
		if s.Pid == "host" || slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasPrefix(v, "/:") }) {
			user = "65534:65534" // it would read the files and the memory of its own user's processes
		}
		if name != "prepare" && s.User != user || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
			!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s: want a user, a root that is read only, no capabilities and none to gain", name)
		}
		ours := s.Image == image["PANLEARN_IMAGE"] && !once
		switch {
		case once && (s.Restart != "" || len(s.Ports) > 0):
			t.Errorf("%s runs once: want no restart and no port", name)
		case !once && (s.Restart != "unless-stopped" || s.MemLimit == "" || s.PidsLimit == 0):
			t.Errorf("%s: want a restart, and limits of memory and processes: %+v", name, s)
		case ours && name != "retain" && len(s.Healthcheck.Test) == 0, strings.HasPrefix(name, "nats-") && name != "nats-exporter" &&
			len(s.Healthcheck.Test) == 0:
			t.Errorf("%s: want a check of its health", name)
		case slices.Contains([]string{"stage-1", "stage-2", "leader", "helper"}, name) && s.MemSwapLimit != s.MemLimit:
			t.Errorf("%s may be swapped out", name)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network by default", name, p)
			}
		}
		if !strings.Contains(s.Image, ":") || strings.HasSuffix(s.Image, ":latest") {
			t.Errorf("%s: image %s has no version", name, s.Image)
		}
		for _, secret := range s.secrets() {
			if d.Secrets[secret].File == "" {
				t.Errorf("%s: no secret %s", name, secret)
			}
			user := names[name]
			if user == "" {
				user = name
			}
			if secret != "ca" && secret != user && !strings.HasPrefix(secret, user+"-") {
				t.Errorf("%s has the secret %s", name, secret)
			}
		}
		for _, v := range s.Volumes {
			from, at, _ := strings.Cut(v, ":")
			at, _, _ = strings.Cut(at, ":")
			_, named := d.Volumes[from]
			if !named && !strings.HasPrefix(from, "./") && name != "node-exporter" {
				t.Errorf("%s: no volume %s", name, from)
			}
			if once || !named {
				continue
			}
			if !slices.ContainsFunc(d.Services["prepare"].Volumes, func(p string) bool { return strings.HasPrefix(p, from+":") }) {
				t.Errorf("%s: prepare does not make %s the user's", name, from)
			}
			for other, o := range d.Services {
				if other != name && !slices.Contains(o.Profiles, "once") &&
					slices.ContainsFunc(o.Volumes, func(p string) bool { return strings.HasPrefix(p, from+":") }) {
					t.Errorf("%s and %s share the volume %s at %s", name, other, from, at)
				}
			}
		}
		// Whatever a command line or a variable names is mounted.
		for _, word := range append(slices.Clone(s.Command), values(s.Environment)...) {
			if !strings.HasPrefix(word, "/") || name == "prepare" {
				continue
			}
			mounted := s.secrets()[word] != ""
			for _, v := range s.Volumes {
				at := strings.Split(v, ":")[1]
				mounted = mounted || word == at || strings.HasPrefix(word, at+"/")
			}
			if strings.Contains(s.Image, "panlearn:") && !mounted {
				t.Errorf("%s: %s is on no volume", name, word)
			}
		}
	}
}

func values(env map[string]string) (all []string) {
	for _, v := range env {
		all = append(all, v)
	}
	return all
}

// connection are the flags that say where the broker is and who asks, which differ from one kind of deployment to another.
var connection = []string{"nats", "nats-wait", "creds", "nkey", "tls-ca", "tls-cert", "tls-key"}

// flagsOf returns the flags of a command line and its environment, without those of the connection: of addresses the port,
// of all others whether they are there.
func flagsOf(l line) map[string]string {
	all := map[string]string{}
	put := func(flag, value string) {
		flag = strings.TrimPrefix(flag, "--")
		flag, value, _ = strings.Cut(flag+"="+value, "=")
		if slices.Contains([]string{"-f", "task-file", "task"}, flag) {
			flag = "tasks" // one, or all of a folder
		}
		if port := value[strings.LastIndex(value, ":")+1:]; flag == "http" || flag == "metrics" {
			all[flag] = port
		} else if !slices.Contains(connection, flag) {
			all[flag] = ""
		}
	}
	for i, word := range l.args[2:] {
		if strings.HasPrefix(word, "-") {
			put(word, append(l.args, "")[i+3])
		}
	}
	for name, value := range l.env {
		if flag, is := strings.CutPrefix(name, "PANLEARN_"); is {
			put(strings.ToLower(strings.ReplaceAll(flag, "_", "-")), value)
		}
	}
	return all
}

var setting = regexp.MustCompile(`(?m)^Environment=(PANLEARN_[A-Z_]+)=(.*)$`)

// TestProductionAgrees: the roles have the same commands, flags and ports in containers, in the chart and as units; what
// differs is listed with its reason.
func TestProductionAgrees(t *testing.T) {
	both := map[string]string{"learner-key": "pinned here by a variable; in stage.env and stage.args there", "stage-key": "as learner-key",
		"stage-http": "the services' names are known here", "person-header": "in issuer.env; a JWT in the chart's values"}
	chart := map[string]string{"client-address-header": "the chart's relays stand behind an ingress", "jwt-key": "as person-header",
		"jwt-issuer": "as person-header", "jwt-audience": "as person-header", "http-token": "with person-header",
		"gateway-token": "the chart's values for its test have gateways", "origin": "as gateway-token"}
	unit := map[string]string{"drain-timeout": "in stage.env", "replicas": "in learner.env", "from": "in serve.env",
		"http-cert": "units listen on loopback, for a proxy that ends TLS", "http-key": "as http-cert"}
	pods := map[string]line{}
	for _, file := range []string{"many", "helper", "issuer"} {
		for _, o := range parsed(t, "helm/testdata/"+file+".yaml") {
			for _, c := range o.Spec.Template.Spec.Containers {
				env := map[string]string{}
				for _, e := range c.Env {
					env[e.Name] = e.Value
				}
				pods[o.Metadata.Name] = line{file + ".yaml: " + o.Metadata.Name, c.Command, env}
			}
		}
	}
	systemd := map[string]line{}
	for _, l := range unitLines(t) {
		name := strings.TrimPrefix(l.where, "systemd/")
		l.env = map[string]string{}
		for _, m := range setting.FindAllStringSubmatch(units(t)[name], -1) {
			l.env[m[1]] = m[2]
		}
		systemd[strings.TrimSuffix(strings.TrimPrefix(name, "panlearn-"), "@.service")] = l
	}
	services := production(t, image).Services
	for service, other := range map[string][2]string{ // chart, unit
		"learner": {"learner", "learners"}, "stage-1": {"stage", "stages"}, "stage-2": {"stage", "stages"},
		"relay": {"relay", "relay"}, "scorer": {"scorer", "serve"}, "issuer": {"issuer", "issuer"},
		"helper": {"helper", "helper"}, "retain": {"retain", "retains"},
	} {
		here := line{service, services[service].Command, services[service].Environment}
		for i, there := range []line{pods[other[0]], systemd[other[1]]} {
			if len(there.args) < 2 || !slices.Equal(here.args[:2], there.args[:2]) {
				t.Errorf("%s: %q here, %q in %s", service, here.args[:2], there.args, there.where)
				continue
			}
			ours, theirs := flagsOf(here), flagsOf(there)
			for flag := range either(ours, theirs) {
				a, inOurs := ours[flag]
				b, inTheirs := theirs[flag]
				if service == "helper" && (flag == "stage-key" || flag == "learner-key") || service == "retain" && flag == "every" {
					continue // of the map of the chart, of helper.env; timers start the others
				}
				if inOurs != inTheirs && both[flag] == "" && []map[string]string{chart, unit}[i][flag] == "" || inOurs && inTheirs && a != b {
					t.Errorf("%s: --%s is %q here (%t), %q in %s (%t)", service, flag, a, inOurs, b, there.where, inTheirs)
				}
			}
		}
	}
}

// either returns the keys of both.
func either(a, b map[string]string) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string]string{a, b} {
		for k := range m {
			all[k] = true
		}
	}
	return all
}
