package grpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/descriptorpb"
)

// census counts the elements of descriptors before they are linked: linking makes the full name of each.
type census struct{ left int }

// checkSet refuses files with too many elements, too deep nesting or too long names.
func checkSet(set *descriptorpb.FileDescriptorSet) error {
	c := &census{maxElements}
	for _, f := range set.File {
		if err := c.file(f); err != nil {
			return err
		}
	}
	return nil
}

// element counts one element, and returns the length of its full name.
func (c *census) element(prefix int, name string) (int, error) {
	if c.left--; c.left < 0 {
		return 0, fmt.Errorf("they have more than %d elements", maxElements)
	}
	length := prefix + 1 + len(name)
	if length > maxFullName {
		return 0, fmt.Errorf("they have a name of more than %d characters", maxFullName)
	}
	return length, nil
}

func (c *census) file(f *descriptorpb.FileDescriptorProto) error {
	at, err := c.element(0, f.GetPackage())
	if err == nil {
		_, err = c.element(0, f.GetName())
	}
	if err == nil {
		err = c.messages(at, 1, f.GetMessageType())
	}
	if err == nil {
		err = c.enums(at, f.GetEnumType())
	}
	if err == nil {
		err = c.fields(at, f.GetExtension())
	}
	for _, s := range f.GetService() {
		if err == nil {
			err = c.service(at, s)
		}
	}
	return err
}

func (c *census) service(at int, s *descriptorpb.ServiceDescriptorProto) error {
	inner, err := c.element(at, s.GetName())
	for _, m := range s.GetMethod() {
		if err == nil {
			_, err = c.element(inner, m.GetName())
		}
	}
	return err
}

func (c *census) messages(at, depth int, all []*descriptorpb.DescriptorProto) error {
	if depth > maxNestedTypes && len(all) > 0 {
		return fmt.Errorf("they declare messages in messages of more than %d levels", maxNestedTypes)
	}
	for _, m := range all {
		if err := c.message(at, depth, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *census) message(at, depth int, m *descriptorpb.DescriptorProto) error {
	inner, err := c.element(at, m.GetName())
	if err != nil {
		return err
	}
	for _, o := range m.GetOneofDecl() {
		if _, err := c.element(inner, o.GetName()); err != nil {
			return err
		}
	}
	return errors.Join(c.fields(inner, m.GetField()), c.fields(inner, m.GetExtension()), c.enums(inner, m.GetEnumType()), c.messages(inner, depth+1, m.GetNestedType()))
}

func (c *census) fields(at int, all []*descriptorpb.FieldDescriptorProto) error {
	for _, f := range all {
		for _, name := range []string{f.GetName(), f.GetJsonName()} {
			if _, err := c.element(at, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *census) enums(at int, all []*descriptorpb.EnumDescriptorProto) error {
	for _, e := range all {
		inner, err := c.element(at, e.GetName())
		if err != nil {
			return err
		}
		for _, v := range e.GetValue() {
			if _, err := c.element(inner, v.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}
