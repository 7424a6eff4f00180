package grpc

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var errMalformed = errors.New("it is not a valid message")

// scale counts what encoded messages would become, which is a multiple of their bytes: an empty message is two bytes.
type scale struct {
	values int   // that are left
	text   int64 // bytes of JSON that are left
	types  *types
	empty  map[protoreflect.FullName]int64 // what a message without values has in JSON
}

func newScale(values int, text int64, t *types) *scale {
	return &scale{values, text, t, map[protoreflect.FullName]int64{}}
}

func (s *scale) add(values int, text int64) error {
	s.values, s.text = s.values-values, s.text-text
	if s.values < 0 || s.text < 0 {
		return errTooLarge
	}
	return nil
}

var errTooLarge = errors.New("it has too many values")

// message counts a message of a type. Unknown fields count as one value each.
func (s *scale) message(of protoreflect.MessageDescriptor, data []byte, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("it is nested more than %d levels deep", maxNesting)
	}
	if err := s.add(1, 2+s.emptySize(of)); err != nil {
		return err
	}
	if of.FullName() == "google.protobuf.Any" {
		return s.packed(of, data, depth)
	}
	return fields(data, func(number protowire.Number, kind protowire.Type, value []byte) error {
		fd := of.Fields().ByNumber(number)
		if fd == nil && s.types != nil {
			fd = s.types.extension(of.FullName(), number)
		}
		if fd == nil {
			return s.add(1, 0)
		}
		return s.field(fd, kind, value, depth)
	})
}

func (s *scale) field(fd protoreflect.FieldDescriptor, kind protowire.Type, value []byte, depth int) error {
	switch {
	case fd.Message() != nil && (kind == protowire.BytesType || kind == protowire.StartGroupType):
		if err := s.add(0, int64(len(fd.JSONName()))+4); err != nil {
			return err
		}
		return s.message(fd.Message(), value, depth+1)
	case kind == protowire.BytesType && fd.Kind() != protoreflect.StringKind && fd.Kind() != protoreflect.BytesKind:
		n := elements(fd.Kind(), value)
		return s.add(n, int64(len(fd.JSONName())+4+24*n))
	}
	size := len(value)
	if fd.Kind() == protoreflect.BytesKind {
		size = size * 4 / 3 // in base64
	}
	return s.add(1, int64(len(fd.JSONName())+size+24))
}

// packed counts an Any, with the message in it.
func (s *scale) packed(of protoreflect.MessageDescriptor, data []byte, depth int) error {
	var url string
	var inner []byte
	err := fields(data, func(number protowire.Number, _ protowire.Type, value []byte) error {
		switch number {
		case 1:
			url = string(value)
		case 2:
			inner = value
		}
		return s.add(1, int64(len(value)))
	})
	if err != nil || s.types == nil {
		return err
	}
	t, err := s.types.FindMessageByURL(url)
	if err != nil {
		return nil //nolint:nilerr // protojson reports it
	}
	return s.message(t.Descriptor(), inner, depth+1)
}

// emptySize returns the size of the fields that a message always has in JSON.
func (s *scale) emptySize(of protoreflect.MessageDescriptor) int64 {
	size, known := s.empty[of.FullName()]
	if known {
		return size
	}
	for i := range of.Fields().Len() {
		if fd := of.Fields().Get(i); !fd.HasPresence() {
			size += int64(len(fd.JSONName())) + 8
		}
	}
	s.empty[of.FullName()] = size
	return size
}

// fields calls f with each field of an encoded message. The value of a group is its content.
func fields(data []byte, f func(protowire.Number, protowire.Type, []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errMalformed
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return errMalformed
		}
		value := data[:n]
		switch kind {
		case protowire.BytesType:
			value, _ = protowire.ConsumeBytes(data)
		case protowire.StartGroupType:
			value, _ = protowire.ConsumeGroup(number, data)
		}
		if err := f(number, kind, value); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// elements returns the number of elements of a packed list.
func elements(kind protoreflect.Kind, value []byte) int {
	switch kind {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return len(value) / 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return len(value) / 8
	}
	n := 0
	for _, b := range value {
		if b < 0x80 {
			n++
		}
	}
	return n
}
