package grpc

import "encoding/json"

// Decode returns a response of a tool in JSON.
func (a *API) Decode(name string, data []byte) (json.RawMessage, error) {
	return a.files.decode(a.newScale(), a.methods[name].of.Output(), data)
}
