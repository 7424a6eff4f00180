package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/helmchart"
)

// secretOfChart begins the value of every variable that a Secret sets; its name follows.
const secretOfChart = "a-secret-of-the-chart-0123456789"

// TestChart renders the chart with several files of values. The manifests are valid, fit each other and the gateway, and
// start commands that exist.
func TestChart(t *testing.T) {
	for _, r := range helmchart.Render(t, helmchart.Values(t, "values")...) {
		t.Run(filepath.Base(r.Values), func(t *testing.T) {
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			c := chart{Result: r, settings: chartSettings(t, r)}
			c.checkReferences(t)
			for _, m := range r.Manifests {
				if spec := m.Object.Spec.Template.Spec; len(spec.Containers) > 0 {
					c.checkPod(t, m)
				}
			}
		})
	}
}

// TestChartReadme: the values in the page on deployment are valid.
func TestChartReadme(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs", "deploy", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	values, _, found := strings.Cut(after, "```")
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := helmchart.Render(t, path)[0]; !found || r.Error != "" || len(r.Of("StatefulSet")) != 1 || len(r.Of("Deployment")) != 1 {
		t.Errorf("%q: %s", values, r.Error)
	}
}

// TestChartRefuses: wrong values are refused, with the reason in the first line of their file.
func TestChartRefuses(t *testing.T) {
	for _, r := range helmchart.Render(t, helmchart.Values(t, "refused")...) {
		text, err := os.ReadFile(r.Values)
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		if !strings.Contains(r.Error, want) {
			t.Errorf("%s: %q is not in %q", filepath.Base(r.Values), want, r.Error)
		}
	}
}

// TestChartKeepsText: texts of the values arrive in the settings as they are.
func TestChartKeepsText(t *testing.T) {
	r := helmchart.Render(t, filepath.Join(testutil.ModuleRoot(t), "tools", "helm", "testdata", "values", "hostile.yaml"))[0]
	odd := chartSettings(t, r).Upstreams[0]
	want := []string{"yes", "012", "a: b # c", "line\n  kind: Secret\n---\napiVersion: v1", "\u2028\t'\""}
	if odd.Command != "{{.Values.image.repository}}" || !slices.Equal(odd.Args, want) || odd.Env["QUOTED"] != "\"}},{{ fail \"rendered\" }}" {
		t.Errorf("%q %q %q", odd.Command, odd.Args, odd.Env)
	}
	if text, err := os.ReadFile(filepath.Join(r.Settings(t), "notes.txt")); err != nil || string(text) != "{{ fail \"rendered\" }}\n---\nkind: Secret\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// chart is the chart with one file of values.
type chart struct {
	helmchart.Result

	settings *config.Config // nil without gateways
}

// chartSettings returns the settings of the gateways; sallyport config check accepts them.
func chartSettings(t *testing.T, r helmchart.Result) *config.Config {
	t.Helper()
	if r.Of("ConfigMap") == nil {
		return nil
	}
	file := filepath.Join(r.Settings(t), "upstreams.yaml")
	env := func(name string) (string, bool) { return secretOfChart + name, strings.HasSuffix(name, "_TOKEN") }
	var out, log bytes.Buffer
	root := newRoot(&app{App: &cli.App{Env: env, Stdout: &out, Stderr: &log}})
	root.SetArgs([]string{"config", "check", file})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("config check: %v\n%s%s", err, out.String(), log.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse(file, text, env)
	if err != nil || cfg.HTTP.Problem != "" || cfg.Store.Problem != "" {
		t.Fatalf("%v %s %s", err, cfg.HTTP.Problem, cfg.Store.Problem)
	}
	return cfg
}

// checkReferences checks that objects name each other, metrics and routes correctly.
func (c chart) checkReferences(t *testing.T) {
	t.Helper()
	metrics, err := os.ReadFile(filepath.Join(testutil.ModuleRoot(t), "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Manifests {
		o := m.Object
		switch o.Kind {
		case "Service", "PodDisruptionBudget", "NetworkPolicy":
			if pods := c.selected(o); len(pods) != 1 {
				t.Errorf("%s %s selects %d kinds of pods", o.Kind, o.Metadata.Name, len(pods))
			} else {
				checkPorts(t, o, pods[0])
			}
		case "ServiceMonitor":
			service := c.Of("Service")[0]
			if !o.Spec.Selects(service.Metadata.Labels) || o.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name {
				t.Errorf("%+v does not select %+v", o.Spec, service)
			}
			c.checkMonitorToken(t, o.Spec.Endpoints[0].Authorization.Credentials)
		case "HorizontalPodAutoscaler":
			to := o.Spec.ScaleTargetRef
			if !slices.ContainsFunc(c.Of(to.Kind), func(o helmchart.Object) bool { return o.Metadata.Name == to.Name }) {
				t.Errorf("it scales %s %s, which does not exist", to.Kind, to.Name)
			}
			for _, m := range o.Spec.Metrics {
				if row := fmt.Sprintf("| `%s` | gauge |", m.External.Metric.Name); !strings.Contains(string(metrics), row) {
					t.Errorf("the gateway has no metric %s", m.External.Metric.Name)
				}
			}
		}
	}
}

// checkMonitorToken checks that Prometheus and the gateways have the same token, and that it may read metrics only.
func (c chart) checkMonitorToken(t *testing.T, sent helmchart.SecretKey) {
	t.Helper()
	box := append(c.Of("StatefulSet"), c.Of("Deployment")...)[0].Spec.Template.Spec.Containers[0]
	at := slices.IndexFunc(box.Env, func(v helmchart.Variable) bool { return v.Name == "SERVICE_MONITOR_TOKEN" })
	if at < 0 || sent.Name == "" || box.Env[at].ValueFrom.SecretKeyRef != sent {
		t.Errorf("Prometheus sends %+v, and the gateway has %+v", sent, box.Env)
	}
	if http := c.settings.HTTP; http.Tokens["service-monitor"] != secretOfChart+"SERVICE_MONITOR_TOKEN" || !slices.Equal(http.Metrics, []string{"service-monitor"}) || len(http.Operators) > 0 {
		t.Errorf("the settings have %q, metrics %q, operators %q", http.Tokens, http.Metrics, http.Operators)
	}
}

// selected are the objects with pods that an object selects.
func (c chart) selected(o helmchart.Object) (all []helmchart.Object) {
	for _, m := range c.Manifests {
		if pod := m.Object.Spec.Template; len(pod.Spec.Containers) > 0 && o.Spec.Selects(pod.Metadata.Labels) {
			all = append(all, m.Object)
		}
	}
	return all
}

// checkPorts checks that a Service and a NetworkPolicy name ports of the container.
func checkPorts(t *testing.T, o, pods helmchart.Object) {
	t.Helper()
	var names []any
	for _, p := range pods.Spec.Template.Spec.Containers[0].Ports {
		names = append(names, p.Name)
	}
	for _, p := range o.Spec.Ports {
		if !slices.Contains(names, p.TargetPort) {
			t.Errorf("%s: the container has no port %v", o.Kind, p.TargetPort)
		}
	}
	for _, rule := range o.Spec.Ingress {
		for _, p := range rule.Ports {
			if !slices.Contains(names, p.Port) {
				t.Errorf("%s: the container has no port %v", o.Kind, p.Port)
			}
		}
	}
}

// checkPod checks the pods of a gateway or a worker.
func (c chart) checkPod(t *testing.T, m helmchart.Manifest) {
	t.Helper()
	pod := m.Object.Spec.Template.Spec
	box := pod.Containers[0]
	if box.Resources.Limits["memory"] == "" || box.Resources.Requests["cpu"] == "" || box.Resources.Requests["memory"] == "" {
		t.Errorf("%s has the resources %+v", box.Name, box.Resources)
	}
	if !box.SecurityContext.ReadOnlyRootFilesystem || pod.SecurityContext.RunAsUser == 0 || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("%s has more rights than it needs: %+v", box.Name, pod)
	}
	for _, mount := range box.VolumeMounts {
		claimed := slices.ContainsFunc(m.Object.Spec.VolumeClaimTemplates, func(o helmchart.Object) bool { return o.Metadata.Name == mount.Name })
		if !claimed && pod.Volume(mount.Name).Name == "" {
			t.Errorf("%s mounts %s, which is no volume", box.Name, mount.Name)
		}
	}
	flags := checkCommand(t, m.Object)
	if box.Name == "worker" {
		c.checkWorker(t, m, flags)
	} else {
		c.checkGateway(t, m, flags)
	}
}

// unconfined is what sandboxes need and no standard but "privileged" permits.
const unconfined = `forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined"), seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")`

func (c chart) checkGateway(t *testing.T, m helmchart.Manifest, flags map[string]string) {
	t.Helper()
	pod := m.Object.Spec.Template.Spec
	box := pod.Containers[0]
	want := ""
	if c.settings.Sandbox.Remote == "" {
		want = unconfined
	}
	if m.Security["restricted"] != want || m.Security["baseline"] != want {
		t.Errorf("Pod Security Standards: %q", m.Security)
	}
	if listens := fmt.Sprintf("0.0.0.0:%d", box.Ports[0].ContainerPort); flags["http"] != listens {
		t.Errorf("it listens on %s, and the port is %s", flags["http"], listens)
	}
	for _, p := range []*helmchart.Probe{box.StartupProbe, box.LivenessProbe, box.ReadinessProbe} {
		if p == nil || p.HTTPGet.Port != box.Ports[0].Name {
			t.Errorf("a probe asks %+v", p)
		}
	}
	needs := c.settings.HTTP.Grace + 25*time.Second + time.Duration(box.Lifecycle.PreStop.Sleep.Seconds)*time.Second
	if got := time.Duration(pod.TerminationGracePeriodSeconds) * time.Second; got < needs {
		t.Errorf("it is killed after %s, and needs %s", got, needs)
	}
	for _, file := range []string{flags["config"], c.settings.Store.Creds, c.settings.Store.Key, c.settings.Store.TLS.CA} {
		checkMounted(t, m.Object, file)
	}
	checkMounted(t, m.Object, flags["data"])
	if len(box.EnvFrom) != 1 {
		t.Errorf("variables are from %s", box.EnvFrom)
	}
}

func (c chart) checkWorker(t *testing.T, m helmchart.Manifest, flags map[string]string) {
	t.Helper()
	if m.Security["baseline"] != unconfined || m.Security["restricted"] != unconfined {
		t.Errorf("Pod Security Standards: %q", m.Security)
	}
	timeout := time.Minute
	if c.settings != nil {
		timeout = c.settings.Sandbox.Timeout
		if flags["join"] != c.settings.Store.URL || flags["prefix"] != c.settings.Store.Prefix {
			t.Errorf("it joins %s %s, and the gateways are at %+v", flags["join"], flags["prefix"], c.settings.Store)
		}
	}
	if got := time.Duration(m.Object.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second; got < timeout+time.Minute {
		t.Errorf("it is killed after %s, and a program may take %s", got, timeout)
	}
	checkMounted(t, m.Object, flags["creds"])
	checkMounted(t, m.Object, flags["ca"])
	for _, o := range c.Of("NetworkPolicy") {
		if !o.Spec.Selects(m.Object.Spec.Template.Metadata.Labels) {
			continue
		}
		var ports []string
		for _, p := range o.Spec.Egress[1].Ports {
			ports = append(ports, fmt.Sprint(p.Port))
		}
		want := map[string]string{"nats://nats.nats:4222": "4222", "tls://n1.nats:4222,tls://n2.nats:4322,tls://n3.nats": "4222 4322"}[flags["join"]]
		if got := strings.Join(ports, " "); len(o.Spec.Ingress) > 0 || got != want {
			t.Errorf("it may connect to the ports %s, and the servers are at %s", got, want)
		}
	}
}

// checkCommand checks that the command line of a container is one of this program, and returns its flags.
func checkCommand(t *testing.T, o helmchart.Object) map[string]string {
	t.Helper()
	words := o.Spec.Template.Spec.Containers[0].Args
	cmd, rest, err := newRoot(&app{App: &cli.App{Env: os.LookupEnv}}).Find(words)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil || cmd.Name() != words[0] || cmd.Args(cmd, cmd.Flags().Args()) != nil {
		t.Fatalf("sallyport %s: %v", strings.Join(words, " "), err)
	}
	flags := map[string]string{}
	for _, name := range []string{"http", "config", "data", "join", "prefix", "creds", "ca"} {
		if f := cmd.Flags().Lookup(name); f != nil {
			flags[name] = f.Value.String()
		}
	}
	return flags
}

// checkMounted checks that a file is in a volume of a pod; "" is no file.
func checkMounted(t *testing.T, o helmchart.Object, file string) {
	t.Helper()
	pod := o.Spec.Template.Spec
	for _, mount := range pod.Containers[0].VolumeMounts {
		below, ok := strings.CutPrefix(file, mount.MountPath+"/")
		if !ok {
			continue
		}
		v := pod.Volume(mount.Name)
		files := v.ConfigMap
		if files == nil {
			files = v.Secret
		}
		if files == nil { // a folder to write in
			return
		}
		for _, item := range files.Items {
			if path.Clean(item.Path) == below {
				return
			}
		}
	}
	if file != "" {
		t.Errorf("%s is in no volume", file)
	}
}
