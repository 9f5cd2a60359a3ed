package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// An object holds the parts of a Kubernetes object that tests need.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		JobTemplate struct {
			Spec struct {
				Template podTemplate
			}
		} `yaml:"jobTemplate"` // of a CronJob
		Replicas *int
		TTL      *int `yaml:"ttlSecondsAfterFinished"`
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template podTemplate
		Claims   []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type podTemplate struct {
	Metadata struct{ Labels map[string]string }
	Spec     pod
}

type pod struct {
	AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
	SecurityContext              struct {
		RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
		SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	InitContainers []container `yaml:"initContainers"`
	Containers     []container
	Volumes        []struct{ Name string }
}

type container struct {
	Name, Image   string
	Command, Args []string
	Env           []struct{ Name, Value string }
	Ports         []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
	Resources struct {
		Requests, Limits map[string]string
	}
	VolumeMounts   []struct{ Name, MountPath string } `yaml:"volumeMounts"`
	StartupProbe   *probe                             `yaml:"startupProbe"`
	LivenessProbe  *probe                             `yaml:"livenessProbe"`
	ReadinessProbe *probe                             `yaml:"readinessProbe"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// taskFolder has the manifests of a task.
const taskFolder = "kubernetes"

// folders are all folders of manifests: those of a task, of the helper of another organisation, and of an issuer.
var folders = []string{taskFolder, "kubernetes/helper", "kubernetes/issuer"}

// releases are the files with what the chart renders for a set of values each.
func releases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("helm/testdata/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files of what the chart renders, %v", len(files), err)
	}
	return files
}

// everything returns the objects of all folders of manifests and of all that the chart renders.
func everything(t *testing.T) (all []object) {
	t.Helper()
	for _, folder := range folders {
		all = append(all, objects(t, folder)...)
	}
	for _, file := range releases(t) {
		all = append(all, parsed(t, file)...)
	}
	return all
}

// parsed returns the objects of one file.
func parsed(t *testing.T, file string) (all []object) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if o.Kind == "CronJob" {
			o.Spec.Template = o.Spec.JobTemplate.Spec.Template
		}
		all = append(all, o)
	}
}

// objects returns the objects of the manifests that the kustomization of a folder names.
func objects(t *testing.T, folder string) (all []object) {
	t.Helper()
	var k struct{ Resources []string }
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range k.Resources {
		all = append(all, parsed(t, filepath.Join(folder, file))...)
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.yaml"))
	files = slices.DeleteFunc(files, func(f string) bool {
		return slices.Contains([]string{"kustomization.yaml", "task.yaml"}, filepath.Base(f))
	})
	if len(files) != len(k.Resources) {
		t.Errorf("the kustomization of %s names %d of %d manifests", folder, len(k.Resources), len(files))
	}
	return all
}

// podLines returns the command lines in the manifests.
func podLines(t *testing.T) (all []line) {
	t.Helper()
	for _, o := range everything(t) {
		spec := o.Spec.Template.Spec
		for _, c := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
			if c.Command[0] == "sh" { // which copies a key
				continue
			}
			env := map[string]string{}
			for _, e := range c.Env {
				env[e.Name] = e.Value
			}
			all = append(all, line{"kubernetes: " + o.Metadata.Name, append(slices.Clone(c.Command), c.Args...), env})
		}
	}
	if len(all) < 3 {
		t.Errorf("%d containers in the manifests", len(all))
	}
	return all
}

// TestPods: every container has no more than it needs, reads keys and tokens that its user alone can read, and those
// that serve have probes at the port where they serve.
func TestPods(t *testing.T) {
	var kinds []string
	for _, o := range everything(t) {
		kinds = append(kinds, o.Kind+" "+o.Metadata.Name)
		// A Job is immutable: one that stays could not be applied again with a new image.
		if o.Kind == "Job" && (o.Spec.TTL == nil || *o.Spec.TTL > 600) {
			t.Errorf("Job %s stays after its end", o.Metadata.Name)
		}
		spec := o.Spec.Template.Spec
		if len(spec.Containers) == 0 {
			continue
		}
		if !spec.SecurityContext.RunAsNonRoot || spec.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
			spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s: want a user who is not root, seccomp, and no token", o.Metadata.Name)
		}
		for label, value := range o.Spec.Selector.MatchLabels {
			if o.Spec.Template.Metadata.Labels[label] != value {
				t.Errorf("%s: the selector does not select its pods", o.Metadata.Name)
			}
		}
		var volumes []string
		for _, v := range spec.Volumes {
			volumes = append(volumes, v.Name)
		}
		var claimed []string
		for _, v := range o.Spec.Claims {
			claimed = append(claimed, v.Metadata.Name)
		}
		for _, c := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
			where := o.Metadata.Name + "/" + c.Name
			s := c.SecurityContext
			if !s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("%s: want a root that is read only, no privileges to gain and no capabilities", where)
			}
			if c.Resources.Limits["memory"] == "" || c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" {
				t.Errorf("%s: want a limit of memory, and requests", where)
			}
			for _, m := range c.VolumeMounts {
				if alone := o.Metadata.Name == "helper" || o.Metadata.Name == "issuer"; alone &&
					(o.Kind != "StatefulSet" || o.Spec.Replicas == nil || *o.Spec.Replicas != 1) {
					t.Errorf("%s: want one process, with a volume that outlives it", where)
				}
				if !slices.Contains(volumes, m.Name) && !slices.Contains(claimed, m.Name) {
					t.Errorf("%s: no volume %s", where, m.Name)
				}
			}
			for i, word := range c.Command {
				if slices.Contains([]string{"--identity", "--http-token", "--relay-token", "--gateway-token", "--issuer-key"},
					word) &&
					strings.HasPrefix(c.Command[i+1], "/secrets/") {
					t.Errorf("%s: %s of a file that the group reads, too", where, word)
				}
			}
			if len(c.Ports) == 0 {
				continue
			}
			if p := c.Ports[0]; c.Command[len(c.Command)-1] != "0.0.0.0:"+map[int]string{9090: "9090",
				9091: "9091", 9093: "9093", 9094: "9094"}[p.ContainerPort] {
				t.Errorf("%s: serves at %s, the port is %d", where, c.Command[len(c.Command)-1], p.ContainerPort)
			}
			if c.StartupProbe == nil || c.LivenessProbe == nil || c.ReadinessProbe == nil {
				t.Errorf("%s: want three probes", where)
			} else if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" ||
				c.ReadinessProbe.HTTPGet.Port != c.Ports[0].Name {
				t.Errorf("%s: probes ask %v and %v", where, c.LivenessProbe.HTTPGet, c.ReadinessProbe.HTTPGet)
			}
		}
	}
	for _, want := range []string{"StatefulSet learner", "Deployment stage", "Deployment relay", "Job provision",
		"CronJob retain",
		"PodDisruptionBudget stage", "PodDisruptionBudget learner",
		"NetworkPolicy default-deny", "Namespace panlearn", "StatefulSet helper", "Namespace panlearn-helper",
		"StatefulSet issuer", "Namespace panlearn-issuer",
		"Deployment scorer", "ConfigMap tasks"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no %s", want)
		}
	}
	shipped, _ := os.ReadFile("tasks/quickstart.yaml")
	if copied, err := os.ReadFile("kubernetes/task.yaml"); err != nil || !bytes.Equal(shipped, copied) {
		t.Errorf("kubernetes/task.yaml is not tasks/quickstart.yaml (%v)", err)
	}
}

// TestKustomization: kubectl makes of each folder the objects of its manifests, each in the namespace, with our image
// and the generated maps.
func TestKustomization(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Log("NOT RUN: kubectl kustomize: not installed")
		return
	}
	for i, namespace := range []string{"panlearn", "panlearn-helper", "panlearn-issuer"} {
		out, err := exec.CommandContext(t.Context(), "kubectl", "kustomize", folders[i]).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		made, maps := 0, 0
		for d := yaml.NewDecoder(bytes.NewReader(out)); ; made++ {
			var o struct {
				Kind     string
				Metadata struct{ Name, Namespace string }
			}
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if o.Kind == "ConfigMap" {
				maps++
			}
			if o.Metadata.Namespace != namespace && o.Kind != "Namespace" {
				t.Errorf("%s %s is in namespace %q", o.Kind, o.Metadata.Name, o.Metadata.Namespace)
			}
		}
		if want := len(objects(t, folders[i])) + maps; made != want || maps == 0 {
			t.Errorf("%s: %d objects, %d of them maps, want %d", folders[i], made, maps, want)
		}
		if bytes.Contains(out, []byte("image: panlearn\n")) ||
			!bytes.Contains(out, []byte("image: registry.example/panlearn:")) {
			t.Errorf("%s: our image is not replaced everywhere", folders[i])
		}
		if regexp.MustCompile(`configMap:\s+name: task\n`).Match(out) {
			t.Errorf("%s: a pod mounts the task by a name that no map has", folders[i])
		}
	}
}

// TestIssuersTask: the task file beside the issuer's manifests is one that the issuer would take.
func TestIssuersTask(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), programs(t).Learner, "plan", "-f", "kubernetes/issuer/task.yaml",
		"--json").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
