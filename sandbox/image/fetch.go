package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// maxConfig is the maximum size in bytes of an image's config, which is read into memory.
const maxConfig = 8 << 20

// tagTimeout is the time limit of asking a registry for the digest of a tag, for an error message.
const tagTimeout = 5 * time.Second

// reference is an image that is pinned.
type reference struct {
	name name.Digest
	// Hex is the digest without its algorithm, which is always SHA-256.
	Hex string
}

const digestPrefix = "sha256:"

// parseReference parses a reference. Without a digest it returns ErrUnpinned, with the tag's current digest if the registry tells it.
func parseReference(ctx context.Context, text string, opts Options) (reference, error) {
	ref, err := name.ParseReference(text, nameOptions(opts)...)
	if err != nil {
		return reference{}, fmt.Errorf("invalid image reference: %w", err)
	}
	if digest, ok := ref.(name.Digest); ok {
		hex, ok := strings.CutPrefix(digest.DigestStr(), digestPrefix)
		if !ok || len(hex) != 2*sha256.Size {
			return reference{}, fmt.Errorf("%w: %s is of another kind", ErrUnpinned, digest.DigestStr())
		}
		return reference{name: digest, Hex: hex}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tagTimeout)
	defer cancel()
	now, err := remote.Head(ref, remoteOptions(ctx, ref, opts)...)
	if err != nil {
		return reference{}, ErrUnpinned
	}
	return reference{}, fmt.Errorf("%w: now it is %s@%s", ErrUnpinned, ref.Context(), now.Digest)
}

func nameOptions(opts Options) []name.Option {
	if opts.Insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

func remoteOptions(ctx context.Context, ref name.Reference, opts Options) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(newTransport(ref.Context().Registry, opts.Limits)),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: opts.Architecture}),
		remote.WithUserAgent("sallyport"),
	}
}

// fetch fetches the image and unpacks it into a root.
func (r reference) fetch(ctx context.Context, into *os.Root, opts Options) (Root, error) {
	found, err := remote.Get(r.name, remoteOptions(ctx, r.name, opts)...)
	if err != nil {
		return Root{}, explain(err)
	}
	image, err := choose(found, opts)
	if err != nil {
		return Root{}, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return Root{}, explain(err)
	}
	if err := checkManifest(manifest, opts.Limits); err != nil {
		return Root{}, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return Root{}, explain(err)
	}
	if len(config.RootFS.DiffIDs) != len(manifest.Layers) {
		return Root{}, fmt.Errorf("%w: it describes %d layers and has %d", ErrUnsafe, len(config.RootFS.DiffIDs), len(manifest.Layers))
	}
	if config.OS != "linux" || config.Architecture != opts.Architecture {
		return Root{}, fmt.Errorf("it is for %.40s/%.40s, and this machine needs linux/%s", config.OS, config.Architecture, opts.Architecture)
	}
	digest, err := image.Digest()
	if err != nil {
		return Root{}, err
	}
	u := &unpacker{root: into, limits: opts.Limits}
	for n, descriptor := range manifest.Layers {
		if err := u.layer(ctx, image, descriptor, config.RootFS.DiffIDs[n]); err != nil {
			return Root{}, fmt.Errorf("layer %d: %w", n+1, explain(err))
		}
	}
	root := Root{Digest: digest.String(), Path: searchPath(config.Config.Env)}
	if opts.Program {
		root.Program, err = u.program(config.Config), u.makeNameFiles()
	}
	return root, err
}

// choose returns the image itself, or the image of an index that is for the machine.
func choose(found *remote.Descriptor, opts Options) (v1.Image, error) {
	image, err := found.Image()
	if err == nil {
		return image, nil
	}
	if found.MediaType != types.OCIImageIndex && found.MediaType != types.DockerManifestList {
		return nil, explain(err)
	}
	index, indexErr := found.ImageIndex()
	if indexErr != nil {
		return nil, explain(indexErr)
	}
	manifest, indexErr := index.IndexManifest()
	if indexErr != nil {
		return nil, explain(indexErr)
	}
	var has []string
	for _, child := range manifest.Manifests {
		if child.Platform != nil && child.Platform.OS != "unknown" && len(has) < 20 {
			has = append(has, fmt.Sprintf("%.40q", child.Platform.String()))
		}
	}
	return nil, fmt.Errorf("no image for linux/%s (it has %s): %w", opts.Architecture, strings.Join(has, ", "), explain(err))
}

func checkManifest(manifest *v1.Manifest, limits Limits) error {
	if len(manifest.Layers) > limits.Layers {
		return fmt.Errorf("%w: it has %d layers, and %d are allowed", ErrTooLarge, len(manifest.Layers), limits.Layers)
	}
	if manifest.Config.Size > maxConfig || manifest.Config.Size < 0 {
		return fmt.Errorf("%w: its description has %d bytes, and %d are allowed", ErrTooLarge, manifest.Config.Size, maxConfig)
	}
	var bytes int64
	for n, layer := range manifest.Layers {
		if !layer.MediaType.IsLayer() || !layer.MediaType.IsDistributable() {
			return fmt.Errorf("layer %d is a %.100q, which cannot be unpacked", n+1, layer.MediaType)
		}
		if len(layer.URLs) > 0 { // would be fetched from wherever it says
			return fmt.Errorf("%w: layer %d lies elsewhere", ErrUnsafe, n+1)
		}
		if layer.Size < 0 || layer.Size > limits.Bytes-bytes {
			return fmt.Errorf("%w: more than %d bytes are to be fetched", ErrTooLarge, limits.Bytes)
		}
		bytes += layer.Size
	}
	return nil
}

// layer fetches one layer, unpacks it while streaming, and verifies its digest at the end.
func (u *unpacker) layer(ctx context.Context, image v1.Image, descriptor v1.Descriptor, want v1.Hash) error {
	layer, err := image.LayerByDigest(descriptor.Digest)
	if err != nil {
		return err
	}
	stream, err := layer.Uncompressed() // checks size and digest of what is fetched
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	sum := sha256.New()
	if err := u.unpack(ctx, io.TeeReader(stream, sum), descriptor.Size); err != nil {
		return err
	}
	if got := digestPrefix + hex.EncodeToString(sum.Sum(nil)); got != want.String() {
		return fmt.Errorf("%w: its content is %s and should be %s", ErrChanged, got, want)
	}
	return nil
}

// explain wraps the library's digest errors, which have no type, in ErrChanged.
func explain(err error) error {
	if err != nil && !errors.Is(err, ErrChanged) && (strings.Contains(err.Error(), "error verifying") || strings.Contains(err.Error(), "does not match requested digest")) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// searchPath reads PATH from an image's environment.
func searchPath(env []string) []string {
	var dirs []string
	for _, entry := range env {
		value, ok := strings.CutPrefix(entry, "PATH=")
		if !ok || len(value) > 4096 {
			continue
		}
		dirs = nil
		for dir := range strings.SplitSeq(value, ":") {
			if path.IsAbs(dir) && path.Clean(dir) == dir && !strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}
