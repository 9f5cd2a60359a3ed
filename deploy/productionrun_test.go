package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// A host runs services of the production file as processes, as a topology does with the trial's.
type host struct {
	t         *testing.T
	p         *procs.Programs
	dir       string // the folder that has the file
	variables map[string]string
	ports     map[string]string // by service and the port in its container
}

func (h *host) services() deployment { return production(h.t, h.variables) }

func (h *host) port(service, port string) string {
	if service == "stage" {
		service = "stage-1"
	}
	key := service + ":" + port
	if h.ports[key] == "" {
		free, err := procs.FreePorts(1)
		if err != nil {
			h.t.Fatal(err)
		}
		h.ports[key] = fmt.Sprint(free[0])
	}
	return h.ports[key]
}

func (h *host) link(from, at string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if _, err := os.Lstat(at); err == nil {
		return
	}
	if err := os.Symlink(from, at); err != nil {
		h.t.Fatal(err)
	}
}

// root returns the folder that is / in the service's container.
func (h *host) root(service string) string {
	d := h.services()
	root := filepath.Join(h.dir, "root", service)
	for _, v := range d.Services[service].Volumes {
		parts := strings.Split(v, ":")
		source := filepath.Join(h.dir, parts[0])
		if _, named := d.Volumes[parts[0]]; named {
			source = filepath.Join(h.dir, "volumes", parts[0])
		}
		if err := os.MkdirAll(source, 0o700); err != nil {
			h.t.Fatal(err)
		}
		h.link(source, filepath.Join(root, parts[1]))
	}
	for at, secret := range d.Services[service].secrets() {
		h.link(filepath.Join(h.dir, d.Secrets[secret].File), filepath.Join(root, at))
	}
	return root
}

var address = regexp.MustCompile(`([a-z0-9-]+|0\.0\.0\.0|127\.0\.0\.1):([0-9]{4})\b`)

// words turns the words of a service into what its process is to see.
func (h *host) words(service string, words []string) (all []string) {
	for i, w := range words {
		before := append([]string{""}, words...)[i]
		switch {
		case strings.HasPrefix(w, "/"):
			w = h.root(service) + w
		case w == "0.0.0.0":
			w = "127.0.0.1"
		case before == "--server":
			w = "127.0.0.1:" + h.port(w, "6222")
		case strings.HasPrefix(service, "nats-") && (before == "-p" || before == "-m"):
			w = h.port(service, w)
		default:
			w = address.ReplaceAllStringFunc(w, func(a string) string {
				host, port, _ := strings.Cut(a, ":")
				if host == "0.0.0.0" || host == "127.0.0.1" {
					host = service
				}
				return "127.0.0.1:" + h.port(host, port)
			})
		}
		all = append(all, w)
	}
	return all
}

// process prepares a service, with other words in its command's stead where there are some.
func (h *host) process(service string, command ...string) *procs.Process {
	s := h.services().Services[service]
	if command == nil {
		command = s.Command
	}
	path := map[string]string{"learner": h.p.Learner, "ingest": h.p.Ingest}[command[0]]
	if path == "" {
		path, command = h.p.Server, append([]string{""}, command...)
	}
	args := h.words(service, command[1:])
	for name, value := range s.Environment {
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "PANLEARN_"), "_", "-"))
		args = append(args, fmt.Sprintf("--%s=%s", flag, h.words(service, []string{value})[0]))
	}
	return h.p.Process(h.t, service, path, args...)
}

func (h *host) up(services ...string) {
	h.t.Helper()
	for _, s := range services {
		if err := h.process(s).Start(); err != nil {
			h.t.Fatal(err)
		}
	}
}

// once runs a process to its end and returns what it printed.
func (h *host) once(ctx context.Context, q *procs.Process) string {
	h.t.Helper()
	err := q.Start()
	if err == nil {
		var exit procs.Exit
		if exit, err = q.Wait(ctx); err == nil && exit.Code != 0 {
			err = fmt.Errorf("%v", exit)
		}
	}
	if err != nil {
		h.t.Fatalf("%s: %v", q.Name, err)
	}
	out, err := q.Stdout()
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// healthy waits until the checks of services pass: a process of ours asks, and where an image has wget, the test does.
func (h *host) healthy(ctx context.Context, services ...string) {
	h.t.Helper()
	for _, service := range services {
		test := h.words(service, h.services().Services[service].Healthcheck.Test[1:])
		check := func() error {
			if test[0] == "learner" {
				out, err := exec.CommandContext(ctx, h.p.Learner, test[1:]...).CombinedOutput()
				if err != nil {
					err = fmt.Errorf("%w: %s", err, out)
				}
				return err
			}
			resp, err := http.Get(test[len(test)-1])
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					err = fmt.Errorf("%s", resp.Status)
				}
			}
			return err
		}
		tick := time.NewTicker(200 * time.Millisecond)
		for err := check(); err != nil; err = check() {
			select {
			case <-ctx.Done():
				h.t.Fatalf("%s: %v", service, err)
			case <-tick.C:
			}
		}
		tick.Stop()
	}
}

// write writes a file of the folder.
func (h *host) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// task writes a task of the folder: the quickstart's by another name, with changes.
func (h *host) task(name string, changes ...string) {
	h.t.Helper()
	text, err := os.ReadFile("tasks/quickstart.yaml")
	if err != nil {
		h.t.Fatal(err)
	}
	all := append([]string{"name: quickstart", "name: " + name, "users: 20000", "users: 607"}, changes...)
	h.write("tasks/"+name+".yaml", strings.NewReplacer(all...).Replace(string(text)))
}

// served has the certificates and tokens of the services over HTTP.
func (h *host) served() {
	h.t.Helper()
	from := filepath.Join(h.t.TempDir(), "authority")
	if out, err := exec.CommandContext(h.t.Context(), h.p.Learner, "devca", from).CombinedOutput(); err != nil {
		h.t.Fatalf("%v\n%s", err, out)
	}
	for _, service := range []string{"relay", "scorer", "issuer"} {
		for file, is := range map[string]string{service + "-http.pem": service + ".pem", service + "-http-key.pem": service + "-key.pem"} {
			text, err := os.ReadFile(filepath.Join(from, file))
			if err != nil {
				h.t.Fatal(err)
			}
			h.write("http/"+is, string(text))
		}
		h.write("http/"+service+"-token", "the-token-of-"+service+"-of-enough-letters")
	}
	text, err := os.ReadFile(filepath.Join(from, "ca.pem"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("http/ca.pem", string(text))
}

// counted publishes events to a task and returns how many were counted.
func (h *host) counted(ctx context.Context, task string, events int, connect ...string) (counted int) {
	h.t.Helper()
	data := filepath.Join(h.dir, task+".jsonl")
	args := append([]string{"publish", "-f", filepath.Join(h.dir, "tasks", task+".yaml"), "--data", data, "--json", "--state",
		filepath.Join(h.dir, "devices", task)}, connect...)
	h.once(ctx, h.p.Process(h.t, "generate-"+task, h.p.Ingest, "generate", "--events", fmt.Sprint(events), "--dim", "8", "--seed", "7", "-o", data))
	var sent struct{ Counted int }
	out := h.once(ctx, h.p.Process(h.t, "publish-"+task, h.p.Ingest, args...))
	if err := json.Unmarshal([]byte(out), &sent); err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
	return sent.Counted
}

// TestProduction runs every service of the production file as a process, with its command, its environment, its secrets
// and its volumes: those that run once in the documented order, three servers, and all roles, until a task has counted all
// who reported by way of the relay, and one of trust split all who reported by the broker. The checks of health are run, too.
// What it cannot show: containers, their users, limits and networks, images of others, and services of the once profile
// that run other programs (prepare).
func TestProduction(t *testing.T) {
	const users = 600
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	h := &host{t: t, p: programs(t), dir: t.TempDir(), ports: map[string]string{}, variables: map[string]string{"PANLEARN_IMAGE": "panlearn:v9",
		"SCORED": "ads"}}
	h.once(ctx, h.process("site"))
	h.variables["LEARNER_KEY"] = h.once(ctx, h.process("learner-key"))
	h.variables["STAGE_KEY"] = h.once(ctx, h.process("stage-key"))
	h.served()
	h.task("ads")
	issuer := h.once(ctx, h.process("issuer-key", "ingest", "keygen", "issuer", "--task", "churn", "/keys/churn"))
	h.task("churn", "privacy: {", "grants: pass\nissuer_key: "+issuer+"\n\nprivacy: {")
	servers := []string{"nats-1", "nats-2", "nats-3"}
	h.up(servers...)
	h.healthy(ctx, servers...)
	h.once(ctx, h.process("provision"))
	roles := []string{"scorer", "learner", "stage-1", "stage-2", "relay", "issuer"}
	h.up(roles...)
	h.healthy(ctx, roles...)
	if got := h.counted(ctx, "ads", users, "--relay", "https://127.0.0.1:"+h.port("relay", "8095"), "--relay-ca",
		filepath.Join(h.dir, "http/ca.pem"), "--relay-token", filepath.Join(h.dir, "http/relay-token")); got != users {
		t.Errorf("%d of %d users were counted", got, users)
	}
	h.once(ctx, h.process("retain", "learner", "retain", "--tasks", "/etc/panlearn/tasks"))
	for port, role := range map[string]string{h.port("learner", "9090"): "learner", h.port("stage-1", "9091"): "stage",
		h.port("relay", "9093"): "relay", h.port("scorer", "9094"): "scorer", h.port("issuer", "9094"): "issuer"} {
		if text := scrape(ctx, t, "127.0.0.1:"+port); !strings.Contains(string(text), "panlearn_"+role+"_") {
			t.Errorf("%s serves no metrics of its own", role)
		}
	}

	// Two operators: the same broker, in a folder of its own.
	s := &host{t: t, p: h.p, dir: t.TempDir(), ports: map[string]string{}, variables: map[string]string{"PANLEARN_IMAGE": "panlearn:v9",
		"LEARNER_KEY": h.variables["LEARNER_KEY"]}}
	for _, server := range servers {
		s.ports[server+":4222"] = h.port(server, "4222")
	}
	s.link(filepath.Join(h.dir, "site"), filepath.Join(s.dir, "site"))
	s.variables["STAGE_KEY"] = s.once(ctx, s.process("leader-key"))
	s.variables["HELPER_KEY"] = s.once(ctx, s.process("helper-key"))
	s.task("both", "privacy: {", fmt.Sprintf("privacy: {trust: split, operators: {leader: %s, helper: %s, one: true}, ",
		s.variables["STAGE_KEY"], s.variables["HELPER_KEY"]))
	s.once(ctx, s.process("provision"))
	s.up("learner", "leader", "helper")
	s.healthy(ctx, "learner", "leader", "helper")
	s.once(ctx, s.p.Process(t, "publisher", s.p.Learner, "site", "add-publisher", filepath.Join(h.dir, "site"), "shop"))
	if got := s.counted(ctx, "both", users, "--nats", s.words("learner", []string{"tls://nats-1:4222"})[0], "--creds",
		filepath.Join(h.dir, "site/users/shop.creds"), "--tls-ca", filepath.Join(h.dir, "site/users/ca.pem")); got != users {
		t.Errorf("%d of %d users of two operators were counted", got, users)
	}
}
