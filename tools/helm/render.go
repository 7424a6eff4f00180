package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// The release that is rendered.
const releaseName, namespace = "sallyport", "tools"

// kubeVersion is the oldest version of Kubernetes that the chart supports.
const kubeVersion = "1.30"

// check lints and renders the chart with the values of a file, and decodes the manifests.
func check(chart, path string) (result, error) {
	file, err := os.Open(path)
	if err != nil {
		return result{}, err
	}
	defer file.Close()
	values, err := loader.LoadValues(file)
	if err != nil {
		return result{}, err
	}
	kube, err := common.ParseKubeVersion(kubeVersion)
	if err != nil {
		return result{}, err
	}
	if err := lintChart(chart, values, kube); err != nil {
		return result{}, err
	}
	files, err := render(chart, values, kube)
	if err != nil {
		return result{}, err
	}
	var r result
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			r.Notes = files[name]
			continue
		}
		made, err := decodeAll([]byte(files[name]))
		if err != nil {
			return result{}, fmt.Errorf("%s: %w\n%s", name, err, files[name])
		}
		r.Manifests = append(r.Manifests, made...)
	}
	return r, nil
}

// lintChart returns the findings of helm lint, apart from advice.
func lintChart(chart string, values map[string]any, kube *common.KubeVersion) error {
	var all []error
	for _, m := range lint.RunAll(chart, values, namespace, lint.WithKubeVersion(kube)).Messages {
		if m.Severity >= support.WarningSev {
			all = append(all, m)
		}
	}
	return errors.Join(all...)
}

// render returns what the templates give, by their names.
func render(chart string, values map[string]any, kube *common.KubeVersion) (map[string]string, error) {
	c, err := loader.Load(chart)
	if err != nil {
		return nil, err
	}
	about := common.ReleaseOptions{Name: releaseName, Namespace: namespace, Revision: 1, IsInstall: true}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kube
	all, err := util.ToRenderValues(c, values, about, capabilities)
	if err != nil {
		return nil, err
	}
	e := engine.Engine{Strict: true}
	files, err := e.Render(c, all)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(files, func(name, text string) bool {
		return strings.HasPrefix(name[strings.LastIndex(name, "/")+1:], "_") || len(bytes.TrimSpace([]byte(text))) == 0
	})
	return files, nil
}
