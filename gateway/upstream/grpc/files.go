package grpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	// The standard files, which a server need not describe.
	_ "google.golang.org/protobuf/types/known/anypb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	_ "google.golang.org/protobuf/types/known/fieldmaskpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	_ "google.golang.org/protobuf/types/known/wrapperspb"

	"sallyport/internal/sanitize"
)

// files are linked descriptors.
type files struct {
	types    *types
	services []protoreflect.ServiceDescriptor
	faults   []string // why a file is left out
}

// isStandard reports whether a file is one of the standard ones, which define messages with a special JSON form. The
// versions of this program replace those of a server.
func isStandard(path string) bool {
	f, err := protoregistry.GlobalFiles.FindFileByPath(path)
	return err == nil && f.Package() == "google.protobuf"
}

// link links the files of a set. services are the names of those to use, nil for all. The descriptors are untrusted, so a
// panic of the library is an error.
func link(set *descriptorpb.FileDescriptorSet, services []protoreflect.FullName) (found *files, err error) {
	defer func() {
		if r := recover(); r != nil {
			found, err = nil, errors.New("the descriptors are invalid: they cannot be linked")
		}
	}()
	whole, err := withStandard(set)
	if err != nil {
		return nil, err
	}
	if err := checkSet(whole); err != nil {
		return nil, fmt.Errorf("the descriptors are not accepted: %w", err)
	}
	l := newLinker(whole)
	for _, f := range whole.File {
		l.link(f.GetName())
	}
	found = &files{types: &types{dynamicpb.NewTypes(l.registry)}, faults: l.faults}
	if services != nil {
		found.addNamed(l.registry, services)
		return found, nil
	}
	for _, f := range set.File { // in their order
		found.addAll(l.registry, f.GetName())
	}
	return found, nil
}

// linker links files one by one, so that an invalid one does not take the others away. Messages of a file that is left out are placeholders.
type linker struct {
	left     map[string]*descriptorpb.FileDescriptorProto // that are not linked yet
	registry *protoregistry.Files
	faults   []string
}

func newLinker(set *descriptorpb.FileDescriptorSet) *linker {
	l := &linker{left: map[string]*descriptorpb.FileDescriptorProto{}, registry: &protoregistry.Files{}}
	for _, f := range set.File {
		if l.left[f.GetName()] != nil {
			l.fault(f.GetName(), "it is there twice")
		}
		l.left[f.GetName()] = f
	}
	return l
}

// link links a file, after those that it imports. One that is being linked already is missing to those that it imports.
func (l *linker) link(name string) {
	f := l.left[name]
	if f == nil {
		return
	}
	delete(l.left, name)
	for _, imported := range f.GetDependency() {
		l.link(imported)
	}
	linked, err := protodesc.FileOptions{AllowUnresolvable: true}.New(f, l.registry)
	if err == nil {
		err = l.registry.RegisterFile(linked)
	}
	if err != nil {
		l.fault(name, cause(err))
	}
}

func (l *linker) fault(name, reason string) {
	l.faults = append(l.faults, sanitize.Line(fmt.Sprintf("file %.100q: %s", name, reason), 300))
}

func (f *files) addNamed(registry *protoregistry.Files, names []protoreflect.FullName) {
	for _, name := range names {
		d, err := registry.FindDescriptorByName(name)
		if service, ok := d.(protoreflect.ServiceDescriptor); ok && err == nil {
			f.services = append(f.services, service)
		}
	}
}

func (f *files) addAll(registry *protoregistry.Files, path string) {
	file, err := registry.FindFileByPath(path)
	if err != nil {
		return
	}
	for i := range file.Services().Len() {
		f.services = append(f.services, file.Services().Get(i))
	}
}

// withStandard returns a set with the standard files of this program, and no others with their messages.
func withStandard(set *descriptorpb.FileDescriptorSet) (*descriptorpb.FileDescriptorSet, error) {
	whole := &descriptorpb.FileDescriptorSet{}
	protoregistry.GlobalFiles.RangeFilesByPackage("google.protobuf", func(f protoreflect.FileDescriptor) bool {
		whole.File = append(whole.File, protodesc.ToFileDescriptorProto(f))
		return true
	})
	for _, f := range set.File {
		switch {
		case isStandard(f.GetName()):
		case f.GetPackage() == "google.protobuf" && declaresSpecial(f):
			return nil, fmt.Errorf("the descriptors are invalid: %s declares a standard message", sanitize.Line(f.GetName(), 100))
		default:
			whole.File = append(whole.File, f)
		}
	}
	if len(whole.File) > maxFiles {
		return nil, fmt.Errorf("the descriptors have more than %d files", maxFiles)
	}
	return whole, nil
}

// declaresSpecial reports whether a file declares a message with a special JSON form.
func declaresSpecial(f *descriptorpb.FileDescriptorProto) bool {
	for _, m := range f.GetMessageType() {
		if _, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("google.protobuf." + m.GetName())); err == nil {
			return true
		}
	}
	return false
}

// types resolves the types of the descriptors, for messages in messages and for extensions.
type types struct{ *dynamicpb.Types }

func (t *types) extension(of protoreflect.FullName, number protoreflect.FieldNumber) protoreflect.FieldDescriptor {
	if found, err := t.FindExtensionByNumber(of, number); err == nil {
		return found.TypeDescriptor()
	}
	return nil
}

// lenient resolves types, and shows a message of an unknown type as one without fields.
type lenient struct{ *types }

// FindMessageByURL implements [protoregistry.MessageTypeResolver].
func (l lenient) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	if t, err := l.types.FindMessageByURL(url); err == nil {
		return t, nil
	}
	return (*emptypb.Empty)(nil).ProtoReflect().Type(), nil
}

var _ interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
} = lenient{}

var _ proto.Message = (*emptypb.Empty)(nil)
