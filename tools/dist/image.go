package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// The types of the OCI image specification that an image of one layer needs.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *imagePlatform    `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	imagePlatform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	imageIndex struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	imageManifest struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}
	imageConfig struct {
		Created time.Time `json:"created"`
		imagePlatform
		Config imageRun   `json:"config"`
		RootFS imageRoot  `json:"rootfs"`
		Past   []imageAct `json:"history"`
	}
	imageRun struct {
		User       string              `json:"User"`
		Env        []string            `json:"Env"`
		Entrypoint []string            `json:"Entrypoint"`
		Cmd        []string            `json:"Cmd"`
		Volumes    map[string]struct{} `json:"Volumes"`
		Ports      map[string]struct{} `json:"ExposedPorts"`
		Labels     map[string]string   `json:"Labels"`
	}
	imageRoot struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	imageAct struct {
		Created   time.Time `json:"created"`
		CreatedBy string    `json:"created_by"`
	}
)

const ociTypes = "application/vnd.oci.image."

// layout collects the blobs of an image.
type layout struct{ files []file }

// add adds a blob and returns its descriptor.
func (l *layout) add(kind string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	l.files = append(l.files, file{name: "blobs/sha256/" + digest, mode: 0o644, data: data})
	return descriptor{MediaType: ociTypes + kind, Digest: "sha256:" + digest, Size: len(data)}
}

func (l *layout) addJSON(kind string, value any) (descriptor, error) {
	data, err := json.Marshal(value)
	return l.add(kind, data), err
}

// image makes an OCI image layout with an image for each Linux target: both programs and nothing that runs besides.
func (r *release) image(targets []target) error {
	index, l := imageIndex{SchemaVersion: 2, MediaType: ociTypes + "index.v1+json"}, &layout{}
	for _, t := range targets {
		if t.system != "linux" {
			continue
		}
		d, err := r.imageOf(l, t)
		if err != nil {
			return err
		}
		index.Manifests = append(index.Manifests, d)
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	l.files = append(l.files, file{name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}, file{name: "index.json", mode: 0o644, data: data})
	return create(filepath.Join(r.out, "sallyport-"+r.version+"-oci.tar"), func(w io.Writer) error { return writeTar(w, r.date, l.files) })
}

// imageOf adds the layer, the configuration and the manifest of a target.
func (r *release) imageOf(l *layout, t target) (descriptor, error) {
	files, err := r.imageFiles(t)
	if err != nil {
		return descriptor{}, err
	}
	layer, diff, err := r.compressLayer(files)
	if err != nil {
		return descriptor{}, err
	}
	config, err := l.addJSON("config.v1+json", r.imageConfig(t, diff))
	if err != nil {
		return descriptor{}, err
	}
	m := imageManifest{SchemaVersion: 2, MediaType: ociTypes + "manifest.v1+json", Config: config, Layers: []descriptor{l.add("layer.v1.tar+gzip", layer)}}
	d, err := l.addJSON("manifest.v1+json", m)
	d.Platform = &imagePlatform{Architecture: t.arch, OS: t.system}
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	return d, err
}

// compressLayer returns the compressed layer and the digest of its tar.
func (r *release) compressLayer(files []file) (layer []byte, diff string, err error) {
	var out bytes.Buffer
	sum := sha256.New()
	z, err := gzip.NewWriterLevel(&out, r.level())
	if err != nil {
		return nil, "", err
	}
	if err := writeTar(io.MultiWriter(z, sum), r.date, files); err != nil {
		return nil, "", err
	}
	if err := z.Close(); err != nil {
		return nil, "", err
	}
	return out.Bytes(), fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
}

// imageUser is the user of the gateway in the image, as in docs/deploy/Containerfile.
const imageUser = 990

// imageFiles returns the files of the image: no interpreter, no shell, no authorities of certificates.
func (r *release) imageFiles(t target) ([]file, error) {
	files := []file{
		{name: "data/", mode: 0o700, uid: imageUser}, {name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0::/root:/sbin/nologin\nsallyport:x:990:990::/data:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nsallyport:x:990:\n")},
		{name: "etc/sallyport/", mode: 0o755},
		{name: "etc/sallyport/upstreams.yaml", mode: 0o644, path: r.packaging("upstreams.yaml")},
		{name: "run/", mode: 0o755}, {name: "run/sallyport/", mode: 0o700, uid: imageUser}, {name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755}, {name: "usr/local/", mode: 0o755}, {name: "usr/local/bin/", mode: 0o755},
	}
	files = append(files, r.programs(t, "usr/local/bin/")...)
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func (r *release) imageConfig(t target, diff string) imageConfig {
	none := struct{}{}
	return imageConfig{
		Created: r.date, imagePlatform: imagePlatform{Architecture: t.arch, OS: t.system},
		Config: imageRun{
			User: "990", Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/data", "XDG_CACHE_HOME=/data/cache", "XDG_RUNTIME_DIR=/run/sallyport"},
			Entrypoint: []string{"sallyport"},
			Cmd:        []string{"serve", "--http", "0.0.0.0:8080", "--config", "/etc/sallyport/upstreams.yaml", "--data", "/data/sallyport"},
			Volumes:    map[string]struct{}{"/data": none}, Ports: map[string]struct{}{"8080/tcp": none},
			Labels: map[string]string{"org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0"},
		},
		RootFS: imageRoot{Type: "layers", DiffIDs: []string{diff}},
		Past:   []imageAct{{Created: r.date, CreatedBy: "make dist"}},
	}
}
