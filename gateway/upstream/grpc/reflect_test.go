package grpc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"sallyport/gateway/upstream/grpc"
	"sallyport/internal/testutil/tlstest"
)

// asked is a request of reflection.
type asked struct{ file, symbol string }

// readAsked reads a request of a stream.
func readAsked(r io.Reader) (q asked, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return q, err
	}
	data := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(r, data); err != nil {
		return q, err
	}
	for len(data) > 0 {
		number, _, n := protowire.ConsumeTag(data)
		value, m := protowire.ConsumeBytes(data[n:])
		switch number {
		case 3:
			q.file = string(value)
		case 4:
			q.symbol = string(value)
		}
		data = data[n+m:]
	}
	return q, nil
}

// reflecting returns the URL of a server with one method of its own for reflection.
func reflecting(t *testing.T, answer func(asked) []byte) string {
	t.Helper()
	return tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		flush := http.NewResponseController(w)
		for {
			q, err := readAsked(r.Body)
			if err != nil {
				break
			}
			reply := answer(q)
			if reply == nil {
				<-r.Context().Done()
				return
			}
			_, _ = w.Write(frame(0, reply))
			_ = flush.Flush()
		}
		w.Header().Set("Grpc-Status", "0")
	})).URL
}

func services(names ...string) []byte {
	var list []byte
	for _, name := range names {
		list = append(list, field(1, field(1, []byte(name)))...)
	}
	return field(6, list)
}

func files(tb testing.TB, all ...*descriptorpb.FileDescriptorProto) []byte {
	tb.Helper()
	var list []byte
	for _, f := range all {
		data, err := proto.Marshal(f)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, field(1, data)...)
	}
	return field(4, list)
}

// TestHostileReflection: what a server describes is bounded, and so is the time for it.
func TestHostileReflection(t *testing.T) {
	t.Parallel()
	many, made := make([]string, 3000), 0
	for i := range many {
		many[i] = fmt.Sprint("S", i)
	}
	listed := func(next func(asked) []byte) func(asked) []byte {
		return func(q asked) []byte {
			if q == (asked{}) {
				return services("p.S")
			}
			return next(q)
		}
	}
	for name, c := range map[string]struct {
		answer func(asked) []byte
		want   string
	}{
		"many services":  {func(asked) []byte { return services(many...) }, "more than 2000 services"},
		"a bomb":         {listed(func(asked) []byte { return field(4, field(1, bytes.Repeat(field(4, nil), 4_000_000))) }), "the descriptors cannot be read"},
		"a large one":    {listed(func(asked) []byte { return make([]byte, 20<<20) }), "is larger than configured max"},
		"no end":         {listed(func(asked) []byte { return nil }), context.DeadlineExceeded.Error()},
		"another answer": {func(asked) []byte { return files(t) }, "ask for the gRPC services: "},
		"imports": {listed(func(asked) []byte {
			made++
			return files(t, proto3(fmt.Sprint(made), "p", []string{fmt.Sprint(made + 1)}))
		}), "more than 5000 files"},
		"one service": {listed(func(q asked) []byte {
			return files(t, withService(proto3("a", "p", nil, message("M", "")), "S", ".p.M", "Get"))
		}), ""},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		if name == "no end" {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		}
		api, err := grpc.Load(ctx, grpc.Options{Endpoint: reflecting(t, c.answer), Transport: plain(t)})
		cancel()
		if c.want == "" {
			if err != nil || fmt.Sprint(api.Names()) != "[Get]" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
