package grpc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"sallyport/gateway/upstream/apitools"
	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
)

const (
	maxName        = 128 // the longest name of a tool that MCP recommends
	maxDescription = 1000
	maxNested      = 300 // characters of the description of a field
)

// method is one method that is a tool.
type method struct {
	name   string
	of     protoreflect.MethodDescriptor
	whole  string // the argument that is the request, "" if its fields are the arguments
	count  string // the argument with the number of messages to return, "" without a stream
	result resultForm
}

// resultForm says how responses become structured content.
type resultForm int

const (
	asObject resultForm = iota // the message
	wrapped                    // {"result": VALUE}
	asList                     // {"messages": [MESSAGE...], "truncated": FLAG}
)

// path returns the path of the method in a request, without the slash before it.
func (m *method) path() string { return string(m.of.Parent().FullName()) + "/" + string(m.of.Name()) }

// allMethods returns the methods that become tools, in their order.
func (a *API) allMethods() ([]*method, error) {
	var all []*method
	for _, service := range a.files.services {
		for i := range service.Methods().Len() {
			m := newMethod(service.Methods().Get(i))
			switch {
			case !a.opts.takes(m.of):
			case m.of.IsStreamingClient():
				a.skip(m, "its requests are a stream")
			case len(all) == maxMethods:
				return nil, fmt.Errorf("the gRPC server has more than %d methods; choose some with include", maxMethods)
			default:
				all = append(all, m)
			}
		}
	}
	return a.nameMethods(all), nil
}

func newMethod(of protoreflect.MethodDescriptor) *method {
	m := &method{of: of, name: string(of.Name())}
	if isSpecial(of.Input()) && of.Input().FullName() != "google.protobuf.Empty" {
		m.whole = "request"
	}
	switch {
	case of.IsStreamingServer():
		m.result = asList
		for m.count = "max_messages"; m.takes(m.count); {
			m.count += "_"
		}
	case isSpecial(of.Output()) && !isObject(of.Output()):
		m.result = wrapped
	}
	return m
}

// takes reports whether a field of the request is an argument with that name.
func (m *method) takes(name string) bool {
	return m.of.Input().Fields().ByJSONName(name) != nil || m.of.Input().Fields().ByTextName(name) != nil
}

// takes reports whether the settings choose a method.
func (o *Options) takes(m protoreflect.MethodDescriptor) bool {
	about := func(glob string) bool {
		name := string(m.Name())
		if of, rest, found := strings.Cut(glob, ":"); found {
			if of != "service" {
				return false
			}
			glob, name = rest, string(m.Parent().FullName())
		}
		ok, err := path.Match(glob, name)
		return err == nil && ok
	}
	return (len(o.Include) == 0 || slices.ContainsFunc(o.Include, about)) && !slices.ContainsFunc(o.Exclude, about)
}

// nameMethods gives names to those that have the same but for case: first the service, and if that is not enough a digest. It returns
// those with a unique name.
func (a *API) nameMethods(all []*method) []*method {
	digest := func(m *method) string {
		sum := sha256.Sum256([]byte(m.path()))
		return m.name[:min(len(m.name), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
	}
	name := func(m *method) *string { return &m.name }
	apitools.Distinguish(all, name, func(m *method) string { return string(m.of.Parent().Name()) + "_" + string(m.of.Name()) })
	apitools.Distinguish(all, name, digest)
	for _, m := range all {
		if len(m.name) > maxName {
			m.name = digest(m)
		}
	}
	taken := map[string]bool{}
	return slices.DeleteFunc(all, func(m *method) bool {
		key := strings.ToLower(m.name)
		if taken[key] {
			a.skip(m, "its name is that of another method")
			return true
		}
		taken[key] = true
		return false
	})
}

// checkMessages refuses a method with messages that are not described, or have no JSON form.
func (m *method) checkMessages() error {
	seen := map[protoreflect.FullName]bool{}
	return errors.Join(checkMessage(m.of.Input(), seen), checkMessage(m.of.Output(), seen))
}

// checkMessage refuses a message with a part that is not described, or with two fields that are one in JSON.
func checkMessage(of protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) error {
	if of.IsPlaceholder() {
		return fmt.Errorf("the message %s is not described", of.FullName())
	}
	if seen[of.FullName()] {
		return nil
	}
	seen[of.FullName()] = true
	names := map[string]bool{}
	for i := range of.Fields().Len() {
		fd := of.Fields().Get(i)
		if names[fd.JSONName()] {
			return fmt.Errorf("the message %s has two fields %s in JSON", of.FullName(), fd.JSONName())
		}
		names[fd.JSONName()] = true
		if fd.Enum() != nil && fd.Enum().IsPlaceholder() {
			return fmt.Errorf("the enumeration %s is not described", fd.Enum().FullName())
		}
		if fd.Message() == nil {
			continue
		}
		if err := checkMessage(fd.Message(), seen); err != nil {
			return err
		}
	}
	return nil
}

// definition returns the definition of the tool of a method.
func (m *method) definition(w *work) json.RawMessage {
	tool := jsonobject.Of("name", m.name, "description", m.describe(), "inputSchema", m.inputSchema(w), "outputSchema", m.outputSchema(w))
	if hints := m.annotations(); hints != nil {
		tool.Set("annotations", hints)
	}
	return webapi.AppendJSON(nil, tool)
}

// annotations returns the hints of the idempotency level, nil if the method has none: then nothing is known.
func (m *method) annotations() *object {
	options, _ := m.of.Options().(*descriptorpb.MethodOptions)
	switch options.GetIdempotencyLevel() {
	case descriptorpb.MethodOptions_NO_SIDE_EFFECTS:
		return jsonobject.Of("readOnlyHint", true, "destructiveHint", false, "idempotentHint", true)
	case descriptorpb.MethodOptions_IDEMPOTENT:
		return jsonobject.Of("readOnlyHint", false, "idempotentHint", true)
	}
	return nil
}

// describe returns the description of a tool: what the descriptors say, and the method. The method is part of it so that a tool which
// calls another one is a changed tool.
func (m *method) describe() string {
	var lines []string
	if options, _ := m.of.Options().(*descriptorpb.MethodOptions); options.GetDeprecated() {
		lines = append(lines, "Deprecated.")
	}
	if text := comment(m.of, maxDescription); text != "" {
		lines = append(lines, text)
	}
	lines = append(lines, exclusive(m.of.Input())...)
	stream := ""
	if m.of.IsStreamingServer() {
		stream = "stream "
	}
	return strings.Join(append(lines, fmt.Sprintf("%s(%s): %s%s", m.path(), m.of.Input().Name(), stream, m.of.Output().Name())), "\n")
}

// comment returns the comment before an element, of at most n characters.
func comment(d protoreflect.Descriptor, n int) string {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	return strings.TrimSpace(sanitize.Text(strings.ToValidUTF8(at.LeadingComments, "\uFFFD"), n))
}
