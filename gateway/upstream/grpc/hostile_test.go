package grpc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"sallyport/gateway/upstream/grpc"
	"sallyport/internal/testutil/grpcserver"
	"sallyport/internal/testutil/tlstest"
)

// field returns an encoded field of bytes.
func field(number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), data)
}

// nested returns levels of fields in each other.
func nested(levels int, wrap func([]byte) []byte) (data []byte) {
	for range levels {
		data = wrap(data)
	}
	return data
}

func anyOf(url string, value []byte) []byte {
	return append(field(1, []byte(url)), field(2, value)...)
}

// frame returns a message in its frame.
func frame(flag byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(data))), data...)
}

func zipped(tb testing.TB, size int) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, size)); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// hostile returns the tools of a server that answers each call with the same bytes.
func hostile(t *testing.T, body []byte, trailer map[string]string) *grpc.API {
	t.Helper()
	server := tlstest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Encoding", "gzip")
		_, _ = w.Write(body)
		for name, value := range trailer {
			w.Header().Set(http.TrailerPrefix+name, value)
		}
	}))
	return load(t, grpc.Options{Endpoint: server.URL, Descriptors: descriptorFile(t, grpcserver.Descriptors), Transport: plain(t), Include: []string{"GetOrder", "ListOrders"}, MaxResponse: 4 << 20})
}

// TestHostileResponses: a response that is wrong, or would become large, is a failure that says so.
func TestHostileResponses(t *testing.T) {
	t.Parallel()
	const tooMany = "error: the response has more than 300000 values"
	tree := nested(150, func(inner []byte) []byte { return field(2, inner) })
	anys := nested(150, func(inner []byte) []byte { return anyOf("x/google.protobuf.Any", inner) })
	for name, c := range map[string]struct {
		message []byte
		want    string
	}{
		"empty messages": {bytes.Repeat(field(4, nil), 400_000), tooMany},
		"packed values":  {field(20, bytes.Repeat([]byte{1}, 400_000)), tooMany},
		"levels":         {field(22, tree), "error: the response is not a shop.v1.Order: it is nested more than 100 levels deep"},
		"levels of Any":  {field(15, anys), "error: the response is not a shop.v1.Order: it is nested more than 100 levels deep"},
		"malformed":      {[]byte{0xff}, "error: the response is not a shop.v1.Order: it is not a valid message"},
		"no text":        {field(2, []byte{0xff}), "error: the response is not a shop.v1.Order: field shop.v1.Order.customer_name contains invalid UTF-8"},
		"a wrong time":   {field(10, []byte{8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), "error: the response is not a shop.v1.Order: google.protobuf.Timestamp: seconds out of range"},
		"an unknown Any": {field(15, anyOf("x/none.Such", []byte{0xff})), "error: the response is not a shop.v1.Order: "},
	} {
		got := call(t, hostile(t, frame(0, c.message), map[string]string{"Grpc-Status": "0"}), "GetOrder", `{"id":1}`)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}

// TestHostileFrames: what is not as gRPC has it is a failure, without the memory that it claims.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	done := map[string]string{"Grpc-Status": "0"}
	for name, c := range map[string]struct {
		body    []byte
		trailer map[string]string
		want    string
	}{
		"a bomb":       {frame(1, zipped(t, 64<<20)), done, "error: the response has more than 4194304 bytes"},
		"a long frame": {[]byte{0, 0xff, 0xff, 0xff, 0xff}, done, "error: the response has more than 4194304 bytes"},
		"two messages": {append(frame(0, nil), frame(0, nil)...), done, "refused: UNIMPLEMENTED: unary response has multiple messages"},
		"no message":   {nil, done, "refused: UNIMPLEMENTED: unary response has zero messages"},
		"no status":    {frame(0, nil), nil, "refused: INTERNAL: protocol error: no Grpc-Status trailer"},
		"escapes":      {nil, map[string]string{"Grpc-Status": "5", "Grpc-Message": "a%1B[31mb" + strings.Repeat("c", 5000)}, "error: gRPC NOT_FOUND: abccc"},
		"bad details":  {nil, map[string]string{"Grpc-Status": "5", "Grpc-Status-Details-Bin": "AAAA"}, "refused: INTERNAL: server returned invalid protobuf for error details"},
	} {
		got := call(t, hostile(t, c.body, c.trailer), "GetOrder", `{"id":1}`)
		if !strings.HasPrefix(got, c.want) || len(got) > 1200 {
			t.Errorf("%s: %.300s (%d bytes)", name, got, len(got))
		}
	}
}

// proto3 returns a file with messages, each with fields of the types that it names.
func proto3(name, pkg string, imports []string, messages ...*descriptorpb.DescriptorProto) *descriptorpb.FileDescriptorProto {
	return &descriptorpb.FileDescriptorProto{Name: &name, Package: &pkg, Syntax: new("proto3"), Dependency: imports, MessageType: messages}
}

func message(name string, types ...string) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: &name}
	for i, t := range types {
		f := &descriptorpb.FieldDescriptorProto{Name: new(fmt.Sprint("f", i)), Number: new(int32(i + 1)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(), Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: &t}
		if t == "" {
			f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), nil
		}
		m.Field = append(m.Field, f)
	}
	return m
}

// withService adds a service whose methods take and return a message.
func withService(f *descriptorpb.FileDescriptorProto, service, of string, methods ...string) *descriptorpb.FileDescriptorProto {
	s := &descriptorpb.ServiceDescriptorProto{Name: &service}
	for _, m := range methods {
		s.Method = append(s.Method, &descriptorpb.MethodDescriptorProto{Name: &m, InputType: &of, OutputType: &of})
	}
	f.Service = append(f.Service, s)
	return f
}

func encoded(tb testing.TB, files ...*descriptorpb.FileDescriptorProto) []byte {
	tb.Helper()
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: files})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func loadSet(tb testing.TB, data []byte) (*grpc.API, error) {
	tb.Helper()
	return grpc.Load(tb.Context(), grpc.Options{Endpoint: "http://unused.example", Descriptors: descriptorFile(tb, data), Transport: offline{}})
}

// offline sends no request.
type offline struct{}

var errOffline = errors.New("offline")

func (offline) RoundTrip(*http.Request) (*http.Response, error) { return nil, errOffline }

// hostileSets are descriptor sets with what is wrong, and the error of each.
func hostileSets(tb testing.TB) map[string]struct {
	data []byte
	want string
} {
	tb.Helper()
	deep := message("M")
	for range 40 {
		deep = &descriptorpb.DescriptorProto{Name: new("M"), NestedType: []*descriptorpb.DescriptorProto{deep}}
	}
	var many []string
	for i := range 5001 {
		many = append(many, fmt.Sprint("M", i))
	}
	twice := message("M", "", "")
	twice.Field[0].JsonName, twice.Field[1].JsonName = new("x"), new("x")
	return map[string]struct {
		data []byte
		want string
	}{
		"no set":        {[]byte("syntax = \"proto3\";"), "the descriptor set is invalid"},
		"nothing":       {nil, "the descriptor set is invalid"},
		"a cycle":       {encoded(tb, proto3("a", "p", []string{"b"}), proto3("b", "p", []string{"a"})), "no method that can be a tool"},
		"a standard":    {encoded(tb, proto3("a", "google.protobuf", nil, message("Timestamp", ""))), "a declares a standard message"},
		"deep":          {encoded(tb, proto3("a", "p", nil, deep)), "messages in messages of more than 32 levels"},
		"long":          {encoded(tb, proto3("a", "p", nil, message(strings.Repeat("x", 900)))), "a name of more than 800 characters"},
		"many methods":  {encoded(tb, withService(proto3("a", "p", nil, message("M")), "S", ".p.M", many...)), "more than 5000 methods"},
		"many messages": {field(1, bytes.Repeat(field(4, nil), 4_000_000)), "the descriptor set is invalid"},
		"twice":         {encoded(tb, withService(proto3("a", "p", nil, twice), "S", ".p.M", "Get")), "two fields x in JSON"},
		"one invalid":   {encoded(tb, withService(proto3("a", "p", nil, message("1")), "S", ".p.1", "Get")), `file "a": descriptor "p" has an invalid nested name: "1"`},
		"no service":    {encoded(tb, proto3("a", "p", nil, message("M"))), "no method that can be a tool"},
	}
}

func TestHostileDescriptors(t *testing.T) {
	t.Parallel()
	for name, c := range hostileSets(t) {
		start := time.Now()
		_, err := loadSet(t, c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if spent := time.Since(start); spent > 2*time.Minute {
			t.Errorf("%s took %v", name, spent)
		}
	}
}

// TestMissingFile: a method whose messages are in a file that is not there is left out, and the others are tools.
func TestMissingFile(t *testing.T) {
	t.Parallel()
	f := proto3("a", "p", []string{"missing", "google/protobuf/timestamp.proto"}, message("M", ".google.protobuf.Timestamp"), message("N", ".q.Gone"))
	api, err := loadSet(t, encoded(t, withService(withService(f, "S", ".p.M", "Get"), "T", ".p.N", "Take"), proto3("google/protobuf/timestamp.proto", "google.protobuf", nil, message("Timestamp", ""))))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(api.Names(), api.Skipped); got != "[Get] [method p.T/Take: the message q.Gone is not described]" {
		t.Error(got)
	}
	if d := definition(t, api, "Get"); !strings.Contains(d, `"f0":{"type":"string","format":"date-time"}`) {
		t.Errorf("the standard message of the server is used: %s", d)
	}
}

// TestLargeMessages: messages that contain each other in every way have a schema that is small enough, in little time.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	const n = 60
	var types, methods []string
	for i := range n {
		types = append(types, fmt.Sprint(".p.M", i))
	}
	f := proto3("a", "p", nil)
	for i := range n {
		f.MessageType = append(f.MessageType, message(fmt.Sprint("M", i), types...))
	}
	wide := make([]string, 20_000)
	f.MessageType = append(f.MessageType, message("Wide", wide...))
	for i := range 1000 {
		methods = append(methods, fmt.Sprint("Call", i))
	}
	withService(withService(f, "S", ".p.M0", methods...), "W", ".p.Wide", "Widest")
	for i := range 15 {
		withService(f, fmt.Sprint("T", i), fmt.Sprint(".p.M", i), fmt.Sprint("Each", i))
	}
	start := time.Now()
	api, err := loadSet(t, encoded(t, f))
	if err != nil {
		t.Fatal(err)
	}
	if spent := time.Since(start); spent > 2*time.Minute {
		t.Errorf("it took %v", spent)
	}
	for _, d := range api.Definitions() {
		if len(d) > 110_000 {
			t.Fatalf("%d bytes: %.200s", len(d), d)
		}
	}
}

// TestNames: names are those of the methods, or else tell them apart.
func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Long", 50)
	one := withService(withService(proto3("a", "p", nil, message("M")), "S", ".p.M", "Get", "Put", long), "T", ".p.M", "get", "S_Get")
	two := withService(proto3("b", "q", []string{"a"}), "S", ".p.M", "Get")
	api, err := loadSet(t, encoded(t, one, two))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(api.Names(), " ")
	if !regexp.MustCompile(`^(LongLong\w+_[0-9a-f]{8}) Put S_Get_[0-9a-f]{8} S_Get_[0-9a-f]{8} S_Get_[0-9a-f]{8} T_get$`).MatchString(got) {
		t.Error(got)
	}
	for _, name := range api.Names() {
		if len(name) > 128 {
			t.Errorf("%d characters: %s", len(name), name)
		}
	}
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_]{1,128}$`)

// FuzzDescriptors: whatever a descriptor set has, its tools have names and schemas, and a call of each is sent or refused.
func FuzzDescriptors(f *testing.F) {
	f.Add(grpcserver.Descriptors)
	for name, c := range hostileSets(f) {
		if len(c.data) < 10_000 && name != "" {
			f.Add(c.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		api, err := loadSet(t, data)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, name := range api.Names() {
			if !toolName.MatchString(name) || seen[strings.ToLower(name)] {
				t.Errorf("a tool is named %q", name)
			}
			seen[strings.ToLower(name)] = true
			if _, err := api.Call(context.Background(), name, json.RawMessage(`{}`)); err == nil {
				t.Errorf("%s has a result without a server", name)
			}
		}
		compile(t, api)
	})
}

// FuzzResponse: whatever a response has, it is valid JSON or an error.
func FuzzResponse(f *testing.F) {
	api, err := loadSet(f, grpcserver.Descriptors)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(field(15, anyOf("x/shop.v1.Item", field(1, []byte("a")))))
	f.Add(field(22, nested(90, func(inner []byte) []byte { return field(2, inner) })))
	f.Add(bytes.Repeat(field(4, nil), 1000))
	f.Add(field(13, field(1, append(field(1, []byte("k")), field(2, field(3, []byte("v")))...))))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := api.Decode("SaveOrder", data)
		if err == nil && !json.Valid(text) {
			t.Errorf("%q is %s", data, text)
		}
	})
}
