package grpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"sallyport/gateway/upstream/apitools"
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
	data, err := apitools.ReadFile(a.opts.Descriptors, maxSet)
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
