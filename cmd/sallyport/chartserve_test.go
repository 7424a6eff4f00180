package main_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/helmchart"
)

// TestChartServes starts a gateway as the chart does, with the settings as they are mounted. Kubernetes finds it ready by
// the probes of the chart, the names of the Service reach it, and Prometheus can only read the metrics with its token.
func TestChartServes(t *testing.T) {
	t.Parallel()
	runsc := testutil.Runsc(t)
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte("gateway: {serviceMonitor: {enabled: true, existingSecret: monitor}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := helmchart.Render(t, values)[0]
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	dir, bin := testutil.ShortDir(t), t.TempDir()
	if err := os.Symlink(runsc, filepath.Join(bin, "runsc")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testutil.Binary(t), "serve", "--http", "127.0.0.1:0", "--config", filepath.Join(r.Settings(t), "upstreams.yaml"), "--data", filepath.Join(dir, "sallyport"))
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CLIENT_TOKEN=a-token-for-a-test-of-the-chart", "SERVICE_MONITOR_TOKEN=a-token-for-the-service-monitor", "HOME="+dir, "XDG_CACHE_HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	url, log := startListening(t, cmd)
	ask := func(path, host string) int { return askAs(t, strings.TrimSuffix(url, "/mcp")+path, host, "") }

	box := r.Of("StatefulSet")[0].Spec.Template.Spec.Containers[0]
	for _, probe := range []*helmchart.Probe{box.StartupProbe, box.LivenessProbe, box.ReadinessProbe} {
		testutil.Eventually(t, probe.HTTPGet.Path+" answers a probe", time.Minute, func() bool { return ask(probe.HTTPGet.Path, "10.1.2.3:8080") == http.StatusOK })
	}
	for host, want := range map[string]int{
		"sallyport": 200, "sallyport.tools": 200, "sallyport.tools.svc:80": 200, "sallyport.tools.svc.cluster.local": 200, "sallyport.other": 403,
	} {
		if got := ask("/health", host); got != want {
			t.Errorf("%s: %d, not %d", host, got, want)
		}
	}
	if got := ask("/metrics", "10.1.2.3:8080"); got != http.StatusUnauthorized {
		t.Errorf("metrics without a token: %d", got)
	}
	monitor := r.Of("ServiceMonitor")[0].Spec.Endpoints[0]
	for path, want := range map[string]int{monitor.Path: 200, "/health": 200, "/tools": 403, "/executions": 403, "/mcp": 403, "/ui/executions": 403, "/openapi.json": 403} {
		if got := askAs(t, strings.TrimSuffix(url, "/mcp")+path, "10.1.2.3:8080", "a-token-for-the-service-monitor"); got != want {
			t.Errorf("%s with the token of Prometheus: %d, not %d", path, got, want)
		}
	}
	if err := stop(cmd); err != nil {
		t.Errorf("%v\n%s", err, <-log)
	}
}

// askAs returns the status of an answer to a request for a host, with a token, "" for none.
func askAs(t *testing.T, url, host, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", url, err))
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
