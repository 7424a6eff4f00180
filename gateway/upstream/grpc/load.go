package grpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// readFiles reads the descriptors from their file, or asks the server.
func (a *API) readFiles(ctx context.Context) (*files, error) {
	if a.opts.Descriptors == "" {
		set, services, err := a.reflect(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask for the gRPC services: %w", err)
		}
		return link(set, services)
	}
	data, err := readFile(a.opts.Descriptors)
	if err != nil {
		return nil, fmt.Errorf("read the descriptor set: %w", err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	err = newScale(maxSetValues, maxSet, nil).message(set.ProtoReflect().Descriptor(), data, 0)
	if err == nil {
		err = proto.UnmarshalOptions{RecursionLimit: maxNesting}.Unmarshal(data, set)
	}
	if err != nil || len(set.File) == 0 {
		return nil, errors.New("the descriptor set is invalid: it must be what protoc --include_imports --descriptor_set_out writes")
	}
	return link(set, nil)
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		if e, ok := errors.AsType[*os.PathError](err); ok {
			err = e.Err
		}
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSet+1))
	if err == nil && len(data) > maxSet {
		err = fmt.Errorf("it has more than %d MiB", maxSet>>20)
	}
	return data, err
}
