package config

import (
	"errors"
	"strings"

	"sallyport/internal/tlsfiles"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// tlsDecoder reads the TLS of connections.
type tlsDecoder struct{ *decoder }

func (d tlsDecoder) tls(at path, n *yaml.Node, f *tlsfiles.Files) {
	d.Fields(at, n, []key{
		{"ca", d.path(&f.CA)},
		{"cert", d.path(&f.Cert)},
		{"key", d.path(&f.Key)},
	})
}

// upstreamTLS reads the TLS of an upstream. A file that cannot be used is a warning: it may be there when the upstream connects.
func (d tlsDecoder) upstreamTLS(at path, n *yaml.Node, f *tlsfiles.Files) {
	d.tls(at, n, f)
	if d.refs.Lenient || f.Pair() != nil {
		return
	}
	_, err := f.Config()
	if fault, ok := errors.AsType[*tlsfiles.Fault](err); ok {
		if value := yamlstrict.ValueOf(n, fault.Key); value != nil {
			d.warnings = append(d.warnings, yamlstrict.Fault{Line: value.Line, Column: value.Column, Message: label(at.To(fault.Key)) + ": " + fault.Message})
		}
	}
}

// tlsProblems returns the problems of the TLS of an upstream.
func (u Upstream) tlsProblems(at path) []problem {
	if u.TLS.IsSet() && strings.HasPrefix(u.URL, "http://") {
		return []problem{{at: at, onKey: true, message: `"tls" needs a "url" that starts with https://`}}
	}
	return pairProblems(at, u.TLS)
}

func pairProblems(at path, f tlsfiles.Files) []problem {
	if fault := f.Pair(); fault != nil {
		return []problem{{at: at.To(fault.Key), message: fault.Message}}
	}
	return nil
}
