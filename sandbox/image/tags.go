package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// tagFolder is the folder of the pinned tags in the directory of all images.
const tagFolder = "tags"

// Pin returns a reference with the digest that its tag has now. One with a digest is returned as it is.
func Pin(ctx context.Context, reference string, opts Options) (string, error) {
	opts = opts.withDefaults()
	ref, err := name.ParseReference(reference, nameOptions(opts)...)
	if err != nil {
		return "", fmt.Errorf("pin image %.300q: %w", reference, err)
	}
	if _, ok := ref.(name.Digest); ok {
		return reference, nil
	}
	digest, err := digestOf(ctx, ref, opts)
	if err != nil {
		return "", fmt.Errorf("pin image %.300q: %w", reference, explain(err))
	}
	return reference + "@" + digest, nil
}

// digestOf asks a registry for the digest of a tag.
func digestOf(ctx context.Context, ref name.Reference, opts Options) (string, error) {
	options := remoteOptions(ctx, ref, opts)
	if head, err := remote.Head(ref, options...); err == nil {
		return head.Digest.String(), nil
	}
	whole, err := remote.Get(ref, options...) // not every registry answers HEAD
	if err != nil {
		return "", err
	}
	return whole.Digest.String(), nil
}

// PinOnce is Pin for a tag that keeps the digest of its first use. The directory of all images has the digest.
func PinOnce(ctx context.Context, reference string, opts Options) (string, error) {
	if strings.Contains(reference, "@") {
		return reference, nil
	}
	file := tagFile(opts.Dir, reference)
	if kept, err := readTag(file, reference); kept != "" || err != nil {
		return kept, err
	}
	pinned, err := Pin(ctx, reference, opts)
	if err != nil {
		return "", err
	}
	return keepTag(file, reference, pinned)
}

// Moved returns the reference with the digest that its tag has now, if that differs from the one that PinOnce keeps; "" if not.
func Moved(ctx context.Context, reference string, opts Options) (string, error) {
	kept, err := readTag(tagFile(opts.Dir, reference), reference)
	if kept == "" || err != nil {
		return "", err
	}
	now, err := Pin(ctx, reference, opts)
	if err != nil || now == kept {
		return "", err
	}
	return now, nil
}

func tagFile(dir, reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return filepath.Join(dir, tagFolder, hex.EncodeToString(sum[:]))
}

// readTag returns the pinned reference in a file, "" if there is none.
func readTag(file, reference string) (string, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	pinned := strings.TrimSpace(string(data))
	if err == nil && !strings.HasPrefix(pinned, reference+"@"+digestPrefix) {
		err = fmt.Errorf("%s is damaged; remove it", file)
	}
	if err != nil {
		return "", fmt.Errorf("read the digest of image %.300q: %w", reference, err)
	}
	return pinned, nil
}

// keepTag writes a pinned reference, unless another process has written one, and returns the one that is kept.
func keepTag(file, reference, pinned string) (string, error) {
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(filepath.Dir(file), "new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.WriteString(pinned + "\n")
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Link(temp.Name(), file)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep the digest of image %.300q: %w", reference, err)
	}
	return readTag(file, reference)
}
