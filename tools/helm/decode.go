package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	security "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// newObject returns an empty object of a kind that the chart may make.
func newObject(version, kind string) (any, error) {
	switch version + " " + kind {
	case "v1 ConfigMap":
		return &core.ConfigMap{}, nil
	case "v1 Service":
		return &core.Service{}, nil
	case "apps/v1 Deployment":
		return &apps.Deployment{}, nil
	case "apps/v1 StatefulSet":
		return &apps.StatefulSet{}, nil
	case "policy/v1 PodDisruptionBudget":
		return &policy.PodDisruptionBudget{}, nil
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return &autoscaling.HorizontalPodAutoscaler{}, nil
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networking.NetworkPolicy{}, nil
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return &monitoring.ServiceMonitor{}, nil
	}
	return nil, fmt.Errorf("%s %s is no kind of this chart", version, kind)
}

// decodeAll decodes the documents of a file.
func decodeAll(text []byte) (all []manifest, err error) {
	reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var content map[string]any
		if err := yaml.Unmarshal(document, &content); err != nil {
			return nil, err
		}
		if len(content) == 0 {
			continue // comments
		}
		m, err := decode(document)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
}

// decode decodes one document strictly.
func decode(document []byte) (manifest, error) {
	var head struct {
		APIVersion, Kind string
		Metadata         struct {
			Name   string
			Labels map[string]string
		}
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return manifest{}, err
	}
	object, err := newObject(head.APIVersion, head.Kind)
	if err != nil {
		return manifest{}, err
	}
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return manifest{}, fmt.Errorf("%s %s: %w", head.Kind, head.Metadata.Name, err)
	}
	if wrong := validation.IsDNS1035Label(head.Metadata.Name); wrong != nil {
		return manifest{}, fmt.Errorf("%s has the name %q: %v", head.Kind, head.Metadata.Name, wrong)
	}
	for key, value := range head.Metadata.Labels {
		if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); wrong != nil {
			return manifest{}, fmt.Errorf("%s %s has the label %s=%q: %v", head.Kind, head.Metadata.Name, key, value, wrong)
		}
	}
	m := manifest{Object: object}
	switch o := object.(type) {
	case *apps.Deployment:
		m.Security, err = levels(o.Spec.Template)
	case *apps.StatefulSet:
		m.Security, err = levels(o.Spec.Template)
	}
	return m, err
}

// levels judges pods by the Pod Security Standards of the oldest supported version.
func levels(pod core.PodTemplateSpec) (map[string]string, error) {
	judge, err := security.NewEvaluator(security.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	version, err := api.ParseVersion("v" + kubeVersion)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
		result := security.AggregateCheckResults(judge.EvaluatePod(api.LevelVersion{Level: level, Version: version}, &pod.ObjectMeta, &pod.Spec))
		all[string(level)] = result.ForbiddenDetail()
	}
	return all, nil
}
