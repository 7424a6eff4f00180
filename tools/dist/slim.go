package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A patch changes files of a library for a release, so that the linker can drop what the program never uses.
type patch struct {
	module string // "" is the standard library
	files  []filePatch
}

// filePatch changes one file. Each text must occur in it once, so a new version of the library that has another one stops
// the build. A text with "…" is what begins with the words before it, up to the words after it. A file without changes
// loses all but its package clause.
type filePatch struct {
	name    string
	changes [][2]string
	from    string // another file of the module, which is changed in its place; "" is the file itself
}

// patches are the changes of libraries. Nothing that the program does is changed:
//
//   - A template can call a method by its name, so the linker keeps every exported method of every type. Templates of
//     this project call functions only, which a test checks.
//   - The compiler makes a copy of the functions that sort slices for each type of elements, over a hundred. Package sort has the same
//     functions for elements by their index, once.
//   - bleve decodes, indexes and compares geographic shapes; there are none in the index, and no queries of them.
//   - bleve registers the formats of its segments on disk, of seven versions, and an older kind of index with its stores. The
//     index here is of the newer kind, and its segments have a format of their own, in memory.
//   - esbuild bundles style sheets; programs and the modules that they import are scripts and JSON.
//   - The storage engine has pages about the process, speaks MQTT and WebSocket, replicates records between servers, of which it is the
//     only one, and joins other clusters, at ports that are never open, and would ask for the state of certificates that it does not have. Its system account answers questions about the server, which no client of that account asks. It reads a
//     configuration file, which it has none of. Its client can encode messages with gob, which nothing does.
//   - The library that checks telephone numbers contains the names of regions in all languages, which are not used.
//   - The SDK of MCP encodes the cursors of its lists with gob; only the process that made a cursor reads it.
//   - CEL can read its environment from YAML, which nothing does, with another version of the YAML library.
//   - A library of OpenID Connect can store values in cookies, which nothing does.
//   - The exporters of OTLP over HTTP contain the options of OTLP over gRPC, and a client, a server and a proxy for it.
func patches() []patch {
	const gob = "\t\"encoding/gob\"\n"
	return []patch{
		{"", []filePatch{
			{name: "text/template/exec.go", changes: [][2]string{{"\tif method := ptr.MethodByName(fieldName); method.IsValid() {\n" +
				"\t\treturn s.evalCall(dot, method, false, node, fieldName, args, final)\n\t}\n", ""}}},
			{name: "slices/sort.go", changes: [][2]string{{"pdqsortCmpFunc(x, 0, n, bits.Len(uint(n)), cmp)", "pdqsort_func(indexed(x, cmp), 0, n, bits.Len(uint(n)))"}, {"stableCmpFunc(x, len(x), cmp)", "stable_func(indexed(x, cmp), len(x))"}}},
			{name: "slices/zsortanyfunc.go", changes: sortIndexed, from: "sort/zsortfunc.go"},
		}},
		{"github.com/blevesearch/geo", []filePatch{{name: "geojson/geojson_shapes_util.go", changes: withoutShapes}}},
		{"github.com/blevesearch/bleve/v2", []filePatch{
			{name: "geo/geo_s2plugin_impl.go", changes: [][2]string{{"func init() {\n\tregisterS2RegionTermIndexer()\n}\n", ""}}},
			{name: "index/scorch/snapshot_index.go", changes: [][2]string{{"geov2.NewQuery(shape, relation)", "geov2.Query(nil)"}}},
			{name: "index/scorch/segment_plugin.go", changes: segmentFormats()},
			{name: "index/upsidedown/index_reader.go", changes: sizeOf("ir")}, {name: "index/upsidedown/reader.go", changes: sizeOf("tfr", "cdr")},
			{name: "index/upsidedown/upsidedown.go", changes: [][2]string{{"registry.RegisterIndexType(Name, NewUpsideDownCouch)", "error(nil)"}}},
			{name: "index/upsidedown/store/boltdb/store.go", changes: withoutStore}, {name: "index/upsidedown/store/gtreap/store.go", changes: withoutStore},
		}},
		{"github.com/evanw/esbuild", []filePatch{
			{name: "internal/cache/cache_ast.go", changes: [][2]string{{"ast := css_parser.Parse(tempLog, source, options)", "ast := css_ast.AST{}\n\ttempLog.AddError(nil, logger.Range{}, \"style sheets cannot be imported\")"}}},
			{name: "internal/linker/linker.go", changes: [][2]string{
				{"\t\"github.com/evanw/esbuild/internal/css_parser\"\n", ""},
				{"\tchunk := &c.chunks[chunkIndex]\n\n\ttimer := c.timer.Fork()\n\tif timer != nil {\n\t\ttimeName := fmt.Sprintf(\"Generate chunk %q\", path.Clean(config.TemplateToString(chunk.finalTemplate)))\n\t\ttimer.Begin(timeName)\n\t\tdefer c.timer.Join(timer)\n\t\tdefer timer.End(timeName)\n\t}\n\n\tchunkRepr := chunk.chunkRepr.(*chunkReprCSS)\n…func wrapRulesWithConditions(", "\tpanic(\"style sheets are not parsed\")\n}\n\nfunc wrapRulesWithConditions("},
			}},
		}},
		{"github.com/nats-io/nats-server/v2", []filePatch{
			{name: "server/server.go", changes: [][2]string{
				{"\t_ \"net/http/pprof\"\n", ""}, {"\t\ts.startMQTT()\n", ""}, {"\t\ts.startWebsocketServer()\n", ""}, {"err := s.StartMonitoring(); err", "err := error(nil); err"},
				{"err := s.enableOCSP(); err", "err := error(nil); err"}, {"\ts.startOCSPMonitoring()\n", ""}, {"\ts.initOCSPResponseCache()\n", ""}, {"\ts.startOCSPResponseCache()\n", ""},
				{"\t\ts.startGateways()\n", ""}, {"\t\ts.startLeafNodeAcceptLoop()\n", ""}, {"\t\ts.solicitLeafNodeRemotes(opts.LeafNode.Remotes)\n", ""},
			}},
			{name: "server/client.go", changes: [][2]string{
				{"srv.startGoRoutine(func() { srv.reconnectGateway(gwCfg) })", ""}, {"srv.startGoRoutine(func() { srv.reConnectToRemoteLeafNode(leafCfg) })", ""},
			}},
			{name: "server/jetstream.go", changes: [][2]string{{"err := s.enableJetStreamClustering(); err", "err := error(nil); err"}}},
			{name: "server/parser.go", changes: [][2]string{{"return c.mqttParse(buf)", "return nil"}}},
			{name: "server/events.go", changes: [][2]string{
				{"\tmonSrvc := map[string]sysMsgHandler{\n…\tfor name, req := range monSrvc {\n", "\tmonSrvc := map[string]sysMsgHandler{}\n\tvar profilez msgHandler\n\tfor name, req := range monSrvc {\n"},
				{"\textractAccount := func(subject string) (string, error) {\n…\tfor name, req := range monAccSrvc {\n", "\tmonAccSrvc := map[string]sysMsgHandler{}\n\tfor name, req := range monAccSrvc {\n"},
			}},
			{name: "server/opts.go", changes: [][2]string{{"\tm, digest, err := conf.ParseFileWithChecksDigest(configFile)\n…\treturn o.processConfigFile(configFile, m)\n", "\treturn fmt.Errorf(\"read %s: no configuration files\", configFile)\n"}}},
			{name: "server/reload.go", changes: [][2]string{{"err := s.reloadOCSP(); err", "err := error(nil); err"}, {"s.connectToRemoteLeafNodeAsynchronously(r, true)", "_ = r"}, {"\t\ts.solicitLeafNodeRemotes(l.added)\n", ""}, {"\tnewOpts, err := ProcessConfigFile(configFile)\n…\treturn s.ReloadOptions(newOpts)\n", "\treturn fmt.Errorf(\"read %s: no configuration files\", configFile)\n"}}},
		}},
		{"github.com/nats-io/nats.go", []filePatch{{name: "encoders/builtin/gob_enc.go", changes: [][2]string{{gob, "\t\"encoding/json\"\n"}, {"gob.NewEncoder(", "json.NewEncoder("}, {"gob.NewDecoder(", "json.NewDecoder("}}}}},
		{"github.com/nyaruka/phonenumbers", []filePatch{{name: "geocoding.go", changes: [][2]string{{"\t\"golang.org/x/text/language/display\"\n", ""}, {"return display.Regions(langT).Name(reg), nil", "_ = langT\n\treturn reg.String(), nil"}}}}},
		{"github.com/modelcontextprotocol/go-sdk", []filePatch{{name: "mcp/server.go", changes: [][2]string{{gob, ""}, {"gob.NewEncoder(", "json.NewEncoder("}, {"gob.NewDecoder(", "json.NewDecoder("}}}}},
		{"cel.dev/cel-go", []filePatch{{name: "common/env/io.go", changes: sameYAML}, {name: "ext/encoders.go", changes: sameYAML}}},
		{"github.com/gorilla/securecookie", []filePatch{{name: "securecookie.go", changes: [][2]string{{gob, ""}, {"gob.NewEncoder(", "json.NewEncoder("}, {"gob.NewDecoder(", "json.NewDecoder("}}}}},
		{"go.opentelemetry.io/proto/otlp", []filePatch{
			{name: "collector/trace/v1/trace_service_grpc.pb.go"}, {name: "collector/trace/v1/trace_service.pb.gw.go"},
			{name: "collector/metrics/v1/metrics_service_grpc.pb.go"}, {name: "collector/metrics/v1/metrics_service.pb.gw.go"},
		}},
		{"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp", []filePatch{{name: "internal/otlpconfig/options.go", changes: withoutGRPC("Traces", "\t_ = userAgent\n")}}},
		{"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp", []filePatch{{name: "internal/oconf/options.go", changes: withoutGRPC("Metrics", "")}}},
	}
}

// sortIndexed is what package sort has, for slices of any type.
var sortIndexed = [][2]string{{"package sort\n", `package slices

type lessSwap struct {
	Less func(i, j int) bool
	Swap func(i, j int)
}

func indexed[S ~[]E, E any](x S, cmp func(a, b E) int) lessSwap {
	return lessSwap{func(i, j int) bool { return cmp(x[i], x[j]) < 0 }, func(i, j int) { x[i], x[j] = x[j], x[i] }}
}
`}}

// sameYAML uses the YAML library of the settings.
var sameYAML = [][2]string{{"\"go.yaml.in/yaml/v3\"", "\"gopkg.in/yaml.v3\""}}

// withoutShapes makes each geographic shape an error, without the libraries that decode and compare them.
var withoutShapes = [][2]string{
	{"\t\"encoding/binary\"\n\t\"fmt\"\n\t\"strings\"\n", "\t\"encoding/json\"\n\t\"errors\"\n"},
	{"\tjsoniterator \"github.com/json-iterator/go\"\n", ""},
	{"var jsoniter = jsoniterator.ConfigCompatibleWithStandardLibrary\n", `var jsoniter standardJSON

type standardJSON struct{}

func (standardJSON) Marshal(v any) ([]byte, error) { return json.Marshal(v) }

func (standardJSON) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

var errNoShapes = errors.New("no geographic shapes")
`},
	{"// FilterGeoShapesOnRelation extracts the shapes in the document…\treturn rv, vbytes, nil\n}\n", `func FilterGeoShapesOnRelation(index.GeoJSON, []byte, string, **bytes.Reader, *s2.GeoBufferPool) (bool, error) {
	return false, errNoShapes
}

func ExtractShapesFromBytes([]byte, **bytes.Reader, *s2.GeoBufferPool) (index.GeoJSON, error) {
	return nil, errNoShapes
}

func ParseGeoJSONShape([]byte) (index.GeoJSON, error) { return nil, errNoShapes }

func NewGeoJsonShape([][][][]float64, string) (index.GeoJSON, []byte, error) {
	return nil, nil, errNoShapes
}

func NewGeometryCollection([]*GeoShape) (index.GeoJSON, []byte, error) { return nil, nil, errNoShapes }

func NewGeoCircleShape([]float64, string) (*Circle, []byte, error) { return nil, nil, errNoShapes }
`},
}

// sizeOf computes the size of variables without reflection, for which the linker would keep all methods of their types.
func sizeOf(variables ...string) [][2]string {
	changes := [][2]string{{"\t\"reflect\"\n", "\t\"unsafe\"\n"}}
	for _, v := range variables {
		changes = append(changes, [2]string{"reflect.TypeOf(" + v + ").Size()", "unsafe.Sizeof(" + v + ")"})
	}
	return changes
}

// withoutStore removes the registration of a store of bleve's older kind of index.
var withoutStore = [][2]string{{"\t\"github.com/blevesearch/bleve/v2/registry\"\n", ""}, {"registry.RegisterKVStore(Name, New)", "error(nil)"}}

// segmentFormats removes the imports and the registrations of bleve's formats.
func segmentFormats() (changes [][2]string) {
	for version := 11; version <= 17; version++ {
		changes = append(changes, [2]string{fmt.Sprintf("\tzapv%d \"github.com/blevesearch/zapx/v%[1]d\"\n", version), ""},
			[2]string{fmt.Sprintf("\tRegisterSegmentPlugin(&zapv%d.ZapPlugin{}, %v)\n", version, version == 17), ""})
	}
	return changes
}

// withoutGRPC removes what the options of an exporter have for gRPC only. options replaces the computation of gRPC's.
func withoutGRPC(signal, options string) [][2]string {
	return [][2]string{
		{"\t\"google.golang.org/grpc\"\n…grpc/encoding/gzip\"\n", ""},
		{"\t\tGRPCCredentials credentials.TransportCredentials\n", ""},
		{"\t\tDialOptions        []grpc.DialOption\n\t\tGRPCConn           *grpc.ClientConn\n", ""},
		{"\t// dialOptsPrefix holds…\tcfg.DialOptions = append(dialOptsPrefix, cfg.DialOptions...)\n", options},
		{"\t\tcfg." + signal + ".GRPCCredentials = credentials.NewTLS(tlsCfg)\n", ""},
	}
}

var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// apply returns the text with the changes.
func (p filePatch) apply(text string) (string, error) {
	if p.changes == nil {
		return packageClause.FindString(text) + "\n", nil
	}
	for _, c := range p.changes {
		from, until, _ := strings.Cut(c[0], "…")
		before, rest, found := strings.Cut(text, from)
		_, after, whole := strings.Cut(rest, until)
		if !found || !whole || strings.Contains(rest, from) {
			return "", fmt.Errorf("patch %s: this version does not have %q once: change patches in tools/dist/slim.go", p.name, c[0])
		}
		text = before + c[1] + after
	}
	return text, nil
}

// packedFiles are patterns of embedded files that a release compresses: what reads them takes both forms, see internal/packed.
func packedFiles() []string {
	return []string{
		"gateway/httpapi/openapi.json", "internal/config/upstreams.schema.json", "internal/pii/secretrules.json",
		"index/phrases/actions.txt", "index/phrases/languages.txt", "index/phrases/things.txt", "index/wordvec/vectors.bin",
		"gateway/dashboard/static/editor.min.js", "gateway/dashboard/static/htmx.min.js", "gateway/dashboard/static/style.css", "gateway/dashboard/templates/*.html",
		"codegen/runtime/guest/*.*", "codegen/runtime/guest/sallyport/*.py", "codegen/runtime/client/python/*", "codegen/runtime/client/typescript/*",
		"internal/presets/data/*.json", "tools/upstreams/package-lock.json",
	}
}

// compressFiles writes the compressed files to the work folder, and adds them to what replaces files.
func compressFiles(root, work string, replaced map[string]string) error {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	for _, pattern := range packedFiles() {
		names, err := fs.Glob(os.DirFS(root), pattern)
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("no file matches %s: change packedFiles in tools/dist/slim.go", pattern)
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := compressFile(z, root, work, name, replaced); err != nil {
				return err
			}
		}
	}
	return nil
}

func compressFile(z *zstd.Encoder, root, work, name string, replaced map[string]string) error {
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return err
	}
	to := filepath.Join(work, "packed", name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to, z.EncodeAll(data, nil), 0o644); err != nil {
		return err
	}
	replaced[filepath.Join(root, name)] = to
	return nil
}

// slim writes the patched libraries to the work folder, and returns the flags of go build that use them.
func (r *release) slim(ctx context.Context) ([]string, error) {
	replaced := map[string]string{}
	var replaces strings.Builder
	for i, p := range patches() {
		dir := filepath.Join(r.work, "slim", fmt.Sprint(i))
		source, err := p.source(ctx, r.root)
		if err == nil && p.module != "" {
			err = os.CopyFS(dir, os.DirFS(source))
		}
		if err == nil {
			err = p.write(source, dir)
		}
		if err != nil {
			return nil, err
		}
		if p.module == "" {
			for _, f := range p.files {
				replaced[filepath.Join(source, f.name)] = filepath.Join(dir, f.name)
			}
			continue
		}
		path, err := filepath.Rel(r.root, dir)
		if err != nil {
			return nil, err
		}
		path = "./" + filepath.ToSlash(path)
		fmt.Fprintf(&replaces, "\nreplace %s => %s\n", p.module, path)
		_, version, _ := strings.Cut(source, "@") // of its folder in the module cache
		r.replaced = append(r.replaced, [3]string{path, p.module, version})
	}
	if err := compressFiles(r.root, r.work, replaced); err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err == nil {
		err = os.WriteFile(filepath.Join(r.work, "overlay.json"), overlay, 0o644)
	}
	if err == nil {
		err = writeModFile(r.root, r.work, replaces.String())
	}
	return []string{"-overlay=" + filepath.Join(r.work, "overlay.json"), "-modfile=" + filepath.Join(r.work, "slim.mod")}, err
}

// source returns the folder of a module, or of the standard library.
func (p patch) source(ctx context.Context, root string) (string, error) {
	words := []string{"env", "GOROOT"}
	if p.module != "" {
		words = []string{"list", "-m", "-f", "{{.Dir}}", p.module}
	}
	cmd := exec.CommandContext(ctx, "go", words...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(words, " "), err)
	}
	dir := strings.TrimSpace(string(out))
	if p.module == "" {
		dir = filepath.Join(dir, "src")
	}
	return dir, nil
}

// write writes the patched files to a copy of their module.
func (p patch) write(from, to string) error {
	for _, f := range p.files {
		data, err := os.ReadFile(filepath.Join(from, cmp.Or(f.from, f.name)))
		if err != nil {
			return err
		}
		text, err := f.apply(string(data))
		if err != nil {
			return fmt.Errorf("%s: %w", p.module, err)
		}
		path := filepath.Join(to, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.RemoveAll(path); err != nil { // a copy of a file of the module cache is read-only
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// original returns a list of modules with the patched ones under their own names: in the program they are named by the
// folders of the patched copies.
func original(list string, replaced [][3]string) string {
	for _, module := range replaced {
		path, name, version := module[0], module[1], module[2]
		list = strings.ReplaceAll(list, path+"@(devel)", name+"@"+version)
		list = regexp.MustCompile(`"name": "`+regexp.QuoteMeta(path)+`",(\s+)"version": "\(devel\)"`).ReplaceAllString(list, `"name": "`+name+`",$1"version": "`+version+`"`)
	}
	return list
}

// writeModFile writes the go.mod that replaces the patched modules.
func writeModFile(root, work, replaces string) error {
	for _, name := range []string{"mod", "sum"} {
		data, err := os.ReadFile(filepath.Join(root, "go."+name))
		if err != nil {
			return err
		}
		if name == "mod" {
			data = append(data, replaces...)
		}
		if err := os.WriteFile(filepath.Join(work, "slim."+name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
