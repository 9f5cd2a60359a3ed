package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// A topology runs services of compose.yaml as plain processes: each has a root folder in which its volumes are
// links, and sees paths below it where the container has paths below /.
type topology struct {
	t       *testing.T
	compose composition
	dir     string
	hosts   *strings.Replacer
}

func (n *topology) root(service string) string {
	root := filepath.Join(n.dir, "root", service)
	for _, v := range n.compose.Services[service].Volumes {
		parts := strings.Split(v, ":")
		source, err := filepath.Abs(parts[0])
		if _, named := n.compose.Volumes[parts[0]]; named {
			source = filepath.Join(n.dir, "volumes", parts[0])
			err = os.MkdirAll(source, 0o700)
		}
		at := filepath.Join(root, parts[1])
		if err == nil {
			err = os.MkdirAll(filepath.Dir(at), 0o700)
		}
		if _, there := os.Lstat(at); err == nil && there != nil {
			err = os.Symlink(source, at)
		}
		if err != nil {
			n.t.Fatal(err)
		}
	}
	return root
}

// inside turns a word of the service's command or environment into what the process is to see.
func (n *topology) inside(service, word string) string {
	if strings.HasPrefix(word, "/") {
		return n.root(service) + word
	}
	return n.hosts.Replace(word)
}

func (n *topology) args(service string, words []string, more ...string) (args []string) {
	for _, w := range words {
		args = append(args, n.inside(service, w))
	}
	for name, value := range n.compose.Services[service].Environment {
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "PANLEARN_"), "_", "-"))
		args = append(args, fmt.Sprintf("--%s=%s", flag, n.inside(service, value)))
	}
	return append(args, more...)
}

// process prepares a service whose command begins with one of ours.
func (n *topology) process(p *procs.Programs, service string, more ...string) *procs.Process {
	words := n.compose.Services[service].Command
	path := map[string]string{"learner": p.Learner, "ingest": p.Ingest}[words[0]]
	return p.Process(n.t, service, path, n.args(service, words[1:], more...)...)
}

// setup runs setup.sh as the service does.
func (n *topology) setup(p *procs.Programs, users int) {
	cmd := exec.CommandContext(n.t.Context(), "sh", "setup.sh")
	cmd.Env = []string{"PATH=" + filepath.Dir(p.Learner) + ":" + os.Getenv("PATH"), "HOME=" + n.dir, "OWNER=",
		fmt.Sprint("USERS=", users)}
	for name, value := range n.compose.Services["setup"].Environment {
		if name != "USERS" {
			cmd.Env = append(cmd.Env, name+"="+n.inside("setup", value))
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("setup.sh: %v\n%s", err, out)
	}
}

// scrape reads /metrics once the endpoint is there and the service is ready.
func scrape(ctx context.Context, t *testing.T, address string) []byte {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+path, nil)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		return body, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := get("/readyz")
		if err == nil {
			body, err := get("/metrics")
			if err != nil {
				t.Fatal(err)
			}
			return body
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v, then %v", address, err, ctx.Err())
		case <-tick.C:
		}
	}
}

var helpLine = regexp.MustCompile(`(?m)^# TYPE (panlearn_[a-z_]+) ([a-z]+)$`)

// checkScrape checks that promtool finds no fault in the metrics of a role, and that the role serves the
// metrics of the table, except for vectors in which nothing happened yet.
func checkScrape(t *testing.T, prefix string, text []byte) {
	t.Helper()
	promtoolReads(t, text)
	doc, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	for _, m := range helpLine.FindAllStringSubmatch(string(text), -1) {
		served = append(served, m[1])
		if !strings.Contains(string(doc), fmt.Sprintf("\n| `%s` | %s |", m[1], m[2])) {
			t.Errorf("%s serves %s, a %s, which the table does not have", prefix, m[1], m[2])
		}
	}
	later := []string{"panlearn_stage_broker_failures_total", "panlearn_scorer_read_failures_total"}
	for _, m := range row.FindAllStringSubmatch(string(doc), -1) {
		ofBroker := strings.HasPrefix(m[1], "panlearn_broker_") || strings.HasPrefix(m[1], "panlearn_certificate_")
		if (strings.HasPrefix(m[1], prefix) || ofBroker && prefix != "panlearn_scorer_") && !slices.Contains(served, m[1]) &&
			!slices.Contains(later, m[1]) {
			t.Errorf("the table has %s, which is not served", m[1])
		}
	}
}

// predicts posts an event to the scorer as its clients do, once it has a model.
func (n *topology) predicts(ctx context.Context, address string) {
	n.t.Helper()
	secret := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(n.root("scorer"), "secrets", name))
		if err != nil {
			n.t.Fatal(err)
		}
		return text
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(secret("ca.pem"))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, "POST", "https://"+address+"/v1/models/quickstart/predictions",
			strings.NewReader(`{"x0":1,"x1":0,"x2":0,"x3":0,"x4":0,"x5":0,"x6":0,"x7":0}`))
		if err != nil {
			n.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+string(secret("token")))
		resp, err := client.Do(req)
		status, body := 0, []byte(nil)
		if err == nil {
			status = resp.StatusCode
			body, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		switch {
		case status == http.StatusOK && bytes.Contains(body, []byte(`"probability":`)):
			return
		case status != 0 && status != http.StatusServiceUnavailable:
			n.t.Fatalf("the scorer answers %d: %s", status, body)
		}
		select {
		case <-ctx.Done():
			n.t.Fatalf("the scorer: status %d, %v, then %v", status, err, ctx.Err())
		case <-tick.C:
		}
	}
}

// promtoolReads runs promtool check metrics on the text, if promtool is installed.
func promtoolReads(t *testing.T, text []byte) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("NOT RUN: promtool check metrics: not installed (Debian's package prometheus has it)")
		return
	}
	cmd := exec.CommandContext(t.Context(), path, "check", "metrics")
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// TestTopology runs the services of compose.yaml as processes, with its commands, its environment and its volumes:
// broker with accounts and TLS, provisioning, learner, stage and load generator, until every event is counted. What
// it cannot show is the containers.
func TestTopology(t *testing.T) {
	const users = 600
	p := programs(t)
	ports, err := procs.FreePorts(9)
	if err != nil {
		t.Fatal(err)
	}
	local := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	n := &topology{t: t, compose: readCompose(t), dir: t.TempDir(),
		hosts: strings.NewReplacer("nats:4222", local(0), "0.0.0.0:9090", local(2), "0.0.0.0:9091", local(3), "0.0.0.0:9092",
			local(4), "0.0.0.0:9093", local(5), "0.0.0.0:8095", local(6), "0.0.0.0:9094", local(7), "0.0.0.0:8097", local(8), "learner:9090", local(2), "stage:9091", local(3), "0.0.0.0", "127.0.0.1")}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	start := func(q *procs.Process) *procs.Process {
		t.Helper()
		if err := q.Start(); err != nil {
			t.Fatal(err)
		}
		return q
	}
	done := func(q *procs.Process) {
		t.Helper()
		if exit, err := q.Wait(ctx); err != nil || exit.Code != 0 {
			t.Fatalf("%s: %v, %v", q.Name, exit, err)
		}
	}
	n.setup(p, users)
	n.setup(p, users) // changes nothing
	broker := slices.DeleteFunc(n.args("nats", n.compose.Services["nats"].Command),
		func(a string) bool { return a == "-m" || a == "8222" })
	start(p.Process(t, "nats", p.Server, append(broker, "-p", fmt.Sprint(ports[0]), "-m", fmt.Sprint(ports[1]))...))
	fewer := fmt.Sprintf("--set=schedule.users=%d", users+7) // and seven to spare
	done(start(n.process(p, "provision", fewer)))
	scorer := start(n.process(p, "scorer", "--every=100ms")) // which waits for the learner
	start(n.process(p, "learner", fewer))
	stage := start(n.process(p, "stage"))
	relay := start(n.process(p, "relay"))
	checkScrape(t, "panlearn_relay_", scrape(ctx, t, local(5)))
	if said, err := os.ReadFile(relay.Log()); err != nil || bytes.Contains(said, []byte("chmod 600")) {
		t.Errorf("others can read the token of the relay (%v): %s", err, said)
	}
	n.predicts(ctx, local(8))
	checkScrape(t, "panlearn_scorer_", scrape(ctx, t, local(7)))
	if said, err := os.ReadFile(scorer.Log()); err != nil || bytes.Contains(said, []byte("chmod 600")) {
		t.Errorf("others can read the token of the scorer (%v): %s", err, said)
	}
	checkScrape(t, "panlearn_stage_", scrape(ctx, t, local(3)))
	publisher := start(n.process(p, "publisher", fewer))
	checkScrape(t, "panlearn_publisher_", scrape(ctx, t, local(4)))
	done(publisher)
	out, err := publisher.Stdout()
	if err != nil {
		t.Fatal(err)
	}
	var sent struct{ Events, Counted int }
	if err := json.Unmarshal(out, &sent); err != nil || sent.Events != users || sent.Counted != users {
		t.Errorf("the load generator sent %+v (%v), want %d counted", sent, err, users)
	}
	done(stage) // ends with the task
	text := scrape(ctx, t, local(2))
	checkScrape(t, "panlearn_learner_", text)
	if !bytes.Contains(text, []byte(fmt.Sprintf("panlearn_learner_reports_total{task=\"quickstart\"} %d\n", users))) {
		t.Errorf("the learner did not count %d users:\n%s", users,
			regexp.MustCompile(`(?m)^panlearn_learner_users.*$`).Find(text))
	}
}
