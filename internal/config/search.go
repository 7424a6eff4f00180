package config

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
)

// maxModel is the longest name of a model, in bytes, and maxPrefix the longest prefix of the texts that it embeds.
const maxModel, maxPrefix = 200, 500

// problems returns the problems. They never show a part of the URL, which may hold a key.
func (e Embeddings) problems(at path) []problem {
	all := between(at.To("timeout"), e.Timeout, 10*time.Millisecond, 30*time.Second)
	if e.Problem != "" {
		return all // its values mean nothing
	}
	missing := func(name, what string) []problem {
		return []problem{{at: at, onKey: true, needs: []path{at.To(name), at.Unknown()}, message: fmt.Sprintf("%s needs %q, %s", label(at), name, what)}}
	}
	if e.URL == "" {
		all = append(all, missing("url", "that of an OpenAI-compatible API")...)
	} else {
		all = append(all, urlProblems(at.To("url"), e.URL)...)
	}
	switch {
	case e.Model == "":
		all = append(all, missing("model", "the name that the endpoint knows it by")...)
	case len(e.Model) > maxModel || strings.ContainsFunc(e.Model, unicode.IsControl):
		all = append(all, problem{at: at.To("model"), message: fmt.Sprintf("a model's name has at most %d bytes and no control characters", maxModel)})
	}
	for _, prefix := range [][2]string{{"query_prefix", e.QueryPrefix}, {"document_prefix", e.DocumentPrefix}} {
		if len(prefix[1]) > maxPrefix || strings.ContainsRune(prefix[1], 0) {
			all = append(all, problem{at: at.To(prefix[0]), message: fmt.Sprintf("a prefix has at most %d bytes and no NUL", maxPrefix)})
		}
	}
	return slices.Concat(all, headerProblems(at.To("headers"), e.Headers), ownHeaderProblems(at.To("headers"), e.Headers))
}

// ownHeaderProblems returns problems of headers that the gateway sets itself.
func ownHeaderProblems(at path, headers Secrets) []problem {
	for _, name := range sortedKeys(headers) {
		if slices.Contains([]string{"content-type", "content-length", "transfer-encoding", "host", "connection"}, strings.ToLower(name)) {
			return []problem{{at: at.To(name), onKey: true, message: fmt.Sprintf("header %.40q is set by the gateway", name)}}
		}
	}
	return nil
}

// String shows neither URL nor values of headers: either may hold a key.
func (e Embeddings) String() string {
	return fmt.Sprintf("embeddings (headers %v)", e.Headers)
}

// Format writes String for every verb.
func (e Embeddings) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.String()) }

// MarshalText returns String.
func (e Embeddings) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// LogValue returns String.
func (e Embeddings) LogValue() slog.Value { return slog.StringValue(e.String()) }
