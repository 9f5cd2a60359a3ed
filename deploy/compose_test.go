package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// A service of a compose file: what tests look at. docker-compose config knows every key.
type service struct {
	Image       string
	Build       map[string]any
	Command     []string
	Environment map[string]string
	User        string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Volumes     []string
	Ports       []string

	// Of the production file:
	Profiles     []string
	Restart      string
	PidsLimit    int `yaml:"pids_limit"`
	Pid          string
	MemLimit     string `yaml:"mem_limit"`
	MemSwapLimit string `yaml:"memswap_limit"`
	Healthcheck  struct{ Test []string }
	Secrets      []any // a name, or source and target
}

type composition struct {
	Services map[string]service
	Volumes  map[string]any
}

func readCompose(t *testing.T) composition {
	t.Helper()
	return composed(t, "compose.yaml")
}

func composed(t *testing.T, file string) (c composition) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestComposeIsClosed: nothing is open or privileged that need not be, and each role sees its own secrets alone.
func TestComposeIsClosed(t *testing.T) {
	ours := 0
	for name, s := range readCompose(t).Services {
		if s.Image == "panlearn" {
			ours++
			if !s.ReadOnly || s.User == "" || !slices.Contains(s.CapDrop, "ALL") || len(s.SecurityOpt) == 0 {
				t.Errorf("%s: want a user, a root that is read only, and no capabilities", name)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network", name, p)
			}
		}
		for _, v := range s.Volumes {
			if role, isSecret := strings.CutPrefix(v, "secrets-"); isSecret && name != "setup" && name != "provision" &&
				name != "retain" && !strings.HasPrefix(role, name+":") {
				t.Errorf("%s mounts %s", name, v)
			}
		}
	}
	if ours < 4 { // provision, learner, stage, publisher
		t.Errorf("%d services of ours", ours)
	}
}

// TestComposeSplit: what is laid over compose.yaml for two operators on one machine says that it is one operator, gives
// the helper no more than the others have, and lays it over services that are there.
func TestComposeSplit(t *testing.T) {
	base, over := readCompose(t).Services, composed(t, "compose.split.yaml").Services
	for name, s := range over {
		switch _, there := base[name]; {
		case !there && name != "helper":
			t.Errorf("%s is laid over nothing", name)
		case there && name != "setup" && (s.Image != "" || len(s.Volumes) > 0 || len(s.Ports) > 0):
			t.Errorf("%s: want another command alone", name)
		}
	}
	h := over["helper"]
	if !h.ReadOnly || h.User == "" || !slices.Contains(h.CapDrop, "ALL") || len(h.SecurityOpt) == 0 || len(h.Ports) > 0 ||
		!slices.Equal(h.Volumes, []string{"secrets-helper:/secrets:ro", "state-helper:/state"}) {
		t.Errorf("the helper: %+v", h)
	}
	text, err := os.ReadFile("compose.split.yaml")
	if err != nil || !strings.Contains(string(text), "ONE OPERATOR") {
		t.Errorf("it does not say that it is one operator: %v", err)
	}
}

// overlays are laid over compose.yaml for more roles.
var overlays = []string{"compose.split.yaml", "compose.issuer.yaml"}

// TestComposeIssuer: the issuer is closed as the others are, its key and its list are on volumes of its own, and what
// it is laid over is there.
func TestComposeIssuer(t *testing.T) {
	base, over := readCompose(t).Services, composed(t, "compose.issuer.yaml").Services
	for name, s := range over {
		switch _, there := base[name]; {
		case there && name != "setup" || !there && s.Image != "panlearn":
			t.Errorf("%s: want setup and services of ours", name)
		case !there && (!s.ReadOnly || s.User == "" || !slices.Contains(s.CapDrop, "ALL") || len(s.SecurityOpt) == 0):
			t.Errorf("%s is open: %+v", name, s)
		}
	}
	for _, volume := range []string{"issuer-key:/key", "issuer-list:/state", "secrets-issuer:/secrets:ro"} {
		if !slices.Contains(over["issuer"].Volumes, volume) {
			t.Errorf("the issuer does not mount %s", volume)
		}
	}
}

// TestComposeSchema: docker-compose knows every key. Debian's, 1.29, needs no engine for that; it does not know the
// project's name.
func TestComposeSchema(t *testing.T) {
	if _, err := exec.LookPath("docker-compose"); err != nil {
		t.Log("NOT RUN: docker-compose config: not installed (Debian's package docker-compose)")
		return
	}
	config := func(text string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "docker-compose", "-f", "-", "--project-directory", ".", "config", "-q")
		cmd.Stdin = strings.NewReader(text)
		cmd.Env = append(os.Environ(), "PANLEARN_IMAGE=panlearn:v9")
		return cmd.CombinedOutput()
	}
	for _, file := range []string{"compose.yaml", productionFile} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		nameless := regexp.MustCompile(`(?m)^name: .*$`).ReplaceAllString(string(text), "")
		if out, err := config(nameless); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
		if out, err := config(strings.Replace(nameless, "cap_drop:", "cap_drip:", 1)); err == nil ||
			!strings.Contains(string(out), "cap_drip") {
			t.Errorf("%s: an unknown key passes: %v\n%s", file, err, out)
		}
	}
}

// TestScrapeTargets: Prometheus scrapes services that are there, at the ports where they serve.
func TestScrapeTargets(t *testing.T) {
	c := readCompose(t)
	var config struct {
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
			DNS           []struct {
				Names []string
				Type  string
				Port  int
			} `yaml:"dns_sd_configs"`
			Relabel []struct {
				Target string `yaml:"target_label"`
			} `yaml:"relabel_configs"`
		} `yaml:"scrape_configs"`
	}
	text, err := os.ReadFile("prometheus/prometheus.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &config)
	}
	if err != nil || len(config.ScrapeConfigs) == 0 {
		t.Fatalf("%+v, %v", config, err)
	}
	for _, job := range config.ScrapeConfigs {
		var targets []string
		for _, static := range job.StaticConfigs {
			targets = append(targets, static.Targets...)
		}
		for _, dns := range job.DNS {
			targets = append(targets, fmt.Sprintf("%s:%d", dns.Names[0], dns.Port))
		}
		if len(targets) == 0 {
			t.Errorf("%s scrapes nothing", job.JobName)
		}
		// compose up --scale stage=2: a static target would be one of the two, another one each time.
		if job.JobName == "panlearn-stage" && (len(job.DNS) != 1 || job.DNS[0].Type != "A" || len(job.Relabel) != 1 ||
			job.Relabel[0].Target != "instance") {
			t.Errorf("%s: want each address of the service, named as an instance: %+v", job.JobName, job)
		}
		for _, target := range targets {
			host, port, _ := strings.Cut(target, ":")
			s, found := c.Services[host]
			for _, over := range overlays {
				if !found {
					s, found = composed(t, over).Services[host]
				}
			}
			if !found {
				t.Errorf("%s: no service %s", job.JobName, host)
			}
			if strings.HasPrefix(job.JobName, "panlearn-") && (!slices.Contains(s.Command, "0.0.0.0:"+port) ||
				job.JobName != "panlearn-"+host) {
				t.Errorf("%s: %s does not serve at %s: %v", job.JobName, host, port, s.Command)
			}
		}
	}
}
