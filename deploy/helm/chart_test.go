package helm

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

var update = flag.Bool("update", false, "write what the chart renders to deploy/kubernetes and testdata")

// values returns the values of a file in the folder values, with changes laid over them.
func values(t *testing.T, set string, changes ...string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("values", set+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := loader.LoadValues(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		over, err := loader.LoadValues(strings.NewReader(c))
		if err != nil {
			t.Fatal(err)
		}
		all = loader.MergeMaps(all, over)
	}
	return all
}

func loaded(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir("panlearn")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render returns the files that the chart makes of values, by the names of their templates, without those that are
// empty.
func render(t *testing.T, with map[string]any) (map[string]string, error) {
	t.Helper()
	c := loaded(t)
	all, err := util.ToRenderValues(c, with, common.ReleaseOptions{Name: "panlearn", Namespace: "panlearn", Revision: 1,
		IsInstall: true},
		common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	out, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range out {
		if text = strings.TrimSpace(text); text != "" && filepath.Ext(name) == ".yaml" {
			files[filepath.Base(name)] = text + "\n"
		}
	}
	return files, nil
}

// kept compares a text with a file, or writes it there with -update.
func kept(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != text {
		t.Errorf("%s is not what the chart renders: go test . -update, in deploy/helm", file)
	}
}

// TestManifests: deploy/kubernetes is what the chart renders, file by file.
func TestManifests(t *testing.T) {
	for set, folder := range map[string]string{"kubernetes": "", "kubernetes-helper": "helper",
		"kubernetes-issuer": "issuer"} {
		files, err := render(t, values(t, set))
		if err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		for name, text := range files {
			kept(t, filepath.Join("../kubernetes", folder, name),
				"# Rendered from deploy/helm by `go test . -update` there.\n"+text)
		}
		// And nothing else is there but what kustomize reads.
		there, err := filepath.Glob(filepath.Join("../kubernetes", folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range there {
			if base := filepath.Base(f); files[base] == "" && !slices.Contains([]string{"kustomization.yaml", "namespace.yaml",
				"task.yaml"}, base) {
				t.Errorf("%s is rendered by nothing", f)
			}
		}
	}
}

// TestReleases: testdata has the whole of what the chart renders for each set of values. The tests of deploy read it:
// its command lines, what its pods may do, its types.
func TestReleases(t *testing.T) {
	for _, set := range []string{"one", "many", "issuer", "issuers", "helper", "helpers", "leader"} {
		files, err := render(t, values(t, set))
		if err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		var names, texts []string
		for name := range files {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			texts = append(texts, files[name])
		}
		kept(t, filepath.Join("testdata", set+".yaml"), strings.Join(texts, "---\n"))
	}
}

// TestLint: Helm's linter finds no error and no warning, by every set of values.
func TestLint(t *testing.T) {
	for _, set := range []string{"kubernetes", "kubernetes-helper", "kubernetes-issuer", "one", "many", "issuer",
		"issuers", "helper", "helpers", "leader"} {
		for _, m := range lint.RunAll("panlearn", values(t, set), "panlearn").Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %s", set, m)
			}
		}
	}
}

// TestBadValuesAreRefused by the schema, or by the templates, with the name of the value.
func TestBadValuesAreRefused(t *testing.T) {
	for _, bad := range []struct{ set, change, want string }{
		{"one", "learnr: {}", "learnr"},
		{"one", "learner: {replicas: 2}", "replicas"}, // there is one learner
		{"one", "broker: {replicas: 2}", "/broker/replicas"},
		{"one", "broker: {url: nats://a:4222}", "/broker/url"}, // without TLS
		{"one", "broker: {users: none}", "/broker/users"},
		{"one", "broker: {wait: 60}", "/broker/wait"},
		{"one", "stage: {replicas: two}", "/stage/replicas"},
		{"one", "stage: {args: [drain]}", "/stage/args/0"},
		{"one", "learner: {storage: 10}", "/learner/storage"},
		{"one", "learner: {resources: {limits: {memory: much}}}", "/learner/resources/limits/memory"},
		{"one", "task: {name: Churn}", "/task/name"},
		{"one", "task: {name: ads}", "task: the file declares name: churn"},
		{"one", "task: {file: ''}", "/task/file"},
		{"one", "tasks: {ads: 'name: ads'}", "/tasks"}, // one and many
		{"one", "scorer: {from: [learner]}", "/scorer/from/0"},
		{"one", "task: {file: 'nonsense: ['}", "task: the file declares name: none"},
		{"one", "task: {file: \"name: churn\\nprivacy: {trust: split}\"}", "set stage.leader.helperKey"},
		{"leader", "task: {file: 'name: churn'}", "without stage.leader"}, // of one operator
		{"leader", "learner: {stageKey: ''}", "set learner.stageKey"},
		{"leader", "learner: {stageKey: ab}", "/learner/stageKey"},
		{"leader", "stage: {leader: {learnerKey: ''}}", "/stage/leader/learnerKey"},
		{"leader", "stage: {leader: {helperKey: ''}}", "/stage/leader/learnerKey"},
		{"issuers", "tasks: {churn_1: 'name: churn_1', spam: 'name: spam'}", "none has grants: pass"},
		{"one", "learner: null", "learner"},
		{"one", "broker: {url: 'tls://me:secret@a:4222'}", "/broker/url"}, // everybody may read it
		{"one", "retain: {schedule: hourly please}", "/retain/schedule"},
		{"many", "tasks: null", "tasks"},
		{"many", "tasks: {ads: \"name: ads\\nprivacy: {trust: split}\"}", "tasks.ads: privacy.trust: split wants a leader"},
		{"many", "tasks: {ads: 'name: other'}", "tasks.ads: the file declares name: other"},
		{"many", "tasks: {ads: ''}", "/tasks/ads"},
		{"many", "task: {name: churn, file: 'name: churn'}", "/task"},
		{"many", "issuer: {enabled: true}", "/issuer"}, // neither header nor JWT
		{"many", "tasks: {large: '" + strings.Repeat("x", 1<<20) + "'}", "1 MiB"},
		{"issuer", "issuer: {personHeader: X-User}", "/issuer"}, // header and JWT
		{"issuer", "issuer: {jwt: {audience: ''}}", "/issuer"},
		{"issuer", "issuer: {replicas: 2}", "replicas"}, // each would sign
		{"issuer", "issuer: {origins: [app.example]}", "/issuer/origins/0"},
		{"helper", "helper: {stageKey: ''}", "/helper/stageKey"},
		{"helper", "helper: {learnerKey: ab}", "/helper/learnerKey"},
	} {
		_, err := render(t, values(t, bad.set, bad.change))
		if err == nil {
			t.Errorf("%s with %.60s: not refused", bad.set, bad.change)
		} else if !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s with %.60s: %v; want %q in it", bad.set, bad.change, err, bad.want)
		}
	}
}

// TestNodesCanBeDrained: no budget keeps the only pod of a role on a node that is to be drained.
func TestNodesCanBeDrained(t *testing.T) {
	files, err := render(t, values(t, "many", "stage: {replicas: 1}", "relay: {enabled: true, replicas: 1}",
		"scorer: {enabled: true, replicas: 1}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"stage", "relay", "scorer", "learner"} {
		_, budget, found := strings.Cut(files[role+".yaml"], "kind: PodDisruptionBudget")
		if !found || !strings.Contains(budget, "  maxUnavailable: 1\n") {
			t.Errorf("%s: want a budget that lets one pod go:%s", role, budget)
		}
	}
}

// TestAddedTask: an upgrade that adds a task makes another Job that provisions, and starts no learner and no stage
// again; one that changes the broker's address does.
func TestAddedTask(t *testing.T) {
	before, err := render(t, values(t, "many"))
	if err != nil {
		t.Fatal(err)
	}
	added, err := render(t, values(t, "many", "tasks: {spam: 'name: spam'}"))
	if err != nil {
		t.Fatal(err)
	}
	moved, err := render(t, values(t, "many", "broker: {url: 'tls://d.example:4222'}"))
	if err != nil {
		t.Fatal(err)
	}
	for file, stays := range map[string]bool{"learner.yaml": true, "stage.yaml": true, "relay.yaml": true,
		"retain.yaml":    true,
		"provision.yaml": false, "scorer.yaml": false, "config.yaml": false} {
		if (before[file] == added[file]) != stays {
			t.Errorf("%s: stays as it is: %v, want %v", file, !stays, stays)
		}
	}
	for _, file := range []string{"learner.yaml", "stage.yaml", "relay.yaml", "provision.yaml", "config.yaml"} {
		if before[file] == moved[file] {
			t.Errorf("%s does not change with the broker's address", file)
		}
	}
}
