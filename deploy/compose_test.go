package deploy

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A service of compose.yaml: the keys that it uses, and no others.
type service struct {
	Image        string
	Build        struct{ Context, Dockerfile, Target string }
	Command      []string
	Environment  map[string]string
	User         string
	ReadOnly     bool     `yaml:"read_only"`
	CapDrop      []string `yaml:"cap_drop"`
	SecurityOpt  []string `yaml:"security_opt"`
	Ulimits      map[string]int
	Restart      string
	NetworkMode  string                                `yaml:"network_mode"`
	DependsOn    map[string]struct{ Condition string } `yaml:"depends_on"`
	Volumes      []string
	Tmpfs        []string
	Ports        []string
	Pid          string
	MemLimit     string `yaml:"mem_limit"`
	MemswapLimit string `yaml:"memswap_limit"`
}

type composition struct {
	Name      string
	XPanlearn any `yaml:"x-panlearn"`
	XBroker   any `yaml:"x-broker"`
	Services  map[string]service
	Volumes   map[string]any
}

func readCompose(t *testing.T) (c composition) {
	t.Helper()
	strict(t, "compose.yaml", &c)
	return c
}

// TestCompose: what compose.yaml refers to is there, and nothing is open or privileged that need not be.
func TestCompose(t *testing.T) {
	c := readCompose(t)
	for _, want := range []string{"setup", "nats", "provision", "learner", "stage", "publisher", "prometheus", "grafana"} {
		if c.Services[want].Image == "" {
			t.Errorf("no service %s", want)
		}
	}
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	mounted := map[string]bool{}
	for name, s := range c.Services {
		if tag := regexp.MustCompile(`:[v0-9.]+$`); s.Build.Target == "" && !tag.MatchString(s.Image) {
			t.Errorf("%s: image %s has no version", name, s.Image)
		}
		if s.Build.Target != "" && !strings.Contains(string(dockerfile), " AS "+s.Build.Target+"\n") {
			t.Errorf("%s: the Dockerfile has no stage %s", name, s.Build.Target)
		}
		if s.Image == "panlearn" && (!s.ReadOnly || s.User == "" || !slices.Contains(s.CapDrop, "ALL") || len(s.SecurityOpt) == 0) {
			t.Errorf("%s: want a user, a root that is read only, and no capabilities", name)
		}
		for dependency := range s.DependsOn {
			if c.Services[dependency].Image == "" {
				t.Errorf("%s depends on %s, which is not there", name, dependency)
			}
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			mounted[source] = true
			if _, named := c.Volumes[source]; named || source == "/" {
				continue
			}
			if _, err := os.Stat(source); err != nil || !strings.HasPrefix(source, "./") {
				t.Errorf("%s mounts %s, which is neither a volume nor in this folder", name, v)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to the network", name, p)
			}
		}
	}
	for v := range c.Volumes {
		if !mounted[v] {
			t.Errorf("nobody mounts volume %s", v)
		}
	}
	// Each role sees its own secrets alone.
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			if role, isSecret := strings.CutPrefix(v, "secrets-"); isSecret && name != "setup" && name != "provision" && !strings.HasPrefix(role, name+":") {
				t.Errorf("%s mounts %s", name, v)
			}
		}
	}
}

// TestComposeSchema: docker-compose knows every key. Debian's, 1.29, needs no engine for that; it does not know the project's name.
func TestComposeSchema(t *testing.T) {
	if _, err := exec.LookPath("docker-compose"); err != nil {
		t.Log("NOT RUN: docker-compose config: not installed (Debian's package docker-compose)")
		return
	}
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	nameless := strings.Replace(string(text), "\nname: panlearn\n", "\n", 1)
	config := func(text string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "docker-compose", "-f", "-", "--project-directory", ".", "config", "-q")
		cmd.Stdin = strings.NewReader(text)
		return cmd.CombinedOutput()
	}
	if out, err := config(nameless); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := config(strings.Replace(nameless, "cap_drop:", "cap_drip:", 1)); err == nil || !strings.Contains(string(out), "cap_drip") {
		t.Errorf("an unknown key passes: %v\n%s", err, out)
	}
}

// TestScrapeTargets: Prometheus scrapes services that are there, at the ports where they serve.
func TestScrapeTargets(t *testing.T) {
	c := readCompose(t)
	var config struct {
		Global        any      `yaml:"global"`
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	strict(t, "prometheus/prometheus.yml", &config)
	for _, job := range config.ScrapeConfigs {
		for _, target := range job.StaticConfigs[0].Targets {
			host, port, _ := strings.Cut(target, ":")
			s, found := c.Services[host]
			if !found {
				t.Errorf("%s: no service %s", job.JobName, host)
			}
			if strings.HasPrefix(job.JobName, "panlearn-") && (!slices.Contains(s.Command, "0.0.0.0:"+port) || job.JobName != "panlearn-"+host) {
				t.Errorf("%s: %s does not serve at %s: %v", job.JobName, host, port, s.Command)
			}
		}
	}
}
