package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/apiserver"
	"sallyport/internal/testutil/helmchart"
)

// collections are the paths of the kinds of the chart at an API server, in a namespace.
var collections = map[string]string{
	"ConfigMap": "/api/v1/namespaces/NS/configmaps", "Secret": "/api/v1/namespaces/NS/secrets", "Service": "/api/v1/namespaces/NS/services",
	"ServiceAccount": "/api/v1/namespaces/NS/serviceaccounts", "Pod": "/api/v1/namespaces/NS/pods", "PersistentVolumeClaim": "/api/v1/namespaces/NS/persistentvolumeclaims",
	"Deployment": "/apis/apps/v1/namespaces/NS/deployments", "StatefulSet": "/apis/apps/v1/namespaces/NS/statefulsets",
	"NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies", "PodDisruptionBudget": "/apis/policy/v1/namespaces/NS/poddisruptionbudgets",
	"HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/NS/horizontalpodautoscalers", "ServiceMonitor": "/apis/monitoring.coreos.com/v1/namespaces/NS/servicemonitors",
}

// TestChartAtAPIServer: an API server takes all objects of the chart, strictly, and its admission lets the pods into a namespace of the
// level that they meet, and not into one of a stricter level.
func TestChartAtAPIServer(t *testing.T) {
	s := cluster{apiserver.Start(t), t}
	s.addMonitors()
	for _, r := range helmchart.Render(t, helmchart.Values(t, "values")...) {
		name := "chart-" + strings.TrimSuffix(filepath.Base(r.Values), ".yaml")
		if name == "chart-hostile" {
			continue // its texts are no values of Kubernetes
		}
		t.Run(name, func(t *testing.T) {
			s := cluster{s.Server, t}
			s.addNamespace(name, "privileged")
			for _, m := range r.Manifests {
				s.create(m.Object.Kind, name, "fieldValidation=Strict", m.Object.Raw)
				if len(m.Object.Spec.Template.Spec.Containers) > 0 {
					s.checkAdmission(name, m)
				}
			}
		})
	}
}

// cluster is an API server without controllers.
type cluster struct {
	*apiserver.Server
	t *testing.T
}

func (c cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
	}
}

// create creates an object of a kind in a namespace.
func (c cluster) create(kind, namespace, query string, object []byte) {
	c.t.Helper()
	if err := c.tryCreate(kind, namespace, query, object); err != nil {
		c.t.Errorf("%s: %v\n%s", kind, err, object)
	}
}

func (c cluster) tryCreate(kind, namespace, query string, object []byte) error {
	c.t.Helper()
	path := collections[kind]
	if path == "" {
		c.t.Fatalf("the test does not know the kind %s", kind)
	}
	var fields map[string]any
	if err := json.Unmarshal(object, &fields); err != nil {
		return err
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "namespace") // that of the path
	}
	return c.Do(c.t.Context(), http.MethodPost, strings.Replace(path, "NS", namespace, 1)+"?"+query, c.encode(fields), nil)
}

func (c cluster) encode(object any) []byte {
	c.t.Helper()
	text, err := json.Marshal(object)
	c.must(err)
	return text
}

// addNamespace adds a namespace in which pods must meet a level of the Pod Security Standards, with the account that a controller adds.
func (c cluster) addNamespace(name, level string) {
	c.t.Helper()
	type object = map[string]any
	c.must(c.Do(c.t.Context(), http.MethodPost, "/api/v1/namespaces", c.encode(object{"metadata": object{"name": name, "labels": object{"pod-security.kubernetes.io/enforce": level}}}), nil))
	c.create("ServiceAccount", name, "", c.encode(object{"metadata": object{"name": "default"}}))
}

// checkAdmission creates the pods of an object in namespaces of all levels.
func (c cluster) checkAdmission(name string, m helmchart.Manifest) {
	c.t.Helper()
	var of struct {
		Spec struct {
			Template             map[string]any
			VolumeClaimTemplates []struct{ Metadata map[string]any }
		}
	}
	c.must(json.Unmarshal(m.Object.Raw, &of))
	metadata, _ := of.Spec.Template["metadata"].(map[string]any)
	metadata["name"] = m.Object.Metadata.Name
	spec, _ := of.Spec.Template["spec"].(map[string]any)
	for _, claim := range of.Spec.VolumeClaimTemplates { // as the controller of a StatefulSet adds them
		volumes, _ := spec["volumes"].([]any)
		spec["volumes"] = append(volumes, map[string]any{"name": claim.Metadata["name"], "persistentVolumeClaim": map[string]any{"claimName": claim.Metadata["name"]}})
	}
	pod := c.encode(of.Spec.Template)
	for level, violation := range m.Security {
		namespace := name + "-" + level
		if err := c.Do(c.t.Context(), http.MethodGet, "/api/v1/namespaces/"+namespace, nil, nil); err != nil {
			c.addNamespace(namespace, level)
		}
		err := c.tryCreate("Pod", namespace, "fieldValidation=Strict&dryRun=All", pod)
		if (err == nil) != (violation == "") || err != nil && !strings.Contains(err.Error(), "violates PodSecurity") {
			c.t.Errorf("pods of %s at level %s: %v, want %q", m.Object.Metadata.Name, level, err, violation)
		}
	}
}

// monitors is the module with the definition of the kind ServiceMonitor, for the types of tools/helm.
const monitors = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

// addMonitors adds the kind ServiceMonitor by the definition that the Prometheus operator has.
func (c cluster) addMonitors() {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), "go", "mod", "download", "-json", monitors).Output()
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		c.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	var definition map[string]any
	if err := yaml.Unmarshal(text, &definition); err != nil {
		c.t.Fatal(err)
	}
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	c.must(c.Do(c.t.Context(), http.MethodPost, path, c.encode(definition), nil))
	testutil.Eventually(c.t, "the kind ServiceMonitor is served", time.Minute, func() bool {
		return c.Do(c.t.Context(), http.MethodGet, "/apis/monitoring.coreos.com/v1/namespaces/default/servicemonitors", nil, nil) == nil
	})
}
