package helmchart

import (
	"bytes"
	"encoding/json"
)

// Object has those fields of all kinds that tests look at.
type Object struct {
	Kind     string
	Metadata Metadata
	Data     map[string]string
	Spec     Spec
	// Raw is all of it.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Object) UnmarshalJSON(text []byte) error {
	type fields Object
	o.Raw = bytes.Clone(text)
	return json.Unmarshal(text, (*fields)(o))
}

// Metadata names an object.
type Metadata struct {
	Name   string
	Labels map[string]string
}

// Spec is that of any kind.
type Spec struct {
	Template             Pod
	VolumeClaimTemplates []Object
	Selector             json.RawMessage
	PodSelector          json.RawMessage
	ScaleTargetRef       struct{ Kind, Name string }
	Metrics              []struct{ External struct{ Metric Metadata } }
	Ports                []Port
	Ingress, Egress      []struct{ Ports []Port }
	Endpoints            []Endpoint
}

// Selects reports whether the selector of an object, of any kind, selects pods with these labels.
func (s Spec) Selects(labels map[string]string) bool {
	raw := s.Selector
	if len(s.PodSelector) > 0 {
		raw = s.PodSelector
	}
	var nested struct{ MatchLabels map[string]string }
	want := map[string]string{}
	if json.Unmarshal(raw, &nested) == nil && nested.MatchLabels != nil {
		want = nested.MatchLabels
	} else if json.Unmarshal(raw, &want) != nil {
		return false
	}
	for key, value := range want {
		if labels[key] != value {
			return false
		}
	}
	return len(want) > 0
}

// Port is one of a container, a Service or a NetworkPolicy.
type Port struct {
	Name, Protocol string
	ContainerPort  int
	Port           any
	TargetPort     any
}

// Pod is the template of pods.
type Pod struct {
	Metadata Metadata
	Spec     PodSpec
}

// PodSpec describes pods.
type PodSpec struct {
	Containers                    []Container
	Volumes                       []Volume
	SecurityContext               struct{ RunAsUser int }
	TerminationGracePeriodSeconds int
	AutomountServiceAccountToken  *bool
}

// Container is one of a pod.
type Container struct {
	Name, Image                                 string
	Args                                        []string
	Env                                         []Variable
	EnvFrom                                     []json.RawMessage
	Ports                                       []Port
	StartupProbe, LivenessProbe, ReadinessProbe *Probe
	Lifecycle                                   struct {
		PreStop struct{ Sleep struct{ Seconds int } }
	}
	Resources       struct{ Limits, Requests map[string]string }
	SecurityContext struct{ ReadOnlyRootFilesystem bool }
	VolumeMounts    []Mount
}

// Variable is one of a container, with a value or a key of a Secret.
type Variable struct {
	Name, Value string
	ValueFrom   struct{ SecretKeyRef SecretKey }
}

// SecretKey is a key of a Secret.
type SecretKey struct{ Name, Key string }

// Endpoint is one of a ServiceMonitor.
type Endpoint struct {
	Port, Path    string
	Authorization struct{ Credentials SecretKey }
}

// Probe asks a container how it is.
type Probe struct {
	HTTPGet struct{ Path, Port string }
}

// Mount is a volume in a container.
type Mount struct{ Name, MountPath, SubPath string }

// Volume is one of a pod.
type Volume struct {
	Name      string
	ConfigMap *Files
	Secret    *Files
}

// Files are the keys of a ConfigMap or a Secret in a volume.
type Files struct {
	Name, SecretName string
	Items            []struct{ Key, Path string }
}

// Volume returns the volume of this name.
func (p PodSpec) Volume(name string) Volume {
	for _, v := range p.Volumes {
		if v.Name == name {
			return v
		}
	}
	return Volume{}
}
