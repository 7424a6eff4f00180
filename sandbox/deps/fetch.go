package deps

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"sallyport/internal/lists"
	"sallyport/sandbox"
)

//go:embed driver.py
var driver []byte

// driverRequest is the request to the driver, one line of JSON.
type driverRequest struct {
	Language     sandbox.Interpreter `json:"language"`
	Requirements []string            `json:"requirements"`
	Dependencies map[string]string   `json:"dependencies"` // of npm
	Index        string              `json:"index"`
	Insecure     []string            `json:"insecure"`
	Lock         []string            `json:"lock"`
	NPM          json.RawMessage     `json:"npm"`
	Node         string              `json:"node"`
	Source       bool                `json:"source"`
	Layer        string              `json:"layer"` // what to compile, inside
}

// encode encodes the order. Empty lists are encoded as [], not as null.
func (o driverRequest) encode() ([]byte, error) {
	data, err := json.Marshal(lists.FillNil(o))
	return append(data, '\n'), err
}

// driverReport is the driver's response, one line of JSON.
type driverReport struct {
	Target string            `json:"target"`
	NPM    json.RawMessage   `json:"npm"`
	Built  map[string]string `json:"built"` // wheels by the source distribution that they were built from
	Kind   string            `json:"kind"`
	Error  string            `json:"error"`
}

// download is one file from the sandbox, in the staging folder.
type download struct {
	name, sha256, sha512 string
	path                 string
}

// fetchResult is the complete output of an installing sandbox.
type fetchResult struct {
	report driverReport
	files  map[string]download // by name
}

const (
	maxReport       = 64 << 20 // npm's lock of 2,000 packages has 1 MB
	serviceOverhead = 256 << 20
)

// driverHello is the driver's first line: the index that it will use. Without an index in
// the settings it is the default of the machine's pip or npm. No downloaded code has run
// at that point, so it can be trusted.
type driverHello struct {
	Index string   `json:"index"`
	Hosts []string `json:"hosts"`
}

// targets returns the allowed destinations of an installation: its index, and the operator's hosts.
func (r Request) targets(g driverHello) ([]Target, error) {
	if r.Index != "" {
		g = driverHello{Index: r.Index}
	}
	u, err := url.Parse(g.Index)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%w: the index %.200q is not an http or https URL", ErrRefused, stripCredentials(g.Index))
	}
	if u.User != nil && r.Source {
		return nil, fmt.Errorf("%w: an index with a password and source distributions, whose build could read it", ErrRefused)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	all := []Target{{Host: strings.ToLower(u.Hostname()), Port: port, Private: r.Index != ""}}
	for _, host := range g.Hosts {
		all = append(all, Target{Host: strings.ToLower(host), Port: "443"})
	}
	for _, name := range r.Hosts {
		name = strings.ToLower(name)
		if host, port, err := net.SplitHostPort(name); err == nil {
			all = append(all, Target{host, port, true})
			continue
		}
		all = append(all, Target{name, "443", true}, Target{name, "80", true})
	}
	return all, nil
}

// driverRequest returns the driver's order for a request. With a lock, exactly its files are fetched.
func (r Request) driverRequest(all []parsedRequirement, lock *Lock) driverRequest {
	o := driverRequest{ // no nil lists: the driver would read them as None
		Language: r.Interpreter, Index: r.Index, Source: r.Source, Dependencies: map[string]string{},
		Requirements: []string{}, Insecure: []string{}, Lock: []string{},
	}
	if u, err := url.Parse(o.Index); err == nil && u.Scheme == "http" {
		o.Insecure = append([]string{u.Host}, r.Hosts...)
	}
	for _, w := range all {
		o.Requirements = append(o.Requirements, w.text)
		o.Dependencies[w.name] = w.spec
	}
	if lock == nil {
		return o
	}
	o.NPM = lock.NPM
	for _, file := range lock.Files {
		o.Lock = append(o.Lock, fmt.Sprintf("%s==%s --hash=%s", file.Name, file.Version, file.Hash))
	}
	return o
}

// fetch runs the installing sandbox and stores its output in the staging folder.
func (i *Installer) fetch(ctx context.Context, request Request, o driverRequest, staging string) (fetchResult, error) {
	service, err := i.service(request)
	if err != nil {
		return fetchResult{}, err
	}
	return i.runDriver(ctx, service, request, o, staging)
}

func (i *Installer) runDriver(ctx context.Context, service sandbox.Service, request Request, o driverRequest, staging string) (fetchResult, error) {
	server, err := i.host.Serve(service)
	if err != nil {
		return fetchResult{}, err
	}
	defer func() { _ = server.Close() }()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	got, err := i.exchange(ctx, server, request, o, staging)
	switch {
	case ctx.Err() != nil:
		return fetchResult{}, fmt.Errorf("%w: installing took too long, or was given up: %w", ErrLimit, context.Cause(ctx))
	case errors.Is(err, errTruncated):
		return fetchResult{}, fmt.Errorf("the sandbox that installs ended early (it may need more memory, or pip or npm is broken): %w", err)
	}
	return got, err
}

// errTruncated means that the driver's output is incomplete.
var errTruncated = errors.New("incomplete answer")

// exchange sends the order to the driver, serves the proxy to the index, and receives the files.
func (i *Installer) exchange(ctx context.Context, server *sandbox.Server, request Request, o driverRequest, staging string) (fetchResult, error) {
	line, err := o.encode()
	if err != nil {
		return fetchResult{}, err
	}
	if _, err := server.Write(line); err != nil {
		return fetchResult{}, fmt.Errorf("%w: %w", errTruncated, err)
	}
	reader := bufio.NewReaderSize(server, 64<<10)
	var hello driverHello
	if err := readJSON(reader, 64<<10, &hello); err != nil {
		return fetchResult{}, err
	}
	var allowed []Target
	if hello.Index != "" {
		if allowed, err = request.targets(hello); err != nil {
			return fetchResult{}, err
		}
	}
	proxy := NewProxy(allowed, ProxyOptions{Down: i.opts.Bytes, Logger: i.log})
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { _ = proxy.Serve(ctx, server.Listener()) })
	got, err := receive(reader, staging, i.opts.Bytes)
	cancel()
	work.Wait()
	if err != nil {
		return fetchResult{}, err
	}
	return got, explain(got.report, proxy)
}

// driverDir is the driver's folder in the installing sandbox. It is in a [reservedPath] path, so that the mounts of a base cannot
// collide with it.
const driverDir = "/opt/sallyport/install"

// service returns the installing sandbox. It sees an interpreter, pip or npm, the driver and certificates.
func (i *Installer) service(request Request) (sandbox.Service, error) {
	files := map[string][]byte{"driver.py": driver}
	if ca := i.certificates(); ca != nil {
		files["ca.pem"] = ca
	}
	args := []string{"-I", "-B", driverDir + "/driver.py"}
	s := sandbox.Service{
		ID: "deps-" + strings.ToLower(rand.Text()[:12]), Interpreter: sandbox.Python, Args: args, Dir: driverDir, Files: files, Mounts: map[string]string{},
		Memory: i.opts.Memory, Space: i.opts.Memory - serviceOverhead, Processes: 256, OpenFiles: 1024, Socket: true,
	}
	if request.Interpreter == sandbox.Node {
		if npm := i.npmDir(); npm != "" {
			s.Mounts["/opt/npm"] = npm
		}
		return s, nil
	}
	if request.Base == "" {
		s.Environment = sandbox.Environment{Root: request.Environment.Root, Python: request.Environment.Python, Digest: request.Environment.Digest}
		if pip := hostPip(); pip != "" && request.Environment.Root != "" {
			s.Mounts["/opt/pip"] = pip
		}
		return s, nil
	}
	base, err := FindBase(request.Base)
	if err != nil {
		return sandbox.Service{}, err
	}
	s.Interpreter, s.Args = "", append([]string{base.Python}, args...)
	for _, mount := range base.Mounts {
		s.Mounts[base.inside(mount)] = mount
	}
	return s, nil
}

// hostPip returns a folder of this machine that contains pip, for images without pip; "" if there is none. pip is pure Python.
func hostPip() string {
	found, _ := filepath.Glob("/usr/lib/python3*/*-packages/pip/__init__.py") // the pattern is right
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(filepath.Dir(found[0]))
}

// npmDir returns the folder of the npm that belongs to a node outside /usr, "" if there is none.
func (i *Installer) npmDir() string {
	path := filepath.Join(filepath.Dir(filepath.Dir(i.host.HostInterpreter(sandbox.Node))), "lib", "node_modules", "npm")
	if visiblePath.MatchString(path) || !isFolder(path) {
		return ""
	}
	return path
}

// certificateFiles are the default paths of systems' trusted CA certificates.
const certificateFiles = "/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/pki/tls/cacert.pem /etc/ssl/cert.pem"

func (i *Installer) certificates() []byte {
	places := append([]string{os.Getenv("SSL_CERT_FILE")}, strings.Fields(certificateFiles)...)
	if i.opts.Certificates != "" {
		places = []string{i.opts.Certificates}
	}
	for _, place := range places {
		if data, err := os.ReadFile(place); err == nil && len(data) > 0 {
			return data
		}
	}
	return nil
}

// receive reads the report and the files. It does not trust names or sizes.
func receive(reader *bufio.Reader, staging string, limit int64) (fetchResult, error) {
	got := fetchResult{files: map[string]download{}}
	if err := readJSON(reader, maxReport, &got.report); err != nil {
		return got, err
	}
	archive := tar.NewReader(reader)
	for n := 0; ; n++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, fmt.Errorf("%w: %w", errTruncated, err)
		}
		if n > 2*maxFiles || header.Size > limit {
			return got, fmt.Errorf("%w: more files, or larger ones, than a layer may have", ErrLimit)
		}
		limit -= header.Size
		file, err := saveDownload(archive, filepath.Join(staging, fmt.Sprint(n)))
		if err != nil {
			return got, err
		}
		file.name = header.Name
		got.files[file.name] = file
	}
}

func saveDownload(from io.Reader, path string) (download, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return download{}, err
	}
	short, long := sha256.New(), sha512.New()
	_, err = io.Copy(io.MultiWriter(file, short, long), from)
	text := func(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
	return download{path: path, sha256: text(short), sha512: text(long)}, errors.Join(err, file.Close())
}

// readJSON reads a line of at most limit bytes.
func readJSON(reader *bufio.Reader, limit int, into any) error {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > limit {
			return fmt.Errorf("%w: %w", errTruncated, err)
		}
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("%w: %w", errTruncated, err)
	}
	return nil
}
